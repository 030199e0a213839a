//===- Registration.cpp - All dialects, models and passes -----------------===//
#include "passes/Registration.h"
#include "dialects/cleave/Cleave.h"
#include "dialects/comm/Comm.h"
#include "dialects/dispatch/Dispatch.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/InitAllPasses.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"
#include "passes/Passes.h"
#include "passes/Pipelines.h"
#include "passes/comm/Passes.h"
#include "passes/dispatch/Passes.h"
#include "passes/lower/Passes.h"
#include "passes/memory/Passes.h"
#include "passes/propagate/Rules.h"

void cleave::registerDialects(mlir::DialectRegistry &registry) {
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::registerAllToLLVMIRTranslations(registry);
  registry
      .insert<CleaveDialect, comm::CommDialect, dispatch::DispatchDialect>();
  registerLinalgRules(registry);
  registerTensorRules(registry);
}

void cleave::registerEverything(mlir::DialectRegistry &registry) {
  registerDialects(registry);
  mlir::registerAllPasses();
  registerCleavePasses();
  registerCleaveCommPasses();
  registerCleaveDispatchPasses();
  registerCleaveMemoryPasses();
  registerCleaveLowerPasses();
  registerPipelines();
}

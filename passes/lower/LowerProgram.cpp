//===- LowerProgram.cpp - Planned functions to the LLVM dialect -----------===//
// After this pass the module holds kernels, which are compiled one by one, and
// llvm.func ops and constants, which are compiled together.
//===----------------------------------------------------------------------===//
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "passes/lower/FunctionLowering.h"
#include "passes/lower/Passes.h"
#include "passes/lower/ProgramData.h"
#include "passes/lower/RuntimeAbi.h"
#define DEBUG_TYPE "cleave-lower-program"
namespace cleave {
#define GEN_PASS_DEF_LOWERPROGRAM
#define GEN_PASS_DEF_VERIFYLOWERED
#include "passes/lower/Passes.h.inc"
} // namespace cleave

using namespace mlir;
using namespace cleave;

namespace {
struct LowerProgram : cleave::impl::LowerProgramBase<LowerProgram> {
  using Base::Base;
  void runOnOperation() override;
};
struct VerifyLowered : cleave::impl::VerifyLoweredBase<VerifyLowered> {
  using Base::Base;
  void runOnOperation() override;
};
} // namespace

static SmallVector<func::FuncOp> plannedFunctions(ModuleOp module) {
  SmallVector<func::FuncOp> funcs;
  for (auto func : module.getOps<func::FuncOp>())
    if (!func->hasAttr(dispatch::kKernelAttr))
      funcs.push_back(func);
  return funcs;
}

/// The symbol says what a kernel computes, so that objects can be shared.
static void nameKernels(ModuleOp module, StringRef isa) {
  for (auto func : module.getOps<func::FuncOp>())
    if (func->hasAttr(dispatch::kKernelAttr))
      func->setAttr(dispatch::kSymbolAttr,
                    StringAttr::get(func.getContext(),
                                    symbolFor(kernels::hashKernel(func), isa)));
}

void LowerProgram::runOnOperation() {
  ModuleOp module = getOperation();
  std::optional<kernels::IsaLevel> level = parseIsa(isa);
  FailureOr<ProgramEdge> edge = ProgramEdge::read(module);
  if (!level || failed(edge))
    return signalPassFailure();
  std::string manifest = manifestOf(*edge, summarizeMemory(module));
  nameKernels(module, isa);
  declareRuntime(module);
  SymbolTable symbols(module);
  StaticData data(module);
  SmallVector<func::FuncOp> funcs = plannedFunctions(module);
  for (func::FuncOp func : funcs)
    if (failed(FunctionLowering(func, isa, *edge, symbols, data).run()))
      return signalPassFailure();
  for (func::FuncOp func : funcs)
    func.erase();
  for (auto function : module.getOps<LLVM::LLVMFuncOp>())
    kernels::widenMath(function);
  for (auto mesh : llvm::make_early_inc_range(module.getOps<MeshOp>()))
    mesh.erase();
  if (failed(defineProgram(module, *edge, manifest, *level, data)))
    signalPassFailure();
}

void VerifyLowered::runOnOperation() {
  for (Operation &top : *getOperation().getBody()) {
    auto func = dyn_cast<func::FuncOp>(top);
    if (func && func->hasAttr(dispatch::kKernelAttr))
      continue;
    WalkResult result =
        top.walk<WalkOrder::PreOrder>([](Operation *op) -> WalkResult {
          if (isa<LLVM::LLVMDialect>(op->getDialect()))
            return WalkResult::advance();
          return op->emitOpError(
              "remains after lowering; outside of kernels only "
              "the LLVM dialect may");
        });
    if (result.wasInterrupted())
      return signalPassFailure();
  }
  markAllAnalysesPreserved();
}

void cleave::buildLowerPipeline(OpPassManager &pm, kernels::IsaLevel isa) {
  pm.addPass(createLowerProgram({kernels::CpuIsa::get(isa).name().str()}));
  // The scalars between the calls.
  auto &functions = pm.nest<LLVM::LLVMFuncOp>();
  functions.addPass(kernels::createNarrowArithmetic());
  functions.addPass(arith::createArithExpandOpsPass({/*includeBf16=*/true}));
  functions.addPass(createConvertIndexToLLVMPass());
  functions.addPass(createConvertMathToLLVMPass());
  functions.addPass(createArithToLLVMConversionPass());
  functions.addPass(createReconcileUnrealizedCastsPass());
  pm.addPass(createVerifyLowered());
}

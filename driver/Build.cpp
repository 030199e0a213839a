//===- Build.cpp - cleave build -------------------------------------------===//
#include "driver/Driver.h"
#include "mlir/IR/AsmState.h"
#include "passes/Pipelines.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace cleave {

/// Prints to -o or standard output.
static int printModule(ModuleOp module, const Options &options) {
  std::error_code error;
  llvm::ToolOutputFile file(options.output.empty() ? "-" : options.output,
                            error, llvm::sys::fs::OF_None);
  if (error) {
    llvm::WithColor::error(llvm::errs(), "cleave")
        << "cannot write '" << options.output << "': " << error.message()
        << "\n";
    return kBadInput;
  }
  module.print(file.os());
  file.keep();
  return kDone;
}

int runBuild(const Options &options, Loader load, StringRef program) {
  OwningOpRef<ModuleOp> module = load();
  if (!module)
    return kBadInput;
  PhaseName until = options.until.value_or(PhaseName::Lower);
  PassManager pm(module->getContext());
  buildModelPipeline(pm);
  if (until >= PhaseName::Propagate)
    buildPropagatePipeline(pm);
  if (until >= PhaseName::Partition)
    buildPartitionPipeline(pm);
  if (until >= PhaseName::Comm)
    buildCommPipeline(pm);
  if (failed(pm.run(*module)))
    return kBadInput;
  return printModule(*module, options);
}

} // namespace cleave

//===- Build.cpp - cleave build -------------------------------------------===//
// Runs the phases in order and stops where --until says, or makes a file.
//===----------------------------------------------------------------------===//
#include "driver/Build.h"
#include "driver/Driver.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "passes/Pipelines.h"
#include "passes/dispatch/Passes.h"
#include "passes/lower/Passes.h"
#include "passes/memory/Passes.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace cleave {

llvm::Expected<std::vector<kernels::IsaLevel>> targetIsas(StringRef target) {
  auto [kind, list] = target.split(':');
  auto fail = [&](const Twine &text) {
    return llvm::createStringError(llvm::inconvertibleErrorCode(), text);
  };
  if (kind != "cpu")
    return fail("unknown target '" + target + "'; known is cpu[:ISA]");
  if (list.empty())
    return std::vector<kernels::IsaLevel>();
  std::optional<std::vector<kernels::IsaLevel>> isas = parseIsas(list);
  if (!isas)
    return fail("unknown instruction set in '" + target +
                "'; known are avx2, avx512, avx512bf16, amx, all and native");
  return *isas;
}

void buildPhases(OpPassManager &pm, PhaseName until, kernels::IsaLevel isa) {
  buildModelPipeline(pm);
  if (until >= PhaseName::Propagate)
    buildPropagatePipeline(pm);
  if (until >= PhaseName::Partition)
    buildPartitionPipeline(pm);
  if (until >= PhaseName::Comm)
    buildCommPipeline(pm);
  if (until >= PhaseName::Dispatch)
    buildDispatchPipeline(pm);
  if (until >= PhaseName::Memory)
    buildMemoryPipeline(pm, isa);
  if (until >= PhaseName::Lower)
    buildLowerPipeline(pm, isa);
}

FailureOr<EmitResult> emitModel(ModuleOp module, const EmitOptions &options) {
  PassManager pm(module.getContext());
  buildPhases(pm, PhaseName::Dispatch, kernels::IsaLevel::avx2);
  if (failed(pm.run(module)))
    return failure();
  return emitProgram(module, options);
}

namespace {

/// Writes text to -o or standard output; an old file stays if that fails.
int writeText(const Options &options, ModuleOp module,
              llvm::function_ref<void(llvm::raw_ostream &)> write) {
  if (options.output.empty() || options.output == "-") {
    write(llvm::outs());
    return kDone;
  }
  std::string text;
  llvm::raw_string_ostream os(text);
  write(os);
  return succeeded(writeFile(module.getLoc(), options.output, text))
             ? kDone
             : kBadInput;
}

int printPhase(const Options &options, ModuleOp module, kernels::IsaLevel isa) {
  bool llvmText = options.emit == "llvm";
  PhaseName until =
      options.until.value_or(llvmText ? PhaseName::Lower : PhaseName::Comm);
  PassManager pm(module.getContext());
  buildPhases(pm, until, isa);
  if (failed(pm.run(module)))
    return kBadInput;
  if (!llvmText)
    return writeText(options, module, [&](llvm::raw_ostream &os) {
      OpPrintingFlags flags;
      if (options.hasOwnModel)
        flags.enableDebugInfo().printNameLocAsPrefix();
      module.print(os, flags);
      os << "\n";
    });
  // Kernels are compiled one by one; for reading they stay in one module.
  for (auto kernel : llvm::make_early_inc_range(module.getOps<func::FuncOp>()))
    if (failed(kernels::lowerKernel(kernel, kernels::CpuIsa::get(isa))))
      return kBadInput;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> translated =
      translateModuleToLLVMIR(module, context);
  if (!translated)
    return kBadInput;
  return writeText(options, module, [&](llvm::raw_ostream &os) {
    translated->print(os, nullptr);
  });
}

} // namespace

int runBuild(const Options &options, Loader load, StringRef) {
  llvm::Expected<std::vector<kernels::IsaLevel>> isas =
      targetIsas(options.target);
  if (!isas) {
    llvm::WithColor::error(llvm::errs(), "cleave")
        << toString(isas.takeError()) << "\n";
    return kBadUsage;
  }
  OwningOpRef<ModuleOp> module = load();
  if (!module)
    return kBadInput;
  if (options.until || options.emit == "mlir" || options.emit == "llvm")
    return printPhase(options, *module,
                      isas->empty() ? kernels::IsaLevel::avx2 : isas->front());
  EmitOptions emit;
  emit.output = options.output;
  emit.isas = *isas;
  emit.kind = options.emit == "obj"   ? EmitOptions::Kind::Object
              : options.emit == "lib" ? EmitOptions::Kind::Library
                                      : EmitOptions::Kind::Executable;
  return succeeded(emitModel(*module, emit)) ? kDone : kBadInput;
}

} // namespace cleave

//===- Object.cpp - LLVM dialect to machine code --------------------------===//
// Translates, optimises and emits in process. The target is named, never taken
// from the host, so that equal kernels give equal bytes on every machine.
//===----------------------------------------------------------------------===//
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "passes/lower/kernels/Kernels.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include <mutex>

using namespace mlir;
using namespace cleave::kernels;

static constexpr const char *kTriple = "x86_64-unknown-linux-gnu";

static std::unique_ptr<llvm::TargetMachine> makeTarget(const CpuIsa &isa) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  std::string error;
  llvm::Triple triple(kTriple);
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  assert(target && "LLVM is built with the X86 target");
  llvm::TargetOptions options;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, isa.cpu(), isa.features(), options, llvm::Reloc::PIC_,
      std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

static void optimise(llvm::Module &module, llvm::TargetMachine &target) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = true;
  tuning.SLPVectorization = true;
  tuning.LoopUnrolling = true;
  llvm::PassBuilder builder(&target, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3)
      .run(module, modules);
}

/// Functions keep their frame and are never inlined: a kernel is a unit.
static void setAttributes(llvm::Module &module, const CpuIsa &isa) {
  for (llvm::Function &f : module) {
    if (f.isDeclaration())
      continue;
    f.addFnAttr("target-cpu", isa.cpu());
    if (!isa.features().empty())
      f.addFnAttr("target-features", isa.features());
    f.addFnAttr(llvm::Attribute::NoInline);
    f.addFnAttr(llvm::Attribute::NoUnwind);
    if (isa.vectorBytes() == 64) {
      f.addFnAttr("prefer-vector-width", "512");
      f.addFnAttr("min-legal-vector-width", "512");
    }
  }
}

static LogicalResult emit(ModuleOp module, const CpuIsa &isa,
                          llvm::CodeGenFileType type,
                          llvm::SmallVectorImpl<char> &out) {
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> ir =
      translateModuleToLLVMIR(module, context, "kernels");
  if (!ir)
    return module.emitError("kernels have no translation to LLVM IR");
  std::unique_ptr<llvm::TargetMachine> target = makeTarget(isa);
  ir->setTargetTriple(target->getTargetTriple());
  ir->setDataLayout(target->createDataLayout());
  setAttributes(*ir, isa);
  optimise(*ir, *target);
  llvm::raw_svector_ostream stream(out);
  llvm::legacy::PassManager codegen;
  if (target->addPassesToEmitFile(codegen, stream, nullptr, type))
    return module.emitError("the X86 target cannot emit this kind of file");
  codegen.run(*ir);
  return success();
}

LogicalResult
cleave::kernels::compileModule(ModuleOp module, const CpuIsa &isa,
                               llvm::SmallVectorImpl<char> &object) {
  return emit(module, isa, llvm::CodeGenFileType::ObjectFile, object);
}

LogicalResult cleave::kernels::emitAssembly(ModuleOp module, const CpuIsa &isa,
                                            llvm::SmallVectorImpl<char> &text) {
  return emit(module, isa, llvm::CodeGenFileType::AssemblyFile, text);
}

//===- cleave-emit.cpp - A partitioned module to a file that runs ---------===//
// For tests: enters the compiler after the phase `partition`.
//===----------------------------------------------------------------------===//
#include "dialects/comm/Comm.h"
#include "dialects/dispatch/Dispatch.h"
#include "mlir/Dialect/Func/Extensions/AllExtensions.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "passes/dispatch/Passes.h"
#include "passes/lower/Emit.h"
#include "passes/lower/Passes.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/SourceMgr.h"

using namespace cleave;
namespace cl = llvm::cl;

static cl::opt<std::string> input(cl::Positional, cl::Required);
static cl::opt<std::string> output("o");
static cl::opt<std::string> until("until");
static cl::opt<std::string> emit("emit", cl::init("exe"));
static cl::opt<std::string> isa("isa", cl::init("native"));
static cl::opt<std::string> runtimeDirectory("runtime-dir");
static cl::opt<bool> stats("kernel-stats");

int main(int argc, char **argv) {
  cl::ParseCommandLineOptions(argc, argv);
  mlir::DialectRegistry registry;
  kernels::registerKernelDialects(registry);
  mlir::func::registerAllExtensions(registry);
  registry
      .insert<CleaveDialect, comm::CommDialect, dispatch::DispatchDialect>();
  mlir::MLIRContext context(registry);
  context.loadAllAvailableDialects();
  llvm::SourceMgr sources;
  mlir::SourceMgrDiagnosticHandler handler(sources, &context);
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(input, sources, &context);
  auto isas = parseIsas(isa);
  if (!isas) {
    llvm::errs() << "error: '" << isa << "' names no instruction set\n";
    return 2;
  }
  mlir::PassManager pm(&context);
  buildDispatchPipeline(pm);
  if (until == "memory" || until == "lower")
    buildMemoryPipeline(pm, isas->front());
  if (until == "lower")
    buildLowerPipeline(pm, isas->front());
  if (!module || mlir::failed(pm.run(*module)))
    return 1;
  if (!until.empty()) {
    module->print(llvm::outs());
    return 0;
  }
  EmitOptions options;
  options.output = output;
  options.runtimeDirectory = runtimeDirectory;
  options.kind = emit == "obj"   ? EmitOptions::Kind::Object
                 : emit == "lib" ? EmitOptions::Kind::Library
                                 : EmitOptions::Kind::Executable;
  options.isas = *isas;
  auto result = emitProgram(*module, options);
  if (mlir::failed(result))
    return 1;
  if (stats)
    llvm::outs() << "kernels " << result->numKernels << ", cached "
                 << result->numCached << ", arena " << result->memory.arena
                 << ", resident " << result->memory.resident << "\n";
  return 0;
}

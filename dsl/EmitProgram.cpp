//===- EmitProgram.cpp - Compiling, and the command line ------------------===//
#include "driver/Build.h"
#include "driver/Driver.h"
#include "driver/LoadModel.h"
#include "dsl/Bridge.h"
#include "dsl/Emit.h"
#include "passes/Registration.h"
#include "passes/cost/CommReport.h"

using namespace mlir;

namespace cleave::dsl {

/// A diagnostic of the compiler in the words of the DSL's own.
static void append(std::string &text, mlir::Diagnostic &diagnostic,
                   StringRef indent, StringRef kind) {
  std::string where = locText(diagnostic.getLocation());
  text += (indent + (where.empty() ? "" : where + ": ") + kind + ": " +
           diagnostic.str() + "\n")
              .str();
}

std::string compileLibrary(const Graph &graph, const PlanData &plan,
                           const LibraryOptions &options) {
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry);
  std::string text;
  ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
      return success();
    append(text, diagnostic, "", "error");
    for (mlir::Diagnostic &note : diagnostic.getNotes())
      append(text, note, "  ", "note");
    return success();
  });
  EmitOptions emit;
  emit.kind = EmitOptions::Kind::Library;
  emit.output = options.output;
  llvm::Expected<std::vector<kernels::IsaLevel>> isas =
      targetIsas(options.target);
  if (!isas)
    return "error: " + toString(isas.takeError()) + "\n";
  emit.isas = *isas;
  OwningOpRef<ModuleOp> module = emitModule(&context, graph, plan);
  bool done = module && succeeded(setMeshSizes(*module, options.mesh)) &&
              succeeded(emitModel(*module, emit));
  if (!done && text.empty())
    text = "error: the model could not be compiled\n";
  return done ? "" : text;
}

int runCommandLine(int argc, char **argv, const Graph &graph,
                   const PlanData &plan) {
  SmallVector<StringRef> args(argv + 1, argv + argc);
  return runDriver(args, argv[0], [&](MLIRContext *context) {
    return emitModule(context, graph, plan);
  });
}

} // namespace cleave::dsl

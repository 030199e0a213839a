//===- Driver.cpp - The subcommands ---------------------------------------===//
#include "driver/Driver.h"
#include "driver/LoadModel.h"
#include "driver/TieWeights.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "passes/Registration.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace cleave {

static int failUsage(llvm::Error error, StringRef program) {
  llvm::WithColor::error(llvm::errs(), "cleave")
      << toString(std::move(error)) << "\n";
  llvm::errs() << "try '" << program << " --help'\n";
  return kBadUsage;
}

int runDriver(llvm::ArrayRef<StringRef> args, StringRef program) {
  return runDriver(args, program, nullptr);
}

int runDriver(llvm::ArrayRef<StringRef> args, StringRef program,
              ModelMaker make) {
  StringRef name = make ? program : "cleave";
  llvm::Expected<Options> options = parseOptions(args, make ? program : "");
  if (!options)
    return failUsage(options.takeError(), name);
  if (options->help) {
    llvm::outs() << usage(make ? program : "");
    return kDone;
  }
  llvm::Expected<Machine> machine = findMachine(options->machine);
  if (!machine) {
    llvm::WithColor::error(llvm::errs(), "cleave")
        << toString(machine.takeError()) << "\n";
    return kBadInput;
  }
  DialectRegistry registry;
  registerDialects(registry);
  MLIRContext context(registry);
  context.printOpOnDiagnostic(false);
  // Shows the line of the model that a diagnostic of any phase is about.
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler diagnostics(sources, &context);
  auto load = [&]() -> OwningOpRef<ModuleOp> {
    OwningOpRef<ModuleOp> module =
        make ? make(&context) : loadModel(&context, options->model);
    if (module && !options->meshes.empty() &&
        failed(setMeshSizes(*module, options->meshes[0])))
      return nullptr;
    if (!module || options->weightsMap.empty())
      return module;
    if (llvm::Error error = tieWeights(*module, options->weightsMap)) {
      llvm::WithColor::error(llvm::errs(), "cleave")
          << toString(std::move(error)) << "\n";
      return nullptr;
    }
    return module;
  };
  switch (options->command) {
  case Command::Build:
    return runBuild(*options, load, program);
  case Command::Check:
    return runCheck(*options, load, program);
  case Command::Plan:
    return runPlan(*options, load, *machine);
  case Command::Explain:
    return runExplain(*options, load, *machine);
  case Command::Compare:
    llvm::WithColor::error(llvm::errs(), "cleave")
        << "compare is not part of this version; run plan once per --mesh\n";
    return kBadUsage;
  }
  llvm_unreachable("all commands are listed");
}

} // namespace cleave

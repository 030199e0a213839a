//===- Driver.h - The subcommands ------------------------------*- C++ -*-===//
#ifndef CLEAVE_DRIVER_DRIVER_H
#define CLEAVE_DRIVER_DRIVER_H

#include "driver/Options.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "passes/cost/Machine.h"

namespace cleave {

/// Runs a whole command line (without the program's name) on a .mlir model and
/// returns the exit status. Diagnostics go to stderr, results to stdout.
int runDriver(llvm::ArrayRef<llvm::StringRef> args, llvm::StringRef program);

/// The same for a program that brings its model along: the command line names
/// none. Called anew for each copy that is needed; null after a diagnostic.
using ModelMaker = llvm::function_ref<mlir::OwningOpRef<mlir::ModuleOp>(
    mlir::MLIRContext *context)>;
int runDriver(llvm::ArrayRef<llvm::StringRef> args, llvm::StringRef program,
              ModelMaker make);

/// One subcommand on a loaded model. `load` gives a fresh copy of it, with the
/// sizes of --mesh; null after a diagnostic.
using Loader = llvm::function_ref<mlir::OwningOpRef<mlir::ModuleOp>()>;
int runBuild(const Options &options, Loader load, llvm::StringRef program);
int runCheck(const Options &options, Loader load, llvm::StringRef program);
int runPlan(const Options &options, Loader load, const Machine &machine);
int runExplain(const Options &options, Loader load, const Machine &machine);

} // namespace cleave

#endif // CLEAVE_DRIVER_DRIVER_H

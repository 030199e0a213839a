//===- Build.h - From a model to a file ------------------------*- C++ -*-===//
#ifndef CLEAVE_DRIVER_BUILD_H
#define CLEAVE_DRIVER_BUILD_H

#include "driver/Options.h"
#include "mlir/Pass/PassManager.h"
#include "passes/lower/Emit.h"

namespace cleave {

/// The instruction sets that --target names; none for the default ones.
llvm::Expected<std::vector<kernels::IsaLevel>>
targetIsas(llvm::StringRef target);
/// All phases up to and including `until`.
void buildPhases(mlir::OpPassManager &pm, PhaseName until,
                 kernels::IsaLevel isa);
/// A loaded model to a file. Failure comes with a diagnostic.
mlir::FailureOr<EmitResult> emitModel(mlir::ModuleOp module,
                                      const EmitOptions &options);

} // namespace cleave

#endif // CLEAVE_DRIVER_BUILD_H

//===- TieWeights.h - Weights that are one tensor --------------*- C++ -*-===//
#ifndef CLEAVE_DRIVER_TIEWEIGHTS_H
#define CLEAVE_DRIVER_TIEWEIGHTS_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

namespace cleave {

/// Gives weights that the map at `path` finds in one tensor one name, so that
/// they are stored once. Where they differ in type or are annotated with other
/// shardings they stay two, and a warning says why. An error if the map is
/// wrong.
llvm::Error tieWeights(mlir::ModuleOp module, llvm::StringRef path);

} // namespace cleave

#endif // CLEAVE_DRIVER_TIEWEIGHTS_H

//===- Internal.h - Steps of kernel code generation -------------*- C++ -*-===//
// Not part of the interface of this folder.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PASSES_LOWER_KERNELS_INTERNAL_H
#define CLEAVE_PASSES_LOWER_KERNELS_INTERNAL_H

#include "passes/lower/kernels/Kernels.h"

namespace cleave::kernels {

/// Raised whenever equal kernels would compile to other code than before, so
/// that objects of older compilers in a cache are not taken.
inline constexpr int kGeneratorVersion = 8;

/// Turns linalg.pack and linalg.unpack into padding and transposition, but for
/// unpacks of arguments.
mlir::LogicalResult lowerPacks(mlir::func::FuncOp kernel);

/// Turns unpacks of arguments into views that products read through.
void viewPackedArguments(mlir::func::FuncOp kernel);

/// Gives `kernel` memref arguments and no results; its body still computes on
/// tensors, read from and materialised in those arguments.
void passByBuffer(mlir::func::FuncOp kernel);

/// Turns the tensors of a kernel whose arguments are buffers into buffers.
mlir::LogicalResult bufferize(mlir::func::FuncOp kernel);

/// Moves every allocation to the stack or, past kStackBytes, to a new last
/// argument. Returns the bytes of that argument.
mlir::FailureOr<int64_t> placeTemporaries(mlir::func::FuncOp kernel);

/// Turns copies into linalg ops: lowering would call a library for strided
/// ones.
void expandCopies(mlir::func::FuncOp kernel);

/// Turns remaining linalg ops on buffers into loops.
mlir::LogicalResult lowerToLoops(mlir::func::FuncOp kernel);

/// Rewrites math and float ops that would become calls.
mlir::LogicalResult expandMath(mlir::func::FuncOp kernel);

/// From loops, vectors and buffers to the LLVM dialect.
mlir::LogicalResult lowerToLLVM(mlir::ModuleOp module);

} // namespace cleave::kernels

#endif // CLEAVE_PASSES_LOWER_KERNELS_INTERNAL_H

//===- Groups.h - Which ops are computed together --------------*- C++ -*-===//
// An op joins the group of its producer when that saves a trip to memory and
// costs nothing:
//
// * element-wise ops follow element-wise ops, reductions and products over the
//   same indices (epilogues; the second pass of softmax and norms, which reads
//   the reduced value back along the row);
// * reductions follow the element-wise ops whose result they reduce;
// * products, slices, pads and joins begin a group of their own.
//
// A group stands where its last op stood. That is legal while nobody outside
// has read one of its values before: the first such reader closes the group.
// Cheap producers (fills, slices, tensors made from indices alone) belong to no
// group; every group that reads one repeats it.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PASSES_DISPATCH_GROUPS_H
#define CLEAVE_PASSES_DISPATCH_GROUPS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Block.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallBitVector.h"

namespace cleave {

/// Whether a slice is a piece of contiguous memory that starts at a multiple of
/// the alignment of buffers, so that it needs no copy.
bool isView(mlir::tensor::ExtractSliceOp slice);
/// A reshape, or a slice that is a view: no work, no buffer.
bool isViewOp(mlir::Operation *op);
/// Ops that become kernels: linalg ops and those that move data.
bool isKernelOp(mlir::Operation *op);
/// Repeated by every kernel that reads it.
bool isCheapProducer(mlir::Operation *op);
/// The tensors and scalars an op reads, also from inside its regions.
llvm::SetVector<mlir::Value> readValues(mlir::Operation *op);

struct Group {
  /// In program order; the kernel is called where the last one stands.
  llvm::SmallVector<mlir::Operation *> ops;
  /// "product", "rows", "reduce", "map", or the name of the only op.
  std::string name() const;
};

/// The groups of a block, in order of their calls. Not of nested blocks.
std::vector<Group> formGroups(mlir::Block &block);

} // namespace cleave

#endif // CLEAVE_PASSES_DISPATCH_GROUPS_H

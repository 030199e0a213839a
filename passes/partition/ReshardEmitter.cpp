//===- ReshardEmitter.cpp - Steps of a plan as ops on blocks --------------===//
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "passes/partition/Partitioner.h"
#include "passes/propagate/Rules.h"

using namespace mlir;

namespace cleave {

static RankedTensorType withShape(Value block, ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(block.getType());
  return RankedTensorType::get(shape, type.getElementType());
}

Value ReshardEmitter::emit(Location loc, Value block, const ReshardPlan &plan,
                           comm::CauseAttr cause) {
  // Nothing to move, and MLIR refuses slices of a dim of size 0.
  auto type = cast<RankedTensorType>(block.getType());
  if (!plan.steps.empty() && type.getNumElements() == 0)
    return tensor::EmptyOp::create(builder, loc, plan.steps.back().localAfter,
                                   type.getElementType());
  for (const ReshardStep &step : plan.steps)
    block = emit(loc, block, step, cause);
  return block;
}

Value ReshardEmitter::setExtent(Location loc, Value block, unsigned dim,
                                int64_t extent) {
  auto type = cast<RankedTensorType>(block.getType());
  SmallVector<int64_t> shape(type.getShape());
  int64_t old = shape[dim];
  shape[dim] = extent;
  SmallVector<OpFoldResult> zeros(type.getRank(), builder.getIndexAttr(0));
  if (extent > old) {
    SmallVector<OpFoldResult> high = zeros;
    high[dim] = builder.getIndexAttr(extent - old);
    Value zero = arith::ConstantOp::create(
        builder, loc, builder.getZeroAttr(type.getElementType()));
    return tensor::PadOp::create(builder, loc, withShape(block, shape), block,
                                 zeros, high, zero);
  }
  SmallVector<OpFoldResult> ones(type.getRank(), builder.getIndexAttr(1));
  SmallVector<OpFoldResult> sizes;
  for (int64_t size : shape)
    sizes.push_back(builder.getIndexAttr(size));
  return tensor::ExtractSliceOp::create(builder, loc, block, zeros, sizes,
                                        ones);
}

Value ReshardEmitter::emit(Location loc, Value block, const ReshardStep &step,
                           comm::CauseAttr cause) {
  MLIRContext *context = builder.getContext();
  RankedTensorType after = withShape(block, step.localAfter);
  StringRef name = mesh.name;
  AxesAttr axes = toAxesAttr(context, mesh, step.axes);
  AxesAttr source = toAxesAttr(context, mesh, step.source);
  comm::Reduction kind = comm::toAttrEnum(step.reduction);
  uint64_t dim = step.dim;
  switch (step.kind) {
  case ReshardKind::AllReduce:
    return comm::AllReduceOp::create(builder, loc, after, kind, block, name,
                                     axes, cause);
  case ReshardKind::AllGather:
    return comm::AllGatherOp::create(builder, loc, after, block, dim, name,
                                     axes, cause);
  case ReshardKind::ReduceScatter:
    return comm::ReduceScatterOp::create(builder, loc, after, kind, block, dim,
                                         name, axes, cause);
  case ReshardKind::AllToAll:
    return comm::AllToAllOp::create(builder, loc, after, block, dim,
                                    uint64_t(step.concatDim), name, axes,
                                    cause);
  case ReshardKind::Permute:
    return comm::PermuteOp::create(builder, loc, after, block, source, name,
                                   axes, cause);
  case ReshardKind::Realign: {
    Value init = tensor::EmptyOp::create(builder, loc, after.getShape(),
                                         after.getElementType());
    return comm::RealignOp::create(builder, loc, after, block, init, dim,
                                   uint64_t(step.dimSize),
                                   uint64_t(step.dimSize), uint64_t(0),
                                   uint64_t(1), source, name, axes, cause);
  }
  case ReshardKind::Slice:
    return comm::SliceOp::create(builder, loc, after, block, dim, name, axes,
                                 cause);
  case ReshardKind::Pad:
  case ReshardKind::Trim:
    return setExtent(loc, block, dim, step.outBlock);
  case ReshardKind::MakePartial: {
    Value index = comm::CoordinateOp::create(
        builder, loc, builder.getIndexType(), name, axes);
    return keepOnlyFirst(builder, loc, block, step.reduction, index);
  }
  }
  llvm_unreachable("all kinds of steps are emitted");
}

} // namespace cleave

//===- ShardingRuleOpInterface.cpp - How an op is cut ---------------------===//
#include "dialects/cleave/ShardingRuleOpInterface.h"
#include "dialects/cleave/Cleave.h"
#include "dialects/comm/Comm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;

#include "dialects/cleave/ShardingRuleOpInterface.cpp.inc"

namespace cleave {

RankedTensorType LocalBuilder::localType(Type global,
                                         const TensorFactors &factors) const {
  auto tensor = cast<RankedTensorType>(global);
  SmallVector<int64_t> shape(tensor.getShape());
  for (auto [size, dim] : llvm::zip_equal(shape, factors.dims)) {
    int64_t shards = 1;
    for (unsigned factor : dim)
      shards *= numShards(factor);
    size = ceilDiv(size, shards);
  }
  return RankedTensorType::get(shape, tensor.getElementType());
}

RankedTensorType LocalBuilder::resultType(OpResult result) const {
  return localType(result.getType(), rule.results[result.getResultNumber()]);
}

Value LocalBuilder::coordinate(ArrayRef<AxisRef> axes) const {
  if (axesSize(axes) == 1)
    return arith::ConstantIndexOp::create(builder, loc, 0);
  return comm::CoordinateOp::create(
      builder, loc, builder.getIndexType(), meshName,
      toAxesAttr(builder.getContext(), mesh, axes));
}

Value LocalBuilder::blockOffset(unsigned factor) const {
  Value index = coordinate(factorAxes[factor]);
  Value block = arith::ConstantIndexOp::create(builder, loc, blockSize(factor));
  return arith::MulIOp::create(builder, loc, index, block);
}

SmallVector<Value> shardedOperands(Operation *op) {
  SmallVector<Value> result(op->getOperands());
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  for (Value value : captured)
    if (isa<RankedTensorType>(value.getType()))
      result.push_back(value);
  return result;
}

Operation *cloneLocal(Operation *op, LocalBuilder &local) {
  IRMapping mapping;
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  for (Value value : captured)
    mapping.map(value, local.scalars.lookupOrDefault(value));
  for (auto [value, block] :
       llvm::zip_equal(shardedOperands(op), local.operands))
    mapping.map(value, block);
  // One value may be two operands that lie differently, so operands are set by
  // position.
  Operation *clone = local.builder.clone(*op, mapping);
  clone->setOperands(local.operands.take_front(op->getNumOperands()));
  clone->setLoc(local.loc);
  clone->removeDiscardableAttr(kShardingAttr);
  for (OpResult result : clone->getResults())
    if (isa<RankedTensorType>(result.getType()))
      result.setType(local.resultType(result));
  return clone;
}

FailureOr<SmallVector<Value>> partitionByCloning(Operation *op,
                                                 LocalBuilder &local) {
  return SmallVector<Value>(cloneLocal(op, local)->getResults());
}

} // namespace cleave

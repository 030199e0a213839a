//===- ShardingRuleOpInterface.cpp - How an op is cut ---------------------===//
#include "dialects/cleave/ShardingRuleOpInterface.h"
#include "dialects/cleave/Cleave.h"
#include "dialects/comm/Comm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

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
  return localType(result.getType(),
                   rule.results[result.getResultNumber()]);
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
  Value block =
      arith::ConstantIndexOp::create(builder, loc, blockSize(factor));
  return arith::MulIOp::create(builder, loc, index, block);
}

FailureOr<SmallVector<Value>> partitionByCloning(Operation *op,
                                                 LocalBuilder &local) {
  IRMapping mapping;
  mapping.map(op->getOperands(), local.operands);
  Operation *clone = local.builder.clone(*op, mapping);
  clone->setLoc(local.loc);
  clone->removeDiscardableAttr(kShardingAttr);
  for (OpResult result : clone->getResults())
    if (isa<RankedTensorType>(result.getType()))
      result.setType(local.resultType(result));
  return SmallVector<Value>(clone->getResults());
}

} // namespace cleave

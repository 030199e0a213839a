//===- Naive.cpp - The simplest correct partitioner -----------------------===//
#include "dialects/comm/Comm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "test/oracle/Case.h"

using namespace mlir;

namespace cleave::oracle {

namespace {
struct Naive {
  OpBuilder b;
  Mesh mesh;
  FlatSymbolRefAttr meshName;

  RankedTensorType localType(RankedTensorType type, const Sharding &sharding) {
    auto shape = localShape(type.getShape(), sharding);
    return RankedTensorType::get(shape, type.getElementType());
  }
  Value gather(Location loc, Value value, const Sharding &sharding,
               RankedTensorType whole);
  Value cut(Location loc, Value value, const Sharding &sharding);
  Sharding closed(DictionaryAttr attrs, int64_t rank);
  void setEdge(NamedAttrList &attrs, const Sharding &sharding, Type whole);
  void run(func::FuncOp function);
};
} // namespace

/// All blocks joined, without what stands beyond the end.
Value Naive::gather(Location loc, Value value, const Sharding &sharding,
                    RankedTensorType whole) {
  // MLIR refuses slices of a dim of size 0.
  if (whole.getNumElements() == 0)
    return tensor::EmptyOp::create(b, loc, whole.getShape(),
                                   whole.getElementType());
  for (auto [dim, cutDim] : llvm::enumerate(sharding.dims)) {
    if (cutDim.axes.empty())
      continue;
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] *= cutDim.numShards();
    value = comm::AllGatherOp::create(
        b, loc, RankedTensorType::get(shape, type.getElementType()), value, dim,
        meshName.getValue(), toAxesAttr(b.getContext(), mesh, cutDim.axes),
        comm::CauseAttr());
  }
  SmallVector<OpFoldResult> offsets(whole.getRank(), b.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(whole.getRank(), b.getIndexAttr(1));
  SmallVector<OpFoldResult> sizes;
  for (int64_t size : whole.getShape())
    sizes.push_back(b.getIndexAttr(size));
  return tensor::ExtractSliceOp::create(b, loc, whole, value, offsets, sizes,
                                        strides);
}

/// This rank's block, after filling up the last one.
Value Naive::cut(Location loc, Value value, const Sharding &sharding) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<OpFoldResult> low(type.getRank(), b.getIndexAttr(0)), high;
  SmallVector<int64_t> shape;
  for (auto [size, dim] : llvm::zip(type.getShape(), sharding.dims)) {
    shape.push_back(blockSize(size, dim) * dim.numShards());
    high.push_back(b.getIndexAttr(shape.back() - size));
  }
  Value zero =
      arith::ConstantOp::create(b, loc, b.getZeroAttr(type.getElementType()));
  value = tensor::PadOp::create(
      b, loc, RankedTensorType::get(shape, type.getElementType()), value, low,
      high, zero);
  for (auto [dim, cutDim] : llvm::enumerate(sharding.dims)) {
    if (cutDim.axes.empty())
      continue;
    shape[dim] /= cutDim.numShards();
    value = comm::SliceOp::create(
        b, loc, RankedTensorType::get(shape, type.getElementType()), value, dim,
        meshName.getValue(), toAxesAttr(b.getContext(), mesh, cutDim.axes),
        comm::CauseAttr());
  }
  return value;
}

Sharding Naive::closed(DictionaryAttr attrs, int64_t rank) {
  Sharding result = Sharding::whole(rank, false);
  if (!attrs)
    return result;
  if (auto attr = attrs.getAs<ShardingAttr>(kShardingAttr)) {
    Sharding given = toSharding(mesh, attr);
    for (auto [mine, theirs] : llvm::zip(result.dims, given.dims))
      mine.axes = theirs.axes;
  }
  return result;
}

void Naive::setEdge(NamedAttrList &attrs, const Sharding &sharding,
                    Type whole) {
  attrs.set(kShardingAttr, toShardingAttr(b.getContext(), mesh, sharding));
  attrs.set(kGlobalTypeAttr, TypeAttr::get(whole));
}

void Naive::run(func::FuncOp function) {
  Block &block = function.getBody().front();
  b.setInsertionPointToStart(&block);
  for (BlockArgument argument : block.getArguments()) {
    auto whole = cast<RankedTensorType>(argument.getType());
    unsigned i = argument.getArgNumber();
    NamedAttrList attrs(function.getArgAttrDict(i));
    Sharding sharding = closed(function.getArgAttrDict(i), whole.getRank());
    setEdge(attrs, sharding, whole);
    function.setArgAttrs(i, attrs.getDictionary(b.getContext()));
    argument.setType(localType(whole, sharding));
    SmallPtrSet<Operation *, 4> users(argument.getUsers().begin(),
                                      argument.getUsers().end());
    Value gathered = gather(argument.getLoc(), argument, sharding, whole);
    argument.replaceUsesWithIf(gathered, [&](OpOperand &use) {
      return users.contains(use.getOwner());
    });
  }
  Operation *terminator = block.getTerminator();
  b.setInsertionPoint(terminator);
  for (OpOperand &result : terminator->getOpOperands()) {
    unsigned i = result.getOperandNumber();
    auto whole = cast<RankedTensorType>(result.get().getType());
    NamedAttrList attrs(function.getResultAttrDict(i));
    Sharding sharding = closed(function.getResultAttrDict(i), whole.getRank());
    setEdge(attrs, sharding, whole);
    function.setResultAttrs(i, attrs.getDictionary(b.getContext()));
    result.set(cut(terminator->getLoc(), result.get(), sharding));
  }
  function.setType(FunctionType::get(b.getContext(), block.getArgumentTypes(),
                                     terminator->getOperandTypes()));
}

LogicalResult partitionNaively(ModuleOp module) {
  Naive naive{OpBuilder(module.getContext()), {}, {}};
  for (MeshOp op : module.getOps<MeshOp>()) {
    naive.mesh = toMesh(op);
    naive.meshName = FlatSymbolRefAttr::get(op.getSymNameAttr());
  }
  module.walk([](Operation *op) {
    op->removeDiscardableAttr(kShardingAttr);
    if (isa<ConstraintOp, BarrierOp>(op))
      op->getResult(0).replaceAllUsesWith(op->getOperand(0));
    if (isa<ConstraintOp, BarrierOp, GroupOp>(op))
      op->erase();
  });
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isPublic() && naive.meshName)
      naive.run(function);
    for (unsigned i = 0; !function.isPublic() && i < function.getNumArguments();
         ++i)
      function.removeArgAttr(i, kShardingAttr);
    for (unsigned i = 0; !function.isPublic() && i < function.getNumResults();
         ++i)
      function.removeResultAttr(i, kShardingAttr);
  }
  return success();
}

} // namespace cleave::oracle

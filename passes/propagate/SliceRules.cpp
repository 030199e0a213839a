//===- SliceRules.cpp - Rules of slices and of insertions -----------------===//
// Along a cut dim a slice has a permutation factor: each rank keeps its block
// and trades what lies across the boundaries (comm.realign). A slice at a place
// known only at run time needs the dim whole.
//===----------------------------------------------------------------------===//
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "passes/propagate/TensorRules.h"

using namespace mlir;

namespace cleave {
namespace {

/// How one dim of a slice relates to the whole.
enum class SliceDim {
  /// All of it.
  Full,
  /// A part at a place known now.
  Static,
  /// A part at a place known at run time, or (insert) with a stride.
  Dynamic
};

template <typename Op>
SliceDim sliceDimKind(Op op, unsigned dim, int64_t wholeSize) {
  if (op.isDynamicOffset(dim) || op.isDynamicStride(dim))
    return op.getStaticSize(dim) == wholeSize ? SliceDim::Full
                                              : SliceDim::Dynamic;
  if (op.getStaticSize(dim) == wholeSize && op.getStaticStride(dim) == 1)
    return SliceDim::Full;
  bool strided = op.getStaticStride(dim) != 1;
  return strided && std::is_same_v<Op, tensor::InsertSliceOp>
             ? SliceDim::Dynamic
             : SliceDim::Static;
}

struct ExtractSliceRule
    : ShardingRuleOpInterface::ExternalModel<ExtractSliceRule,
                                             tensor::ExtractSliceOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto slice = cast<tensor::ExtractSliceOp>(op);
    llvm::SmallBitVector dropped = slice.getDroppedDims();
    ShardingRule rule;
    TensorFactors source, result;
    for (auto [i, size] : llvm::enumerate(slice.getSourceType().getShape())) {
      SliceDim kind = sliceDimKind(slice, i, size);
      // A dim that goes: its only index must come to all ranks.
      if (kind == SliceDim::Full && dropped.test(i))
        kind = SliceDim::Static;
      FactorKind factorKind = kind == SliceDim::Full ? FactorKind::PassThrough
                              : kind == SliceDim::Static
                                  ? FactorKind::Permutation
                                  : FactorKind::NeedReplication;
      source.dims.push_back({addFactor(rule, size, factorKind)});
      if (dropped.test(i))
        continue;
      if (kind == SliceDim::Dynamic)
        result.dims.push_back({addFactor(rule, slice.getStaticSize(i),
                                         FactorKind::NeedReplication)});
      else
        result.dims.push_back(source.dims[i]);
    }
    rule.operands.push_back(source);
    rule.operands.resize(op->getNumOperands());
    rule.results.push_back(result);
    return rule;
  }
  bool passesPartial(Operation *, ReductionKind,
                     const llvm::SmallBitVector &) const {
    return true;
  }
  Values partition(Operation *op, LocalBuilder &local) const {
    auto slice = cast<tensor::ExtractSliceOp>(op);
    llvm::SmallBitVector dropped = slice.getDroppedDims();
    const TensorFactors &factors = local.rule.operands[0];
    OpBuilder &b = local.builder;
    // What each rank can do alone comes first: it makes the rest smaller.
    IRMapping scalars;
    scalars.map(op->getOperands(), local.operands);
    auto offsets = slice.getMixedOffsets();
    auto sizes = slice.getMixedSizes();
    auto strides = slice.getMixedStrides();
    auto mapScalar = [&](OpFoldResult &value) {
      if (auto dynamic = dyn_cast<Value>(value))
        value = scalars.lookup(dynamic);
    };
    llvm::for_each(offsets, mapScalar);
    llvm::for_each(strides, mapScalar);
    RankedTensorType blockType = tensorType(local.operands[0]);
    SmallVector<int64_t> alone;
    for (auto [i, block] : llvm::enumerate(blockType.getShape())) {
      bool cut = isCut(local, factors, i);
      if (cut) {
        offsets[i] = b.getIndexAttr(0);
        strides[i] = b.getIndexAttr(1);
        sizes[i] = b.getIndexAttr(block);
      }
      alone.push_back(cut ? block : slice.getStaticSize(i));
    }
    Value value = tensor::ExtractSliceOp::create(
        b, local.loc, RankedTensorType::get(alone, blockType.getElementType()),
        local.operands[0], offsets, sizes, strides);
    for (auto [i, size] : llvm::enumerate(slice.getSourceType().getShape())) {
      if (!isCut(local, factors, i) ||
          (sliceDimKind(slice, i, size) == SliceDim::Full && !dropped.test(i)))
        continue;
      ArrayRef<AxisRef> axes = axesOf(local, factors, i);
      int64_t outSize = slice.getStaticSize(i);
      ArrayRef<AxisRef> outAxes = dropped.test(i) ? ArrayRef<AxisRef>() : axes;
      int64_t outBlock = ceilDiv(outSize, axesSize(outAxes));
      Value init = emptyLike(local, withDim(tensorType(value), i, outBlock));
      value = realign(local, value, init, i, size, outSize,
                      slice.getStaticOffset(i), slice.getStaticStride(i), axes,
                      outAxes);
    }
    return SmallVector<Value>{
        dropDims(local, value, local.resultType(op->getResult(0)))};
  }
};

struct InsertSliceRule
    : ShardingRuleOpInterface::ExternalModel<InsertSliceRule,
                                             tensor::InsertSliceOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto insert = cast<tensor::InsertSliceOp>(op);
    llvm::SmallBitVector dropped = insert.getDroppedDims();
    ShardingRule rule;
    TensorFactors source, dest;
    for (auto [i, size] : llvm::enumerate(insert.getDestType().getShape())) {
      SliceDim kind = sliceDimKind(insert, i, size);
      // A dim that the source lacks is placed by each rank on its own.
      if (dropped.test(i) && kind == SliceDim::Static)
        kind = SliceDim::Dynamic;
      unsigned factor =
          addFactor(rule, size,
                    kind == SliceDim::Static ? FactorKind::Permutation
                                             : FactorKind::PassThrough);
      dest.dims.push_back({factor});
      if (dropped.test(i))
        continue;
      if (kind == SliceDim::Dynamic)
        factor = addFactor(rule, insert.getStaticSize(i),
                           FactorKind::NeedReplication);
      source.dims.push_back({factor});
    }
    rule.operands = {source, dest};
    rule.operands.resize(op->getNumOperands());
    rule.results.push_back(dest);
    return rule;
  }
  bool passesPartial(Operation *, ReductionKind,
                     const llvm::SmallBitVector &partial) const {
    return partial.test(0) && partial.test(1);
  }
  Values partition(Operation *op, LocalBuilder &local) const;

private:
  static Value place(tensor::InsertSliceOp insert, LocalBuilder &local,
                     Value source);
};

/// Each rank picks, for every element of its block, the inserted one if the
/// element lies in the slice.
Value InsertSliceRule::place(tensor::InsertSliceOp insert, LocalBuilder &local,
                             Value source) {
  OpBuilder &b = local.builder;
  Location loc = local.loc;
  IRMapping scalars;
  scalars.map(insert->getOperands(), local.operands);
  llvm::SmallBitVector dropped = insert.getDroppedDims();
  SmallVector<Value> starts, strides, blockStarts;
  const TensorFactors &factors = local.rule.operands[1];
  auto asIndex = [&](OpFoldResult value) -> Value {
    if (auto dynamic = dyn_cast<Value>(value))
      return scalars.lookup(dynamic);
    return getValueOrCreateConstantIndexOp(b, loc, value);
  };
  for (OpFoldResult offset : insert.getMixedOffsets())
    starts.push_back(asIndex(offset));
  for (OpFoldResult stride : insert.getMixedStrides())
    strides.push_back(asIndex(stride));
  for (unsigned i = 0, e = starts.size(); i < e; ++i)
    blockStarts.push_back(local.blockOffset(factors.dims[i][0]));
  Value dest = local.operands[1];
  RankedTensorType type = tensorType(dest);
  AffineMap identity = b.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> iterators(type.getRank(),
                                             utils::IteratorType::parallel);
  auto body = [&](OpBuilder &b, Location loc, ValueRange args) {
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(b, loc, value);
    };
    Value inside;
    auto require = [&](Value condition) {
      inside =
          inside ? arith::AndIOp::create(b, loc, inside, condition) : condition;
    };
    SmallVector<Value> at;
    for (int64_t i = 0; i < type.getRank(); ++i) {
      Value index = linalg::IndexOp::create(b, loc, i);
      if (sliceDimKind(insert, i, insert.getDestType().getDimSize(i)) ==
          SliceDim::Full) {
        // Cut the same way in both.
        if (!dropped.test(i))
          at.push_back(index);
        continue;
      }
      index = arith::AddIOp::create(b, loc, index, blockStarts[i]);
      Value distance = arith::SubIOp::create(b, loc, index, starts[i]);
      Value quotient = distance;
      if (insert.isDynamicStride(i) || insert.getStaticStride(i) != 1) {
        quotient = arith::DivUIOp::create(b, loc, distance, strides[i]);
        Value back = arith::MulIOp::create(b, loc, quotient, strides[i]);
        require(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, back,
                                      distance));
      }
      int64_t size = insert.getStaticSize(i);
      require(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, quotient,
                                    constant(size)));
      if (!dropped.test(i))
        at.push_back(arith::MinUIOp::create(
            b, loc, quotient, constant(std::max<int64_t>(size - 1, 0))));
    }
    Value result = args[0];
    if (inside) {
      Value inserted = tensor::ExtractOp::create(b, loc, source, at);
      result = arith::SelectOp::create(b, loc, inside, inserted, args[0]);
    } else {
      result = tensor::ExtractOp::create(b, loc, source, at);
    }
    linalg::YieldOp::create(b, loc, result);
  };
  auto generic =
      linalg::GenericOp::create(b, loc, type, dest, emptyLike(local, type),
                                ArrayRef{identity, identity}, iterators, body);
  return generic.getResult(0);
}

Values InsertSliceRule::partition(Operation *op, LocalBuilder &local) const {
  auto insert = cast<tensor::InsertSliceOp>(op);
  llvm::SmallBitVector dropped = insert.getDroppedDims();
  const TensorFactors &factors = local.rule.operands[1];
  SmallVector<unsigned> cutParts;
  bool plain = true, onlyOnePart = true;
  unsigned parts = 0;
  for (auto [i, size] : llvm::enumerate(insert.getDestType().getShape())) {
    SliceDim kind = sliceDimKind(insert, i, size);
    if (kind == SliceDim::Full)
      continue;
    ++parts;
    onlyOnePart &= parts == 1 && kind == SliceDim::Static && !dropped.test(i);
    if (isCut(local, factors, i)) {
      plain = false;
      cutParts.push_back(i);
    }
  }
  if (llvm::is_contained(insert.getDestType().getShape(), 0) ||
      llvm::is_contained(insert.getSourceType().getShape(), 0))
    return SmallVector<Value>{local.operands[1]};
  Value source = local.operands[0];
  if (plain) {
    IRMapping mapping;
    mapping.map(op->getOperands(), local.operands);
    auto offsets = insert.getMixedOffsets();
    auto strides = insert.getMixedStrides();
    for (auto *list : {&offsets, &strides})
      for (OpFoldResult &value : *list)
        if (auto dynamic = dyn_cast<Value>(value))
          value = mapping.lookup(dynamic);
    SmallVector<OpFoldResult> sizes;
    for (auto [i, size] : llvm::enumerate(insert.getDestType().getShape())) {
      bool full = sliceDimKind(insert, i, size) == SliceDim::Full;
      sizes.push_back(local.builder.getIndexAttr(
          full ? tensorType(local.operands[1]).getDimSize(i)
               : insert.getStaticSize(i)));
    }
    return SmallVector<Value>{tensor::InsertSliceOp::create(
        local.builder, local.loc, source, local.operands[1], offsets, sizes,
        strides)};
  }
  if (onlyOnePart && parts == 1 &&
      insert.getSourceType().getRank() == insert.getDestType().getRank()) {
    unsigned dim = cutParts[0];
    return SmallVector<Value>{realign(
        local, source, local.operands[1], dim, insert.getStaticSize(dim),
        insert.getDestType().getDimSize(dim), -insert.getStaticOffset(dim), 1,
        axesOf(local, factors, dim), axesOf(local, factors, dim))};
  }
  // Several parts: bring the source to all ranks along the cut static parts,
  // then each rank picks.
  SmallVector<unsigned> destDims;
  for (int64_t i = 0; i < insert.getDestType().getRank(); ++i)
    if (!dropped.test(i))
      destDims.push_back(i);
  for (auto [i, destDim] : llvm::enumerate(destDims)) {
    const auto &dim = local.rule.operands[0].dims[i];
    if (local.rule.factors[dim[0]].kind != FactorKind::Permutation ||
        local.numShards(dim[0]) == 1)
      continue;
    int64_t size = insert.getStaticSize(destDim);
    Value init = emptyLike(local, withDim(tensorType(source), i, size));
    source = realign(local, source, init, i, size, size, 0, 1,
                     local.factorAxes[dim[0]], {});
  }
  return SmallVector<Value>{place(insert, local, source)};
}

} // namespace

void attachSliceRules(MLIRContext *context) {
  tensor::ExtractSliceOp::attachInterface<ExtractSliceRule>(*context);
  tensor::InsertSliceOp::attachInterface<InsertSliceRule>(*context);
}

} // namespace cleave

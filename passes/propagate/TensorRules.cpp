//===- TensorRules.cpp - Rules of ops that rearrange tensors --------------===//
// Reshapes have compound factors. Slices, pads and joins along a cut dim have
// permutation factors: each rank keeps its blocks and trades what lies across
// their boundaries (comm.realign). What depends on a number known only at run
// time needs the dim whole.
//===----------------------------------------------------------------------===//
#include "dialects/cleave/ShardingRuleOpInterface.h"
#include "dialects/comm/Comm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "passes/propagate/Rules.h"

using namespace mlir;

namespace cleave {
namespace {

using Values = FailureOr<SmallVector<Value>>;

RankedTensorType tensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

unsigned addFactor(ShardingRule &rule, int64_t size,
                   FactorKind kind = FactorKind::PassThrough) {
  rule.factors.push_back({size, kind});
  return rule.factors.size() - 1;
}

/// Fresh factors for all dims of a tensor.
TensorFactors addTensor(ShardingRule &rule, Value value, FactorKind kind) {
  TensorFactors result;
  if (auto type = dyn_cast<RankedTensorType>(value.getType()))
    for (int64_t size : type.getShape())
      result.dims.push_back({addFactor(rule, size, kind)});
  return result;
}

//===----------------------------------------------------------------------===//
// Building blocks
//===----------------------------------------------------------------------===//

Value emptyLike(LocalBuilder &local, RankedTensorType type) {
  return tensor::EmptyOp::create(local.builder, local.loc, type.getShape(),
                                 type.getElementType());
}

RankedTensorType withDim(RankedTensorType type, unsigned dim, int64_t size) {
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = size;
  return RankedTensorType::get(shape, type.getElementType());
}

/// Moves `input`, cut over `source`, into `init`, cut over `axes`.
Value realign(LocalBuilder &local, Value input, Value init, unsigned dim,
              int64_t inSize, int64_t outSize, int64_t offset, int64_t stride,
              ArrayRef<AxisRef> source, ArrayRef<AxisRef> axes) {
  MLIRContext *context = local.builder.getContext();
  return comm::RealignOp::create(
      local.builder, local.loc, tensorType(init), input, init,
      static_cast<uint64_t>(dim), inSize, outSize, offset, stride,
      toAxesAttr(context, local.mesh, source), local.meshName.getValue(),
      toAxesAttr(context, local.mesh, axes), local.cause());
}

/// Drops dims of size 1.
Value dropDims(LocalBuilder &local, Value input, RankedTensorType type) {
  if (input.getType() == type)
    return input;
  return tensor::ExtractSliceOp::rankReduceIfNeeded(local.builder, local.loc,
                                                    input, type.getShape())
      .value();
}

bool isCut(const LocalBuilder &local, const TensorFactors &factors,
           unsigned dim) {
  return llvm::any_of(factors.dims[dim], [&](unsigned factor) {
    return local.numShards(factor) > 1;
  });
}

/// Axes of a dim that has one factor or none.
ArrayRef<AxisRef> axesOf(const LocalBuilder &local,
                         const TensorFactors &factors, unsigned dim) {
  if (factors.dims[dim].empty())
    return {};
  return local.factorAxes[factors.dims[dim][0]];
}

//===----------------------------------------------------------------------===//
// Reshapes
//===----------------------------------------------------------------------===//

template <typename Op>
struct ReshapeRule
    : ShardingRuleOpInterface::ExternalModel<ReshapeRule<Op>, Op> {
  ShardingRule getShardingRule(Operation *op) const {
    auto reshape = cast<Op>(op);
    constexpr bool expands = std::is_same_v<Op, tensor::ExpandShapeOp>;
    Value fine = expands ? reshape.getResult() : reshape.getSrc();
    ShardingRule rule;
    TensorFactors split = addTensor(rule, fine, FactorKind::PassThrough);
    TensorFactors merged;
    for (const ReassociationIndices &group :
         reshape.getReassociationIndices()) {
      auto &dim = merged.dims.emplace_back();
      for (int64_t index : group)
        dim.push_back(split.dims[index][0]);
    }
    rule.operands.push_back(expands ? merged : split);
    rule.results.push_back(expands ? split : merged);
    return rule;
  }
  bool passesPartial(Operation *, ReductionKind,
                     const llvm::SmallBitVector &) const {
    return true;
  }
  Values partition(Operation *op, LocalBuilder &local) const {
    auto reshape = cast<Op>(op);
    RankedTensorType type = local.resultType(op->getResult(0));
    auto groups = reshape.getReassociationIndices();
    if constexpr (std::is_same_v<Op, tensor::ExpandShapeOp>)
      return SmallVector<Value>{tensor::ExpandShapeOp::create(
          local.builder, local.loc, type, local.operands[0], groups,
          getAsIndexOpFoldResult(op->getContext(), type.getShape()))};
    else
      return SmallVector<Value>{tensor::CollapseShapeOp::create(
          local.builder, local.loc, type, local.operands[0], groups)};
  }
};

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

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

//===----------------------------------------------------------------------===//
// Concat and pad
//===----------------------------------------------------------------------===//

struct ConcatRule
    : ShardingRuleOpInterface::ExternalModel<ConcatRule, tensor::ConcatOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto concat = cast<tensor::ConcatOp>(op);
    ShardingRule rule;
    TensorFactors factors =
        addTensor(rule, concat.getResult(), FactorKind::PassThrough);
    rule.factors[concat.getDim()].kind = FactorKind::Permutation;
    rule.operands.assign(op->getNumOperands(), factors);
    rule.results.push_back(factors);
    return rule;
  }
  bool passesPartial(Operation *, ReductionKind,
                     const llvm::SmallBitVector &partial) const {
    return partial.all();
  }
  Values partition(Operation *op, LocalBuilder &local) const {
    auto concat = cast<tensor::ConcatOp>(op);
    unsigned dim = concat.getDim();
    if (local.numShards(dim) == 1)
      return partitionByCloning(op, local);
    Value result = emptyLike(local, local.resultType(op->getResult(0)));
    int64_t total = concat.getResultType().getDimSize(dim);
    int64_t start = 0;
    for (auto [operand, block] :
         llvm::zip_equal(concat.getInputs(), local.operands)) {
      int64_t size = tensorType(operand).getDimSize(dim);
      result = realign(local, block, result, dim, size, total, -start, 1,
                       local.factorAxes[dim], local.factorAxes[dim]);
      start += size;
    }
    return SmallVector<Value>{result};
  }
};

struct PadRule
    : ShardingRuleOpInterface::ExternalModel<PadRule, tensor::PadOp> {
  static Value padValue(tensor::PadOp pad) {
    return pad.getConstantPaddingValue();
  }
  ShardingRule getShardingRule(Operation *op) const {
    auto pad = cast<tensor::PadOp>(op);
    ShardingRule rule;
    TensorFactors source, result;
    bool known = static_cast<bool>(padValue(pad));
    for (auto [i, size] : llvm::enumerate(pad.getSourceType().getShape())) {
      int64_t low = pad.getStaticLow()[i], high = pad.getStaticHigh()[i];
      int64_t outSize = pad.getResultType().getDimSize(i);
      bool fixed = !ShapedType::isDynamic(low) && !ShapedType::isDynamic(high);
      if (!known || !fixed) {
        source.dims.push_back(
            {addFactor(rule, size, FactorKind::NeedReplication)});
        result.dims.push_back(
            {addFactor(rule, outSize, FactorKind::NeedReplication)});
        continue;
      }
      FactorKind kind = low == 0 && high == 0 ? FactorKind::PassThrough
                                              : FactorKind::Permutation;
      source.dims.push_back({addFactor(rule, outSize, kind)});
      result.dims.push_back(source.dims.back());
    }
    rule.operands.push_back(source);
    rule.operands.resize(shardedOperands(op).size());
    rule.results.push_back(result);
    return rule;
  }
  bool passesPartial(Operation *op, ReductionKind kind,
                     const llvm::SmallBitVector &) const {
    auto pad = cast<tensor::PadOp>(op);
    Value value = padValue(pad);
    TypedAttr constant;
    Builder builder(op->getContext());
    return value && matchPattern(value, m_Constant(&constant)) &&
           constant == neutralElement(kind, value.getType(), builder);
  }
  Values partition(Operation *op, LocalBuilder &local) const {
    auto pad = cast<tensor::PadOp>(op);
    const TensorFactors &factors = local.rule.operands[0];
    bool anyCut = false;
    for (auto [i, size] : llvm::enumerate(pad.getSourceType().getShape()))
      anyCut |=
          isCut(local, factors, i) && size != pad.getResultType().getDimSize(i);
    if (!anyCut)
      return partitionByCloning(op, local);
    OpBuilder &b = local.builder;
    Value scalar = local.scalars.lookupOrDefault(padValue(pad));
    // A constant inside the pad's region has no place in the local program yet.
    if (Operation *def = scalar.getDefiningOp();
        def && op->isProperAncestor(def))
      scalar = b.clone(*def)->getResult(0);
    Value value = local.operands[0];
    for (auto [i, size] : llvm::enumerate(pad.getSourceType().getShape())) {
      int64_t outSize = pad.getResultType().getDimSize(i);
      int64_t low = pad.getStaticLow()[i], high = pad.getStaticHigh()[i];
      if (low == 0 && high == 0)
        continue;
      ArrayRef<AxisRef> axes = axesOf(local, factors, i);
      RankedTensorType type =
          withDim(tensorType(value), i, ceilDiv(outSize, axesSize(axes)));
      Value init =
          linalg::FillOp::create(b, local.loc, scalar, emptyLike(local, type))
              .getResult(0);
      value =
          realign(local, value, init, i, size, outSize, -low, 1, axes, axes);
    }
    return SmallVector<Value>{value};
  }
};

//===----------------------------------------------------------------------===//
// Sources
//===----------------------------------------------------------------------===//

/// Ops whose result dims are free: empty, splat.
template <typename Op>
struct SourceRule : ShardingRuleOpInterface::ExternalModel<SourceRule<Op>, Op> {
  ShardingRule getShardingRule(Operation *op) const {
    ShardingRule rule;
    rule.operands.resize(op->getNumOperands());
    rule.results.push_back(
        addTensor(rule, op->getResult(0), FactorKind::PassThrough));
    return rule;
  }
};

struct ConstantRule
    : ShardingRuleOpInterface::ExternalModel<ConstantRule, arith::ConstantOp> {
  ShardingRule getShardingRule(Operation *op) const {
    ShardingRule rule;
    rule.results.push_back(
        addTensor(rule, op->getResult(0), FactorKind::PassThrough));
    return rule;
  }
  /// A splat is made smaller; of other constants each rank keeps its part.
  Values partition(Operation *op, LocalBuilder &local) const {
    auto constant = cast<arith::ConstantOp>(op);
    RankedTensorType type = local.resultType(op->getResult(0));
    OpBuilder &b = local.builder;
    auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
    if (dense && dense.isSplat())
      return SmallVector<Value>{arith::ConstantOp::create(
          b, local.loc, type, dense.resizeSplat(type))};
    Value value = arith::ConstantOp::create(
        b, local.loc, op->getResult(0).getType(), constant.getValue());
    for (auto [i, dim] : llvm::enumerate(local.rule.results[0].dims)) {
      int64_t shards = local.numShards(dim[0]);
      if (shards == 1)
        continue;
      int64_t padded = shards * local.blockSize(dim[0]);
      RankedTensorType whole = tensorType(value);
      if (padded != whole.getDimSize(i)) {
        SmallVector<OpFoldResult> low(whole.getRank(), b.getIndexAttr(0));
        SmallVector<OpFoldResult> high = low;
        high[i] = b.getIndexAttr(padded - whole.getDimSize(i));
        Value zero = arith::ConstantOp::create(
            b, local.loc, b.getZeroAttr(whole.getElementType()));
        value = tensor::PadOp::create(b, local.loc, withDim(whole, i, padded),
                                      value, low, high, zero);
      }
      value = comm::SliceOp::create(
          b, local.loc, withDim(whole, i, local.blockSize(dim[0])), value,
          static_cast<uint64_t>(i), local.meshName.getValue(),
          toAxesAttr(op->getContext(), local.mesh, local.factorAxes[dim[0]]),
          local.cause());
    }
    return SmallVector<Value>{value};
  }
};

/// Ops that need their operands whole and give whole results.
template <typename Op>
struct WholeRule : ShardingRuleOpInterface::ExternalModel<WholeRule<Op>, Op> {
  ShardingRule getShardingRule(Operation *op) const {
    ShardingRule rule;
    for (Value operand : shardedOperands(op))
      rule.operands.push_back(
          addTensor(rule, operand, FactorKind::NeedReplication));
    for (Value result : op->getResults())
      rule.results.push_back(
          addTensor(rule, result, FactorKind::NeedReplication));
    return rule;
  }
};

//===----------------------------------------------------------------------===//
// Hints
//===----------------------------------------------------------------------===//

template <typename Op>
struct IdentityRule
    : ShardingRuleOpInterface::ExternalModel<IdentityRule<Op>, Op> {
  ShardingRule getShardingRule(Operation *op) const {
    ShardingRule rule;
    TensorFactors factors =
        addTensor(rule, op->getOperand(0), FactorKind::PassThrough);
    rule.operands.push_back(factors);
    rule.results.push_back(factors);
    rule.elementwise = true;
    return rule;
  }
  bool passesPartial(Operation *, ReductionKind,
                     const llvm::SmallBitVector &) const {
    return true;
  }
  Values partition(Operation *, LocalBuilder &local) const {
    return SmallVector<Value>{local.operands[0]};
  }
};

} // namespace

void registerTensorRules(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, tensor::TensorDialect *) {
    using namespace tensor;
    ExpandShapeOp::attachInterface<ReshapeRule<ExpandShapeOp>>(*context);
    CollapseShapeOp::attachInterface<ReshapeRule<CollapseShapeOp>>(*context);
    ExtractSliceOp::attachInterface<ExtractSliceRule>(*context);
    InsertSliceOp::attachInterface<InsertSliceRule>(*context);
    ConcatOp::attachInterface<ConcatRule>(*context);
    PadOp::attachInterface<PadRule>(*context);
    EmptyOp::attachInterface<SourceRule<EmptyOp>>(*context);
    SplatOp::attachInterface<SourceRule<SplatOp>>(*context);
    ExtractOp::attachInterface<WholeRule<ExtractOp>>(*context);
    FromElementsOp::attachInterface<WholeRule<FromElementsOp>>(*context);
    CastOp::attachInterface<IdentityRule<CastOp>>(*context);
  });
  registry.addExtension(+[](MLIRContext *context, arith::ArithDialect *) {
    arith::ConstantOp::attachInterface<ConstantRule>(*context);
  });
  registry.addExtension(+[](MLIRContext *context, CleaveDialect *) {
    ConstraintOp::attachInterface<IdentityRule<ConstraintOp>>(*context);
    BarrierOp::attachInterface<IdentityRule<BarrierOp>>(*context);
  });
}

} // namespace cleave

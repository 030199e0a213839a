//===- TensorRules.cpp - Rules of ops that rearrange tensors --------------===//
// Reshapes have compound factors. Pads and joins along a cut dim have
// permutation factors: each rank keeps its blocks and trades what lies across
// their boundaries (comm.realign). Slices have a file of their own.
//===----------------------------------------------------------------------===//
#include "passes/propagate/TensorRules.h"
#include "dialects/comm/Comm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "passes/propagate/Rules.h"

using namespace mlir;

namespace cleave {

//===----------------------------------------------------------------------===//
// Building blocks
//===----------------------------------------------------------------------===//

RankedTensorType tensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

unsigned addFactor(ShardingRule &rule, int64_t size, FactorKind kind) {
  rule.factors.push_back({size, kind});
  return rule.factors.size() - 1;
}

TensorFactors addTensor(ShardingRule &rule, Value value, FactorKind kind) {
  TensorFactors result;
  if (auto type = dyn_cast<RankedTensorType>(value.getType()))
    for (int64_t size : type.getShape())
      result.dims.push_back({addFactor(rule, size, kind)});
  return result;
}

Value emptyLike(LocalBuilder &local, RankedTensorType type) {
  return tensor::EmptyOp::create(local.builder, local.loc, type.getShape(),
                                 type.getElementType());
}

RankedTensorType withDim(RankedTensorType type, unsigned dim, int64_t size) {
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = size;
  return RankedTensorType::get(shape, type.getElementType());
}

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

ArrayRef<AxisRef> axesOf(const LocalBuilder &local,
                         const TensorFactors &factors, unsigned dim) {
  if (factors.dims[dim].empty())
    return {};
  return local.factorAxes[factors.dims[dim][0]];
}

namespace {

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
    attachSliceRules(context);
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

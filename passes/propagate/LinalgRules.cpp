//===- LinalgRules.cpp - Rules of linalg ops from their indexing maps -----===//
// A structured op's loops are its factors: parallel loops pass through, and
// reduction loops reduce with the kind that the combiner in the body tells. A
// tensor that the body reads by tensor.extract counts as one more operand. How
// the op is built on one rank stands in LinalgBlocks.cpp.
//===----------------------------------------------------------------------===//
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "passes/propagate/BodyAnalysis.h"
#include "passes/propagate/LinalgBlocks.h"
#include "passes/propagate/Rules.h"

using namespace mlir;

namespace cleave {
namespace {

//===----------------------------------------------------------------------===//
// The rule
//===----------------------------------------------------------------------===//

/// How lookups in parts of a table combine: those outside a part give zero.
ReductionKind lookupKind(Type elementType) {
  return elementType.isInteger(1) ? ReductionKind::Or : ReductionKind::Sum;
}

/// The one kind with which all results of `op` reduce.
std::optional<ReductionKind> reductionKind(linalg::LinalgOp op) {
  std::optional<ReductionKind> kind;
  for (auto [i, acc] : llvm::enumerate(op.getRegionOutputArgs())) {
    SmallVector<Operation *> combiners;
    Value reduced = matchReduction(op.getRegionOutputArgs(), i, combiners);
    if (!reduced || combiners.size() != 1)
      return std::nullopt;
    std::optional<ReductionKind> own = combinerKind(combiners[0]);
    if (!own || (kind && *kind != *own))
      return std::nullopt;
    kind = own;
  }
  return kind;
}

/// Factors of a dim, by the expression that indexes it.
class RuleMaker {
public:
  explicit RuleMaker(linalg::LinalgOp op) : op(op) {}
  ShardingRule make();

private:
  unsigned addWhole(int64_t size) {
    rule.factors.push_back({size, FactorKind::NeedReplication});
    return rule.factors.size() - 1;
  }
  SmallVector<int64_t, 4> loopSizes(ArrayRef<AffineMap> maps);
  TensorFactors factorsOf(AffineMap map, ArrayRef<int64_t> shape);
  TensorFactors factorsOfCaptured(Value table);
  /// The loop whose index all extracts of `table` use at `dim`, if one does.
  std::optional<unsigned> loopAt(ArrayRef<tensor::ExtractOp> extracts,
                                 unsigned dim);
  bool isLookup(ArrayRef<tensor::ExtractOp> extracts);

  linalg::LinalgOp op;
  ShardingRule rule;
};

TensorFactors RuleMaker::factorsOf(AffineMap map, ArrayRef<int64_t> shape) {
  TensorFactors result;
  for (auto [expr, size] : llvm::zip_equal(map.getResults(), shape)) {
    auto &dim = result.dims.emplace_back();
    if (auto loop = dyn_cast<AffineDimExpr>(expr)) {
      dim.push_back(loop.getPosition());
      continue;
    }
    // A window (d0 + d1), or a constant: the dim must be whole, and so must
    // every loop that indexes it, or the blocks would not match.
    expr.walk([&](AffineExpr inner) {
      if (auto loop = dyn_cast<AffineDimExpr>(inner))
        rule.factors[loop.getPosition()].kind = FactorKind::NeedReplication;
    });
    dim.push_back(addWhole(size));
  }
  return result;
}

std::optional<unsigned> RuleMaker::loopAt(ArrayRef<tensor::ExtractOp> extracts,
                                          unsigned dim) {
  std::optional<unsigned> loop;
  for (tensor::ExtractOp extract : extracts) {
    auto index = extract.getIndices()[dim].getDefiningOp<linalg::IndexOp>();
    if (!index || (loop && *loop != index.getDim()))
      return std::nullopt;
    loop = index.getDim();
  }
  return loop;
}

/// Whether adding up lookups in parts of the table gives the lookup in all of
/// it: one extract, and what is yielded is linear in it.
bool RuleMaker::isLookup(ArrayRef<tensor::ExtractOp> extracts) {
  if (extracts.size() != 1 || op->getNumResults() != 1 ||
      extracts[0]->getBlock() != op.getBlock())
    return false;
  tensor::ExtractOp extract = extracts[0];
  llvm::DenseMap<Value, Partiality> known;
  known[extract.getResult()] = Partiality::Partial;
  for (BlockArgument acc : op.getRegionOutputArgs())
    known[acc] = Partiality::Partial;
  SmallVector<Partiality> yielded =
      analyzeBody(*op.getBlock(), lookupKind(extract.getType()), known);
  return yielded[0] == Partiality::Partial;
}

TensorFactors RuleMaker::factorsOfCaptured(Value table) {
  auto type = cast<RankedTensorType>(table.getType());
  SmallVector<tensor::ExtractOp> extracts = extractsOf(op, table);
  bool onlyExtracts = llvm::all_of(table.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    return !op->isProperAncestor(user) || isa<tensor::ExtractOp>(user);
  });
  bool lookup = onlyExtracts && isLookup(extracts);
  ReductionKind kind = lookupKind(type.getElementType());
  TensorFactors result;
  for (auto [i, size] : llvm::enumerate(type.getShape())) {
    auto &dim = result.dims.emplace_back();
    std::optional<unsigned> loop =
        onlyExtracts ? loopAt(extracts, i) : std::nullopt;
    if (loop && rule.factors[*loop].size == size) {
      dim.push_back(*loop);
    } else if (lookup) {
      dim.push_back(rule.factors.size());
      rule.factors.push_back({size, FactorKind::Reduction, kind});
    } else {
      dim.push_back(addWhole(size));
    }
  }
  return result;
}

/// The size of each loop, from the dims that it indexes alone. Only where there
/// is none are the maps inverted, which builds new ones.
SmallVector<int64_t, 4> RuleMaker::loopSizes(ArrayRef<AffineMap> maps) {
  SmallVector<int64_t, 4> sizes(op.getNumLoops(), ShapedType::kDynamic);
  for (auto [value, map] : llvm::zip_equal(op->getOperands(), maps)) {
    auto type = dyn_cast<ShapedType>(value.getType());
    if (!type)
      continue;
    for (auto [expr, size] : llvm::zip_equal(map.getResults(), type.getShape()))
      if (auto loop = dyn_cast<AffineDimExpr>(expr))
        sizes[loop.getPosition()] = size;
  }
  return llvm::is_contained(sizes, ShapedType::kDynamic)
             ? op.getStaticLoopRanges()
             : sizes;
}

ShardingRule RuleMaker::make() {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  std::optional<ReductionKind> kind = reductionKind(op);
  for (auto [iterator, size] :
       llvm::zip_equal(op.getIteratorTypesArray(), loopSizes(maps))) {
    Factor factor{size};
    if (iterator != utils::IteratorType::parallel) {
      factor.kind = kind ? FactorKind::Reduction : FactorKind::NeedReplication;
      factor.reduction = kind.value_or(ReductionKind::Sum);
    }
    rule.factors.push_back(factor);
  }
  for (auto [operand, map] : llvm::zip_equal(op->getOperands(), maps)) {
    auto type = dyn_cast<RankedTensorType>(operand.getType());
    if (!type)
      rule.operands.emplace_back();
    else
      rule.operands.push_back(factorsOf(map, type.getShape()));
  }
  for (OpOperand &init : op.getDpsInitsMutable())
    rule.results.push_back(rule.operands[init.getOperandNumber()]);
  auto values = shardedOperands(op);
  for (Value table : ArrayRef(values).drop_front(op->getNumOperands()))
    rule.operands.push_back(factorsOfCaptured(table));
  if (llvm::any_of(rule.factors, [](const Factor &factor) {
        return factor.kind == FactorKind::Reduction;
      }))
    for (OpOperand &init : op.getDpsInitsMutable())
      if (op.payloadUsesValueFromOperand(&init))
        rule.accumulators.push_back(init.getOperandNumber());
  rule.elementwise =
      op.getNumParallelLoops() == op.getNumLoops() &&
      llvm::all_of(maps, [](AffineMap map) { return map.isPermutation(); });
  return rule;
}

//===----------------------------------------------------------------------===//
// The model
//===----------------------------------------------------------------------===//

bool bodyPassesPartial(linalg::LinalgOp op, ReductionKind kind,
                       const llvm::SmallBitVector &partial) {
  Builder builder(op->getContext());
  llvm::DenseMap<Value, Partiality> known;
  for (OpOperand &operand : op->getOpOperands()) {
    BlockArgument arg = op.getMatchingBlockArgument(&operand);
    Type type = getElementTypeOrSelf(operand.get().getType());
    if (partial.test(operand.getOperandNumber()))
      known[arg] = Partiality::Partial;
    else if (type.isIntOrIndexOrFloat() &&
             isSplatOf(operand.get(), neutralElement(kind, type, builder)))
      known[arg] = Partiality::Neutral;
  }
  SmallVector<Value> values = shardedOperands(op);
  for (unsigned i = op->getNumOperands(); i < values.size(); ++i)
    if (partial.test(i))
      for (tensor::ExtractOp extract : extractsOf(op, values[i]))
        known[extract.getResult()] = Partiality::Partial;
  while (true) {
    SmallVector<Partiality> yielded = analyzeBody(*op.getBlock(), kind, known);
    if (llvm::any_of(yielded, [](Partiality p) {
          return p != Partiality::Partial && p != Partiality::Neutral;
        }))
      return false;
    // What a reduction yields it reads again: summands are then multiplied by
    // summands where the first trip multiplied one by the initial value.
    bool changed = false;
    if (op.getNumParallelLoops() < op.getNumLoops())
      for (auto [acc, next] :
           llvm::zip_equal(op.getRegionOutputArgs(), yielded))
        if (Partiality &now = known[acc];
            next == Partiality::Partial && now != next) {
          now = next;
          changed = true;
        }
    if (!changed)
      return true;
  }
}

template <typename Op>
struct LinalgRule : ShardingRuleOpInterface::ExternalModel<LinalgRule<Op>, Op> {
  ShardingRule getShardingRule(Operation *op) const {
    return RuleMaker(cast<linalg::LinalgOp>(op)).make();
  }
  bool passesPartial(Operation *op, ReductionKind kind,
                     const llvm::SmallBitVector &partial) const {
    return bodyPassesPartial(cast<linalg::LinalgOp>(op), kind, partial);
  }
  FailureOr<SmallVector<Value>> partition(Operation *op,
                                          LocalBuilder &local) const {
    return partitionLinalg(cast<linalg::LinalgOp>(op), local);
  }
};

template <typename... Ops> void attachAll(MLIRContext *context) {
  (Ops::template attachInterface<LinalgRule<Ops>>(*context), ...);
}

} // namespace

void registerLinalgRules(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, linalg::LinalgDialect *) {
    attachAll<
#define GET_OP_LIST
#include "mlir/Dialect/Linalg/IR/LinalgStructuredOps.cpp.inc"
        >(context);
  });
}

} // namespace cleave

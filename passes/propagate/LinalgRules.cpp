//===- LinalgRules.cpp - Rules of linalg ops from their indexing maps -----===//
// A structured op's loops are its factors: parallel loops pass through, and
// reduction loops reduce with the kind that the combiner in the body tells. A
// tensor that the body reads by tensor.extract counts as one more operand.
//
// On one rank the op is the same on blocks, with three repairs in its body:
// linalg.index is made global again, what lies beyond the end of an uneven dim
// is kept out of reductions, and indices into captured tensors are made local.
//===----------------------------------------------------------------------===//
#include "dialects/cleave/ShardingRuleOpInterface.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "passes/propagate/BodyAnalysis.h"
#include "passes/propagate/Rules.h"

using namespace mlir;

namespace cleave {

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

std::optional<ReductionKind> combinerKind(Operation *op) {
  using Result = std::optional<ReductionKind>;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case<arith::AddFOp, arith::AddIOp>(
          [](auto) { return ReductionKind::Sum; })
      .Case<arith::MulFOp, arith::MulIOp>(
          [](auto) { return ReductionKind::Prod; })
      .Case<arith::MaximumFOp, arith::MaxSIOp>(
          [](auto) { return ReductionKind::Max; })
      .Case<arith::MinimumFOp, arith::MinSIOp>(
          [](auto) { return ReductionKind::Min; })
      .Case<arith::MaxUIOp>([](auto) { return ReductionKind::UMax; })
      .Case<arith::MinUIOp>([](auto) { return ReductionKind::UMin; })
      .Case<arith::MaxNumFOp>([](auto) { return ReductionKind::MaxNum; })
      .Case<arith::MinNumFOp>([](auto) { return ReductionKind::MinNum; })
      .Case<arith::AndIOp>([](auto) { return ReductionKind::And; })
      .Case<arith::OrIOp>([](auto) { return ReductionKind::Or; })
      .Case<arith::XOrIOp>([](auto) { return ReductionKind::Xor; })
      .Default([](Operation *) { return std::nullopt; });
}

static TypedAttr neutralFloat(ReductionKind kind, FloatType type) {
  const llvm::fltSemantics &semantics = type.getFloatSemantics();
  switch (kind) {
  case ReductionKind::Sum:
    return FloatAttr::get(type, APFloat::getZero(semantics));
  case ReductionKind::Prod:
    return FloatAttr::get(type, APFloat::getOne(semantics));
  case ReductionKind::Max:
    return FloatAttr::get(type, APFloat::getInf(semantics, /*Negative=*/true));
  case ReductionKind::Min:
    return FloatAttr::get(type, APFloat::getInf(semantics));
  case ReductionKind::MaxNum:
  case ReductionKind::MinNum:
    return FloatAttr::get(type, APFloat::getNaN(semantics));
  default:
    // Bitwise and unsigned reductions are for integers.
    return nullptr;
  }
}

TypedAttr neutralElement(ReductionKind kind, Type elementType,
                         Builder &builder) {
  if (auto type = dyn_cast<FloatType>(elementType))
    return neutralFloat(kind, type);
  unsigned width =
      elementType.isIndex() ? 64 : elementType.getIntOrFloatBitWidth();
  auto get = [&](const APInt &value) {
    return builder.getIntegerAttr(elementType, value);
  };
  switch (kind) {
  case ReductionKind::Prod:
    return get(APInt(width, 1));
  case ReductionKind::Max:
    return get(APInt::getSignedMinValue(width));
  case ReductionKind::Min:
    return get(APInt::getSignedMaxValue(width));
  case ReductionKind::UMin:
  case ReductionKind::And:
    return get(APInt::getAllOnes(width));
  case ReductionKind::MaxNum:
  case ReductionKind::MinNum:
    // For floats.
    return nullptr;
  default:
    return get(APInt::getZero(width));
  }
}

bool isSplatOf(Value tensor, TypedAttr element) {
  Operation *op = tensor.getDefiningOp();
  if (!op || !element)
    return false;
  Value scalar;
  if (auto fill = dyn_cast<linalg::FillOp>(op))
    scalar = fill.getInputs()[0];
  else if (auto splat = dyn_cast<tensor::SplatOp>(op))
    scalar = splat.getInput();
  if (scalar) {
    TypedAttr constant;
    return matchPattern(scalar, m_Constant(&constant)) && constant == element;
  }
  DenseElementsAttr dense;
  if (!matchPattern(tensor, m_Constant(&dense)) || !dense.isSplat())
    return false;
  if (auto floats = dyn_cast<FloatAttr>(element))
    return dense.getSplatValue<FloatAttr>() == floats;
  return dense.getSplatValue<IntegerAttr>() == element;
}

Value keepOnlyFirst(OpBuilder &builder, Location loc, Value tensor,
                    ReductionKind kind, Value coordinate) {
  auto type = cast<RankedTensorType>(tensor.getType());
  TypedAttr neutral = neutralElement(kind, type.getElementType(), builder);
  if (isSplatOf(tensor, neutral))
    return tensor;
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value isFirst = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                        coordinate, zero);
  Value fallback = arith::ConstantOp::create(builder, loc, neutral);
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                        type.getElementType());
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> iterators(type.getRank(),
                                             utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(
      builder, loc, type, tensor, empty, ArrayRef{identity, identity},
      iterators, [&](OpBuilder &b, Location bodyLoc, ValueRange args) {
        Value chosen =
            arith::SelectOp::create(b, bodyLoc, isFirst, args[0], fallback);
        linalg::YieldOp::create(b, bodyLoc, chosen);
      });
  return generic.getResult(0);
}

//===----------------------------------------------------------------------===//
// The rule
//===----------------------------------------------------------------------===//

namespace {

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

SmallVector<tensor::ExtractOp> extractsOf(Operation *op, Value table) {
  SmallVector<tensor::ExtractOp> result;
  op->walk([&](tensor::ExtractOp extract) {
    if (extract.getTensor() == table)
      result.push_back(extract);
  });
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
// On one rank
//===----------------------------------------------------------------------===//

/// Repairs the body of a structured op that was cloned on blocks.
class BodyRepair {
public:
  BodyRepair(linalg::LinalgOp global, LocalBuilder &local)
      : global(global), local(local), rewriter(local.builder.getContext()) {}
  FailureOr<SmallVector<Value>> run();

private:
  bool dividesIntegers();
  bool isUneven(unsigned loop) const { return local.isUneven(loop); }
  bool anyUneven();
  bool needsMask();
  /// Blocks of the operands, inits counting on one rank only.
  SmallVector<Value> makeOperands();
  void rewriteExtracts();
  void rewriteExtract(tensor::ExtractOp extract, const TensorFactors &table);
  void globalizeIndices();
  void maskReductions();
  void guardDivisions();
  /// Whether the body's indices lie in all of these loops.
  Value inBounds(ArrayRef<unsigned> loops);
  Value constant(int64_t value) {
    return arith::ConstantIndexOp::create(rewriter, local.loc, value);
  }

  linalg::LinalgOp global;
  LocalBuilder &local;
  IRRewriter rewriter;
  linalg::LinalgOp op;
  /// linalg.index ops that mean the index in the block.
  llvm::SmallPtrSet<Operation *, 4> localIndices;
  /// What the block offset of a loop is, built before the op on first use.
  llvm::DenseMap<unsigned, Value> offsets;
  Value offset(unsigned loop);
};

bool isIntegerDivision(Operation *op) {
  return isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp,
             arith::CeilDivSIOp, arith::CeilDivUIOp, arith::FloorDivSIOp>(op);
}

bool BodyRepair::dividesIntegers() {
  return global
      ->walk([](Operation *inner) {
        return isIntegerDivision(inner) ? WalkResult::interrupt()
                                        : WalkResult::advance();
      })
      .wasInterrupted();
}

bool BodyRepair::anyUneven() {
  for (unsigned loop = 0, e = global.getNumLoops(); loop < e; ++loop)
    if (isUneven(loop))
      return true;
  return false;
}

bool BodyRepair::needsMask() {
  for (auto [loop, iterator] : llvm::enumerate(global.getIteratorTypesArray()))
    if (iterator != utils::IteratorType::parallel && isUneven(loop))
      return true;
  return anyUneven() && dividesIntegers();
}

SmallVector<Value> BodyRepair::makeOperands() {
  SmallVector<Value> operands(local.operands);
  AxisList reduced;
  ReductionKind kind = ReductionKind::Sum;
  for (auto [factor, axes] : llvm::zip(local.rule.factors, local.factorAxes))
    if (factor.kind == FactorKind::Reduction) {
      llvm::append_range(reduced, axes);
      if (axesSize(axes) > 1)
        kind = factor.reduction;
    }
  if (axesSize(reduced) == 1)
    return operands;
  for (unsigned i : local.rule.accumulators) {
    // Along axes where it is summands already it counts on every rank.
    AxisList whole = withoutAxes(reduced, local.partialAxes(i));
    if (axesSize(whole) > 1)
      operands[i] = keepOnlyFirst(local.builder, local.loc, operands[i], kind,
                                  local.coordinate(whole));
  }
  return operands;
}

Value BodyRepair::offset(unsigned loop) {
  Value &value = offsets[loop];
  if (!value) {
    OpBuilder::InsertionGuard guard(local.builder);
    local.builder.setInsertionPoint(op);
    value = local.blockOffset(loop);
  }
  return value;
}

Value BodyRepair::inBounds(ArrayRef<unsigned> loops) {
  Value all;
  for (unsigned loop : loops) {
    Value start = offset(loop);
    auto index = linalg::IndexOp::create(rewriter, local.loc, loop);
    localIndices.insert(index);
    Value position = arith::AddIOp::create(rewriter, local.loc, index, start);
    Value inside = arith::CmpIOp::create(
        rewriter, local.loc, arith::CmpIPredicate::ult, position,
        constant(local.rule.factors[loop].size));
    all =
        all ? arith::AndIOp::create(rewriter, local.loc, all, inside) : inside;
  }
  return all;
}

void BodyRepair::rewriteExtract(tensor::ExtractOp extract,
                                const TensorFactors &table) {
  rewriter.setInsertionPoint(extract);
  auto type = cast<RankedTensorType>(extract.getTensor().getType());
  SmallVector<Value> indices(extract.getIndices());
  Value found;
  for (auto [i, dim] : llvm::enumerate(table.dims)) {
    unsigned factor = dim[0];
    if (factor < global.getNumLoops()) {
      auto index = linalg::IndexOp::create(rewriter, local.loc, factor);
      localIndices.insert(index);
      indices[i] = index;
      continue;
    }
    Value last = constant(std::max<int64_t>(type.getDimSize(i) - 1, 0));
    if (local.numShards(factor) > 1) {
      OpBuilder::InsertionGuard guard(local.builder);
      local.builder.setInsertionPoint(op);
      Value start = local.blockOffset(factor);
      indices[i] =
          arith::SubIOp::create(rewriter, local.loc, indices[i], start);
      Value inside = arith::CmpIOp::create(
          rewriter, local.loc, arith::CmpIPredicate::ule, indices[i], last);
      found = found ? arith::AndIOp::create(rewriter, local.loc, found, inside)
                    : inside;
    } else if (!anyUneven()) {
      continue;
    }
    // Other parts of the table, or padding of the index tensor, must not lead
    // outside this block.
    indices[i] = arith::MinUIOp::create(rewriter, local.loc, indices[i], last);
  }
  rewriter.modifyOpInPlace(
      extract, [&] { extract.getIndicesMutable().assign(indices); });
  if (!found)
    return;
  rewriter.setInsertionPointAfter(extract);
  Value zero = arith::ConstantOp::create(
      rewriter, local.loc, rewriter.getZeroAttr(extract.getType()));
  auto select = arith::SelectOp::create(rewriter, local.loc, found,
                                        extract.getResult(), zero);
  rewriter.replaceAllUsesExcept(extract.getResult(), select, select);
}

void BodyRepair::rewriteExtracts() {
  unsigned numOperands = global->getNumOperands();
  for (auto [i, block] : llvm::enumerate(local.operands)) {
    if (i < numOperands)
      continue;
    for (tensor::ExtractOp extract : extractsOf(op, block))
      rewriteExtract(extract, local.rule.operands[i]);
  }
}

void BodyRepair::globalizeIndices() {
  SmallVector<linalg::IndexOp> indices;
  op->walk([&](linalg::IndexOp index) {
    if (!localIndices.contains(index) && local.numShards(index.getDim()) > 1)
      indices.push_back(index);
  });
  for (linalg::IndexOp index : indices) {
    Value start = offset(index.getDim());
    rewriter.setInsertionPointAfter(index);
    auto sum = arith::AddIOp::create(rewriter, local.loc, index, start);
    rewriter.replaceAllUsesExcept(index.getResult(), sum, sum);
  }
}

void BodyRepair::guardDivisions() {
  SmallVector<unsigned> loops;
  for (unsigned loop = 0, e = global.getNumLoops(); loop < e; ++loop)
    if (isUneven(loop))
      loops.push_back(loop);
  SmallVector<Operation *> divisions;
  op->walk([&](Operation *inner) {
    if (isIntegerDivision(inner))
      divisions.push_back(inner);
  });
  if (loops.empty() || divisions.empty())
    return;
  rewriter.setInsertionPointToStart(op.getBlock());
  Value inside = inBounds(loops);
  for (Operation *division : divisions) {
    rewriter.setInsertionPoint(division);
    Value divisor = division->getOperand(1);
    Value one = arith::ConstantOp::create(
        rewriter, local.loc,
        cast<TypedAttr>(rewriter.getIntegerAttr(divisor.getType(), 1)));
    Value safe =
        arith::SelectOp::create(rewriter, local.loc, inside, divisor, one);
    rewriter.modifyOpInPlace(division, [&] { division->setOperand(1, safe); });
  }
}

void BodyRepair::maskReductions() {
  SmallVector<unsigned> loops;
  for (auto [loop, iterator] : llvm::enumerate(global.getIteratorTypesArray()))
    if (iterator != utils::IteratorType::parallel && isUneven(loop))
      loops.push_back(loop);
  if (loops.empty())
    return;
  Operation *yield = op.getBlock()->getTerminator();
  rewriter.setInsertionPoint(yield);
  Value inside = inBounds(loops);
  for (auto [i, acc] : llvm::enumerate(op.getRegionOutputArgs())) {
    Value kept = arith::SelectOp::create(rewriter, local.loc, inside,
                                         yield->getOperand(i), acc);
    rewriter.modifyOpInPlace(yield, [&] { yield->setOperand(i, kept); });
  }
}

FailureOr<SmallVector<Value>> BodyRepair::run() {
  SmallVector<Value> operands = makeOperands();
  LocalBuilder withInits = local;
  withInits.operands = operands;
  op = cast<linalg::LinalgOp>(cloneLocal(global, withInits));
  OpBuilder::InsertionGuard guard(local.builder);
  if (needsMask() && !isa<linalg::GenericOp>(op.getOperation())) {
    rewriter.setInsertionPoint(op);
    FailureOr<linalg::GenericOp> generic =
        linalg::generalizeNamedOp(rewriter, op);
    if (failed(generic))
      return global->emitOpError()
             << "has a dim that the mesh does not divide, and cannot be "
                "written as linalg.generic to leave out the padding";
    op = cast<linalg::LinalgOp>(generic->getOperation());
  }
  rewriteExtracts();
  globalizeIndices();
  if (needsMask()) {
    guardDivisions();
    maskReductions();
  }
  local.builder.setInsertionPointAfter(op);
  return SmallVector<Value>(op->getResults());
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
    return BodyRepair(cast<linalg::LinalgOp>(op), local).run();
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

//===- LinalgBlocks.cpp - Structured ops on one rank ----------------------===//
// On one rank an op is the same on blocks, with three repairs in its body:
// linalg.index is made global again, what lies beyond the end of an uneven dim
// is kept out of reductions, and indices into captured tensors are made local.
//===----------------------------------------------------------------------===//
#include "passes/propagate/LinalgBlocks.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "passes/propagate/Rules.h"

using namespace mlir;

namespace cleave {

SmallVector<tensor::ExtractOp> extractsOf(Operation *op, Value table) {
  SmallVector<tensor::ExtractOp> result;
  op->walk([&](tensor::ExtractOp extract) {
    if (extract.getTensor() == table)
      result.push_back(extract);
  });
  return result;
}

namespace {

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

} // namespace

FailureOr<SmallVector<Value>> partitionLinalg(linalg::LinalgOp op,
                                              LocalBuilder &local) {
  return BodyRepair(op, local).run();
}

} // namespace cleave

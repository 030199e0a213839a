//===- DelayReductions.cpp - Reduce later where it is less ----------------===//
// Propagation decides where partial values are reduced among the ops of the
// model. What it cannot see are the reductions that partitioning adds: those of
// two values that meet, and those inside of loops. An op passes summands if its
// sharding rule says so.
//===----------------------------------------------------------------------===//
#include "dialects/cleave/ShardingRuleOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "passes/comm/CommUtils.h"
#include "passes/comm/Passes.h"
#include "passes/comm/Variation.h"
#include "passes/propagate/ProgramGraph.h"
#include "passes/propagate/Rules.h"
#define DEBUG_TYPE "cleave-delay-reductions"

using namespace mlir;

namespace cleave {
#define GEN_PASS_DEF_DELAYREDUCTIONS
#include "passes/comm/Passes.h.inc"
} // namespace cleave

namespace {
using namespace cleave;
using namespace cleave::comm;

struct DelayReductions : cleave::impl::DelayReductionsBase<DelayReductions> {
  using Base::Base;
  void runOnOperation() override;
};

/// Reductions of one kind over the same ranks that one op reads.
struct Reductions {
  SmallVector<OpOperand *> uses;
  AllReduceOp first;

  int64_t bytes() const {
    int64_t sum = 0;
    for (OpOperand *use : uses)
      sum += blockBytes(use->get());
    return sum;
  }
  CauseAttr cause() {
    SmallVector<CauseAttr> causes;
    for (OpOperand *use : uses)
      causes.push_back(use->get().getDefiningOp<AllReduceOp>().getCauseAttr());
    return joinCauses(first.getContext(), causes);
  }
};

/// Those of `op`'s operands that nothing else reads and that match the first.
Reductions reductionsInto(linalg::LinalgOp op) {
  Reductions found;
  for (OpOperand &operand : op->getOpOperands()) {
    auto reduce = operand.get().getDefiningOp<AllReduceOp>();
    if (!reduce || !reduce->hasOneUse() || reduce->getBlock() != op->getBlock())
      continue;
    if (!found.first)
      found.first = reduce;
    if (reduce.getKind() == found.first.getKind() &&
        reduce.getMeshAttr() == found.first.getMeshAttr() &&
        reduce.getAxes() == found.first.getAxes())
      found.uses.push_back(&operand);
  }
  return found;
}

/// All that `op` reads besides the summands is the same on the ranks that are
/// reduced: otherwise each would compute something else from the sum.
bool readsEqual(linalg::LinalgOp op, ArrayRef<OpOperand *> operands,
                AxesAttr axes, LazyVariation &variation) {
  bool equal = true;
  op->walk([&](Operation *inner) {
    for (OpOperand &operand : inner->getOpOperands())
      if (!llvm::is_contained(operands, &operand) &&
          !op->isAncestor(operand.get().getParentBlock()->getParentOp()))
        equal &= variation->isEqualAlong(operand.get(), axes);
  });
  return equal;
}

bool passesPartial(linalg::LinalgOp op, Reduction kind,
                   ArrayRef<OpOperand *> operands) {
  auto rule = dyn_cast<ShardingRuleOpInterface>(op.getOperation());
  if (!rule)
    return false;
  llvm::SmallBitVector partial(shardedOperands(op).size());
  for (OpOperand *operand : operands)
    partial.set(operand->getOperandNumber());
  return rule.passesPartial(toKind(kind), partial);
}

/// Reads the summands in place of the reduced values.
void skipReductions(const Reductions &reductions) {
  for (OpOperand *use : reductions.uses) {
    auto reduce = use->get().getDefiningOp<AllReduceOp>();
    use->set(reduce.getInput());
    reduce.erase();
  }
}

/// Inserts the reduction of `value` and has all readers use it.
void reduceAt(OpBuilder &builder, Value value, AllReduceOp like,
              CauseAttr cause, LazyVariation &variation) {
  auto reduced = AllReduceOp::create(
      builder, like.getLoc(), value.getType(), like.getKindAttr(), value,
      like.getMeshAttr(), like.getAxesAttr(), cause);
  variation->copy(value, reduced);
  value.replaceAllUsesExcept(reduced, reduced);
}

/// f(all_reduce(a), all_reduce(b)) becomes all_reduce(f(a, b)).
bool delayPast(linalg::LinalgOp op, LazyVariation &variation) {
  if (op->getNumResults() != 1)
    return false;
  Reductions reductions = reductionsInto(op);
  Value result = op->getResult(0);
  if (!reductions.first || result.use_empty() ||
      blockBytes(result) >= reductions.bytes() ||
      !readsEqual(op, reductions.uses, reductions.first.getAxes(), variation) ||
      !passesPartial(op, reductions.first.getKind(), reductions.uses))
    return false;
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  reduceAt(builder, result, reductions.first, reductions.cause(), variation);
  skipReductions(reductions);
  return true;
}

/// One reduction after the loop moves less than one in each trip. Of an unknown
/// number of trips, at least one is assumed.
bool paysAfter(scf::ForOp loop, const Reductions &reductions, Value carried) {
  std::optional<int64_t> trips = tripCount(loop);
  if (!trips)
    return blockBytes(carried) <= reductions.bytes();
  // By division: the product may not fit.
  return *trips > 1 && reductions.bytes() > 0 &&
         blockBytes(carried) / reductions.bytes() < *trips;
}

/// The carried value becomes a summand: the first member starts with the whole
/// initial value, so that no trip at all gives just that.
bool delayPastLoop(scf::ForOp loop, unsigned index, LazyVariation &variation) {
  BlockArgument carried = loop.getRegionIterArg(index);
  OpOperand &yielded = loop.getBody()->getTerminator()->getOpOperand(index);
  auto op = yielded.get().getDefiningOp<linalg::LinalgOp>();
  if (!op || op->getNumResults() != 1 || op->getBlock() != loop.getBody() ||
      !yielded.get().hasOneUse() || !carried.hasOneUse() ||
      carried.use_begin()->getOwner() != op.getOperation())
    return false;
  Reductions reductions = reductionsInto(op);
  if (!reductions.first || !paysAfter(loop, reductions, carried))
    return false;
  SmallVector<OpOperand *> partial = reductions.uses;
  partial.push_back(&*carried.use_begin());
  AllReduceOp like = reductions.first;
  OpOperand &init = loop.getInitArgsMutable()[index];
  if (!variation->isEqualAlong(init.get(), like.getAxes()) ||
      !readsEqual(op, partial, like.getAxes(), variation) ||
      !passesPartial(op, like.getKind(), partial))
    return false;

  OpBuilder builder(loop);
  Value coordinate =
      CoordinateOp::create(builder, like.getLoc(), builder.getIndexType(),
                           like.getMeshAttr(), like.getAxesAttr());
  init.set(keepOnlyFirst(builder, like.getLoc(), init.get(),
                         toKind(like.getKind()), coordinate));
  if (coordinate.use_empty())
    coordinate.getDefiningOp()->erase();
  builder.setInsertionPointAfter(loop);
  reduceAt(builder, loop.getResult(index), like, reductions.cause(), variation);
  skipReductions(reductions);
  return true;
}

bool delayIn(Block &block, LazyVariation &variation) {
  bool changed = false;
  // In program order, so that what has passed one op can pass the next. Loops
  // when their bodies are done: what leaves the inner can leave the outer.
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      changed |= delayIn(*loop.getBody(), variation);
      for (unsigned i = 0; i < loop.getNumRegionIterArgs(); ++i)
        changed |= delayPastLoop(loop, i, variation);
    } else if (auto structured = dyn_cast<linalg::LinalgOp>(op)) {
      changed |= delayPast(structured, variation);
    }
  }
  return changed;
}

} // namespace

void DelayReductions::runOnOperation() {
  LazyVariation variation(getOperation());
  bool changed = false;
  for (auto function : getOperation().getOps<FunctionOpInterface>())
    for (Block &block : function.getFunctionBody())
      changed |= delayIn(block, variation);
  if (!changed)
    markAllAnalysesPreserved();
}

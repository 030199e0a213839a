//===- BodyAnalysis.cpp - How partial values pass a scalar body -----------===//
// An abstract interpretation over four values. An op that isn't named here
// makes Mixed of anything but Complete, so an unknown op never lets a summand
// through.
//===----------------------------------------------------------------------===//
#include "passes/propagate/BodyAnalysis.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "passes/propagate/Rules.h"

using namespace mlir;

namespace cleave {
namespace {

using P = Partiality;

bool isOrdered(ReductionKind kind) {
  switch (kind) {
  case ReductionKind::Max:
  case ReductionKind::Min:
  case ReductionKind::MaxNum:
  case ReductionKind::MinNum:
    return true;
  default:
    return false;
  }
}

/// Combining two values with the reduction's own operation.
P combine(P a, P b, bool idempotent) {
  if (a == P::Mixed || b == P::Mixed)
    return P::Mixed;
  if (a == P::Neutral)
    return b;
  if (b == P::Neutral)
    return a;
  if (a == b)
    return a;
  // A summand with a complete value: the latter would count once per rank.
  return idempotent ? P::Partial : P::Mixed;
}

/// One operand may be partial, the others must be complete.
P distribute(P value, ArrayRef<P> others) {
  for (P other : others)
    if (other == P::Partial || other == P::Mixed)
      return P::Mixed;
  return value;
}

/// Sum: scaling distributes over it.
P transferSum(Operation *op, ArrayRef<P> in) {
  if (isa<arith::AddFOp, arith::AddIOp, arith::SubFOp, arith::SubIOp>(op))
    return combine(in[0], in[1], false);
  if (isa<arith::NegFOp, arith::ExtFOp, arith::TruncIOp>(op))
    return in[0];
  if (isa<arith::MulFOp, arith::MulIOp>(op)) {
    if (in[0] == P::Complete || in[0] == P::Neutral)
      return distribute(in[1], in[0]);
    return distribute(in[0], in[1]);
  }
  if (isa<arith::DivFOp, arith::ShLIOp>(op))
    return distribute(in[0], in[1]);
  return P::Mixed;
}

/// Max and min: an exact, monotone conversion passes. (Adding a constant does
/// not: the neutral -inf plus inf is NaN.)
P transferOrdered(Operation *op, ArrayRef<P> in) {
  return isa<arith::ExtFOp, arith::ExtSIOp>(op) ? in[0] : P::Mixed;
}

/// And, or, xor: and distributes over or and xor, or over and.
P transferBitwise(Operation *op, ReductionKind kind, ArrayRef<P> in) {
  bool overAnd = kind == ReductionKind::And && isa<arith::OrIOp>(op);
  bool overOthers = kind != ReductionKind::And && isa<arith::AndIOp>(op);
  if (overAnd || overOthers) {
    if (in[0] == P::Complete)
      return distribute(in[1], in[0]);
    return distribute(in[0], in[1]);
  }
  return P::Mixed;
}

P transfer(Operation *op, ReductionKind kind, ArrayRef<P> in) {
  if (llvm::all_of(in, [](P p) { return p == P::Complete; }))
    return P::Complete;
  if (llvm::is_contained(in, P::Mixed))
    return P::Mixed;
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    if (in[0] != P::Complete)
      return P::Mixed;
    return combine(in[1], in[2], false);
  }
  bool idempotent = kind != ReductionKind::Sum && kind != ReductionKind::Prod &&
                    kind != ReductionKind::Xor;
  if (std::optional<ReductionKind> own = combinerKind(op); own && *own == kind)
    return combine(in[0], in[1], idempotent);
  P result = P::Mixed;
  if (kind == ReductionKind::Sum)
    result = transferSum(op, in);
  else if (isOrdered(kind))
    result = transferOrdered(op, in);
  else
    result = transferBitwise(op, kind, in);
  // Without a summand, a result that isn't linear is just complete.
  if (result == P::Mixed && !llvm::is_contained(in, P::Partial))
    return P::Complete;
  return result;
}

} // namespace

SmallVector<Partiality>
analyzeBody(Block &body, ReductionKind kind,
            const llvm::DenseMap<Value, Partiality> &known) {
  llvm::DenseMap<Value, Partiality> state(known);
  Builder builder(body.getParentOp()->getContext());
  auto lookup = [&](Value value) {
    if (auto it = state.find(value); it != state.end())
      return it->second;
    TypedAttr constant;
    if (value.getType().isIntOrIndexOrFloat() &&
        matchPattern(value, m_Constant(&constant)) &&
        constant == neutralElement(kind, value.getType(), builder))
      return P::Neutral;
    return P::Complete;
  };
  for (Operation &op : body.without_terminator()) {
    if (isa<arith::ConstantOp>(op))
      continue;
    SmallVector<P> in = llvm::map_to_vector(op.getOperands(), lookup);
    // Regions (scf.if) read values that are not operands: be strict.
    bool plain = op.getNumRegions() == 0 && op.getNumResults() == 1;
    P out = P::Complete;
    if (plain)
      out = transfer(&op, kind, in);
    else
      op.walk([&](Operation *inner) {
        for (Value operand : inner->getOperands())
          if (P p = lookup(operand); p == P::Partial || p == P::Mixed)
            out = P::Mixed;
      });
    // What the caller knows of a result stands.
    for (Value result : op.getResults())
      state.try_emplace(result, out);
  }
  return llvm::map_to_vector(body.getTerminator()->getOperands(), lookup);
}

} // namespace cleave

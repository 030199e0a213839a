//===- PartialPlacement.h - Where partial values are reduced ---*- C++ -*-===//
// A contraction over a sharded factor leaves each rank with a summand. This
// decides for each value whether it stays partial or is reduced there, so that
// the fewest bytes move: two partial summands are added before one reduction,
// and a reduction waits past slices, transposes, scaling and linear ops when
// that is cheaper. A value that one of its users needs whole is reduced once.
// No IR here.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PASSES_PROPAGATE_PARTIALPLACEMENT_H
#define CLEAVE_PASSES_PROPAGATE_PARTIALPLACEMENT_H

#include "dialects/sharding/Sharding.h"
#include "llvm/ADT/BitVector.h"
#include <functional>
#include <vector>

namespace cleave {

struct PartialValue {
  /// Bytes one rank holds of it.
  double bytes = 0;
  /// Axes along which its producer leaves summands even if all its operands
  /// are whole, with the kind; sorted and merged.
  AxisList created;
  ReductionKind kind = ReductionKind::Sum;
  /// The user says that the value is partial along these axes, and so it must
  /// stay. For a value without producer they are also its summands.
  AxisList declared;
  ReductionKind declaredKind = ReductionKind::Sum;
  /// Axes that cut its own dims. Along these it cannot stay partial: it is
  /// reduced and scattered at once.
  AxisList cutAxes;
  /// Leaves the program, or is needed whole for another reason.
  bool neededWhole = false;
  /// How often it is made, and so reduced.
  double times = 1;
};

/// Ops in program order: operands are produced before. A loop is one op for
/// each value that it carries, behind the ops of its body: operands init,
/// iter-arg and yielded value, and a result. The iter-arg is partial if the
/// yielded value is, and so is the result before it is reduced; a whole init
/// becomes partial at no cost, since one rank keeps it.
struct PartialOp {
  llvm::SmallVector<unsigned, 3> operands;
  llvm::SmallVector<unsigned, 1> results;
  /// Axes at which the op is computed; a partial axis cannot pass these.
  AxisList usedAxes;
  /// Positions of operands that are combined once with the summands that the
  /// op creates: partial or not along the same axes, they cost nothing.
  llvm::SmallVector<unsigned, 1> accumulators;
  bool loop = false;
};

/// Whether op `op` lets partial values of `kind` through when exactly the
/// operands in `partial` are partial: add of two sums does for {0, 1} and not
/// for {0}; scaling does for {0}; exp never.
using LetsThrough = std::function<bool(unsigned op, ReductionKind kind,
                                       const llvm::BitVector &partial)>;
/// Bytes each rank sends to reduce `value` along `axes`.
using ReduceCost =
    std::function<double(unsigned value, llvm::ArrayRef<AxisRef> axes)>;

struct PartialProblem {
  std::vector<PartialValue> values;
  std::vector<PartialOp> ops;
  LetsThrough letsThrough;
  /// By default an all-reduce: 2(n-1)/n bytes.
  ReduceCost reduceCost;
};

struct PartialError {
  enum Kind : uint8_t {
    /// A declared partial value meets an op that does not let it through.
    NonLinearUse,
    /// A value is declared partial whose producer does not leave summands
    /// along these axes, or of another kind.
    NotPartial
  } kind;
  unsigned value = 0;
  /// The op that uses (NonLinearUse) or produces (NotPartial) it.
  unsigned op = 0;
  AxisList axes;
};

struct PartialResult {
  /// As produced, before any reduction.
  std::vector<AxisList> produced;
  /// As its users see it: a subset of `produced`.
  std::vector<AxisList> kept;
  std::vector<ReductionKind> kinds;
  double bytes = 0;
  std::vector<PartialError> errors;
  /// What is reduced right after `value` was produced.
  AxisList reducedAt(unsigned value) const;
};

PartialResult placePartials(const PartialProblem &problem);

} // namespace cleave

#endif // CLEAVE_PASSES_PROPAGATE_PARTIALPLACEMENT_H

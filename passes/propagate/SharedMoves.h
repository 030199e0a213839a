//===- SharedMoves.h - Values moved once for several readers ---*- C++ -*-===//
// Propagation decides op by op. Where several ops read one value, each by
// itself may rather move its other operand, a weight say, than that value; but
// to move the value once, for all of them, can be less in sum. This looks for
// such values once everything else is decided, and counts the whole program
// again with them moved. No IR here.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PASSES_PROPAGATE_SHAREDMOVES_H
#define CLEAVE_PASSES_PROPAGATE_SHAREDMOVES_H

#include "passes/propagate/Placement.h"

namespace cleave {

/// `value` is moved to `sharding`, where `readers` find it.
struct SharedMove {
  unsigned value = 0;
  Sharding sharding;
  llvm::SmallVector<unsigned, 4> readers;
  /// The value after the move, and the op that moves.
  unsigned moved = 0, op = 0;
  /// Of all that depends on the move: what each rank sends with it, and what it
  /// would send without.
  double bytes = 0, bytesBefore = 0;
};

/// Extends the problem by the moves that are worth it, a value and an op each,
/// and solves it anew: propagation, placement. Costs a few propagations at
/// most, and none where no two readers of a value want it otherwise.
std::vector<SharedMove> shareMoves(PropagationProblem &problem, Placer &placer,
                                   PropagationResult &result,
                                   Placement &placement);

} // namespace cleave

#endif // CLEAVE_PASSES_PROPAGATE_SHAREDMOVES_H

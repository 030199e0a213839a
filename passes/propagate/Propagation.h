//===- Propagation.h - How shardings spread over a program -----*- C++ -*-===//
// Gives every value of a program a sharding, from the few that the user wrote.
// No IR here: the program is a list of values and of ops with sharding rules.
//
// Shardings spread along the factors of rules until nothing changes. What is
// decided first stands: user priorities are outermost, then the phases below.
// Where two alternatives want the same axis of one tensor, the one that moves
// fewer bytes wins. Each added axis is a Decision, so that a reader can follow
// the chain back to the annotation it came from.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PASSES_PROPAGATE_PROPAGATION_H
#define CLEAVE_PASSES_PROPAGATE_PROPAGATION_H

#include "dialects/sharding/ShardingRule.h"
#include <string>
#include <vector>

namespace cleave {

/// One tensor of the program. `initial` is the user's annotation, or
/// Sharding::whole(rank, /*open=*/true) where there is none.
struct PropagationValue {
  /// For messages only.
  std::string name;
  llvm::SmallVector<int64_t, 4> shape;
  int64_t elementBytes = 4;
  Sharding initial;
  /// Lies on another mesh: nothing spreads to it or from it.
  bool foreign = false;
  /// How often it is made: the trips of the loops around it.
  double times = 1;
};

/// Which way a barrier lets shardings pass.
enum class Direction : uint8_t { Both, Forward, Backward, None };

/// Values that are one: nothing is computed between them.
enum class Tie : uint8_t {
  /// An op, no tie.
  None,
  /// An argument of a call and its operand, a result and what is returned.
  Edge,
  /// Init, iter-arg and yielded value (operands) of a loop and its result.
  Loop,
  /// A value and itself, moved once for several readers.
  Move
};

/// One op, or one data-flow edge (an identity rule over the tied values). The
/// rule of an op of which nothing is known has dims without factors, or no
/// tensors at all.
struct PropagationOp {
  ShardingRule rule;
  /// Indices of values, in the order of the rule's operands and results.
  llvm::SmallVector<unsigned, 3> operands;
  llvm::SmallVector<unsigned, 1> results;
  Direction direction = Direction::Both;
  /// Fill, constant, empty, splat...: the result costs nothing to make again.
  /// It takes the sharding of its users, and what one user gave it does not
  /// spread to the others.
  bool cheap = false;
  Tie tie = Tie::None;
  /// How often it runs.
  double times = 1;
};

struct PropagationProblem {
  Mesh mesh;
  std::vector<PropagationValue> values;
  std::vector<PropagationOp> ops;
  /// Values of one group share one sharding.
  std::vector<llvm::SmallVector<unsigned, 4>> groups;
};

/// The rule of a data-flow edge: all its tensors have one shape and sharding.
/// A loop ties init and yield (operands) to iter-arg and result (results).
ShardingRule identityRule(llvm::ArrayRef<int64_t> shape,
                          unsigned numOperands = 1, unsigned numResults = 1);

/// The order inside one user priority.
enum class Phase : uint8_t {
  /// Ops without reduction whose operands have no other user.
  Elementwise,
  /// The same, whoever else uses the operands.
  ElementwiseShared,
  /// Pass-through factors of every op; into a broadcast operand, not from it.
  PassThrough,
  /// Reduction and permutation factors too.
  Reduction,
  /// From a broadcast operand as well.
  Broadcast,
  /// Tensors that disagree about a factor: the cheapest side is taken.
  Resolve
};
llvm::StringRef phaseName(Phase phase);

/// What lost against a decision: the axes another factor or tensor wanted in
/// the same place.
struct Alternative {
  /// The value that wanted it.
  unsigned source = 0;
  AxisList axes;
  /// Estimated bytes each rank would send had it won.
  double bytes = 0;
};

/// `axes` were appended to dim `dim` of `value`.
struct Decision {
  unsigned value = 0;
  unsigned dim = 0;
  AxisList axes;
  /// The op whose rule carried them; none for a group.
  std::optional<unsigned> op;
  /// The value they came from, and its dim.
  unsigned source = 0;
  unsigned sourceDim = 0;
  unsigned priority = 0;
  Phase phase = Phase::Elementwise;
  /// Estimated bytes each rank sends; set where there were alternatives.
  double bytes = 0;
  llvm::SmallVector<Alternative, 0> losers;
};

/// A contradiction in the annotations; the shell makes a diagnostic of it.
struct PropagationError {
  enum Kind : uint8_t { GroupShape, GroupSharding } kind;
  unsigned value = 0, other = 0;
  /// Text without location: "'a' and 'b' are in one group but ...".
  std::string message;
};

struct PropagationResult {
  /// One closed sharding per value; `replicated` and `partial` as declared.
  std::vector<Sharding> shardings;
  /// In the order they were taken.
  std::vector<Decision> decisions;
  std::vector<PropagationError> errors;
};

PropagationResult propagate(const PropagationProblem &problem);

/// Finds the decisions behind a sharding, for explanations.
class DecisionIndex {
public:
  explicit DecisionIndex(const PropagationResult &result);
  /// How `axis` came to this dim: the last step first. Empty if the user wrote
  /// it there; else the source of the last entry is where the user did.
  llvm::SmallVector<const Decision *, 4> chain(unsigned value, unsigned dim,
                                               AxisRef axis) const;

private:
  const PropagationResult &result;
  /// Per value, its decisions in order.
  std::vector<llvm::SmallVector<unsigned, 2>> decisions;
};

} // namespace cleave

#endif // CLEAVE_PASSES_PROPAGATE_PROPAGATION_H

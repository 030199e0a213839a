//===- PropagationState.h - Shardings while they spread --------*- C++ -*-===//
// Internal to propagation: what is known of each class of values, and what of
// each op doesn't change.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PASSES_PROPAGATE_PROPAGATIONSTATE_H
#define CLEAVE_PASSES_PROPAGATE_PROPAGATIONSTATE_H

#include "passes/propagate/Propagation.h"

namespace cleave {

inline constexpr unsigned kNumPhases = 6;

struct DimState {
  /// What the user wrote, merged and without axes of size 1.
  AxisList declared;
  AxisList axes;
  bool declaredOpen = false;
  /// Shown and open.
  bool open = false;
  unsigned priority = 0;
};

/// Values that share one sharding: one value, or a group.
struct ClassState {
  llvm::SmallVector<unsigned, 1> members;
  llvm::SmallVector<DimState, 4> dims;
  /// Axes that no dim may take: replicated, partial.
  AxisList reserved;
  /// Axes of dims that are not shown yet.
  AxisList parked;
  double bytes = 0;
  bool foreign = false;
  /// Made by a cheap op and not annotated.
  bool cheap = false;
  bool sharded = false;
};

/// A place where a factor stands.
struct FactorPlace {
  unsigned tensor = 0;
  unsigned dim = 0;
  /// Its position among the factors of the dim.
  unsigned position = 0;
};

struct OpState {
  /// Classes of operands, then results.
  llvm::SmallVector<unsigned, 4> tensors;
  unsigned numOperands = 0;
  /// Bit per phase in which the op is visited.
  uint8_t phases = 0;
  /// All factors pass through; tensors that lack some are broadcast.
  bool passThrough = false;
  llvm::SmallVector<bool, 4> full;
  /// Per factor, where it stands; empty if it never spreads.
  llvm::SmallVector<llvm::SmallVector<FactorPlace, 3>, 4> places;
};

class PropagationState {
public:
  explicit PropagationState(const PropagationProblem &problem);

  /// All priorities of dims, ascending.
  std::vector<unsigned> priorities() const;
  /// Shows the dims of the current priority; whether there were any.
  bool show(unsigned cls);
  /// Ops with a tensor of this class.
  llvm::ArrayRef<unsigned> users(unsigned cls) const {
    return llvm::ArrayRef(userList).slice(userStart[cls],
                                          userStart[cls + 1] - userStart[cls]);
  }
  unsigned valueOf(unsigned op, unsigned tensor) const {
    const PropagationOp &o = problem.ops[op];
    return tensor < o.operands.size() ? o.operands[tensor]
                                      : o.results[tensor - o.operands.size()];
  }
  PropagationResult finish();

  const PropagationProblem &problem;
  unsigned priority = 0;
  std::vector<ClassState> classes;
  std::vector<unsigned> classOf;
  std::vector<OpState> ops;
  PropagationResult result;

private:
  void makeClasses();
  void joinGroups(std::vector<unsigned> &leader);
  void addMember(ClassState &cls, unsigned value);
  void recordShared(const ClassState &cls, unsigned dim);
  bool join(ClassState &cls, const Sharding &sharding);
  void makeOps();
  void makeUsers();

  std::vector<unsigned> userStart, userList;
};

} // namespace cleave

#endif // CLEAVE_PASSES_PROPAGATE_PROPAGATIONSTATE_H

//===- Visit.h - One step of propagation: the tensors of one op *- C++ -*-===//
// Internal to propagation. A visit collects what the tensors of an op say of
// each factor (the wishes), orders the wishes that want the same axes by cost,
// and appends to every open dim what it can still take.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PASSES_PROPAGATE_VISIT_H
#define CLEAVE_PASSES_PROPAGATE_VISIT_H

#include "passes/propagate/Factors.h"
#include "passes/propagate/PropagationState.h"

namespace cleave {

class Visitor {
public:
  explicit Visitor(PropagationState &state) : state(state) {}
  /// Appends the classes that changed. Returns whether tensors disagree about
  /// a factor, so that Phase::Resolve has something to decide.
  bool visit(unsigned op, Phase phase,
             llvm::SmallVectorImpl<unsigned> &changed);

private:
  struct Source {
    AxisList axes;
    FactorPlace place;
  };
  /// What a factor is to be cut by, and who says so.
  struct Wish {
    unsigned factor = 0;
    AxisList axes;
    FactorPlace source;
    double bytes = 0;
    /// Those who said something else.
    llvm::SmallVector<Source, 0> others;
    llvm::SmallVector<Alternative, 0> losers;
  };

  void collect();
  Wish wishOf(unsigned factor);
  void findOthers(Wish &wish) const;
  void takeCheapest(Wish &wish, llvm::ArrayRef<Source> sources);
  AxisList axesAt(unsigned factor, const FactorPlace &place) const;
  AxisList extension(const Wish &wish, const FactorPlace &place) const;
  bool isSource(const FactorPlace &place) const;
  bool isTarget(const FactorPlace &place) const;
  bool allowed(unsigned factor) const;
  bool wanted(const Wish &wish) const;
  void order(llvm::SmallVectorImpl<unsigned> &factors);
  double costOf(unsigned factor, llvm::ArrayRef<AxisRef> axes);
  double tensorCost(unsigned tensor, llvm::ArrayRef<AxisList> axes);
  void apply(const Wish &wish, llvm::ArrayRef<unsigned> later,
             llvm::SmallVectorImpl<unsigned> &changed);
  void record(const Wish &wish, const FactorPlace &place, AxisList axes,
              llvm::ArrayRef<unsigned> later);
  const ClassState &cls(unsigned tensor) const {
    return state.classes[info->tensors[tensor]];
  }

  PropagationState &state;
  // Of the op being visited.
  unsigned op = 0;
  Phase phase = Phase::Elementwise;
  const OpState *info = nullptr;
  const ShardingRule *rule = nullptr;
  llvm::SmallVector<Wish, 6> wishes;
};

} // namespace cleave

#endif // CLEAVE_PASSES_PROPAGATE_VISIT_H

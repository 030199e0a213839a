//===- Placement.h - How ops are computed, and what that sends -*- C++ -*-===//
// After propagation each value has a sharding. This chooses at which axes each
// op is computed and where partial values are reduced, and counts the bytes of
// all that. No IR here.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PASSES_PROPAGATE_PLACEMENT_H
#define CLEAVE_PASSES_PROPAGATE_PLACEMENT_H

#include "passes/propagate/Factors.h"
#include "passes/propagate/PartialPlacement.h"
#include "passes/propagate/Propagation.h"

namespace cleave {

struct Placement {
  /// Per op, how it is computed; null for ties. The Placer owns them, and gives
  /// equal ops the same.
  std::vector<const FactorChoice *> choices;
  PartialResult partials;
  /// Per value, as its readers find it: closed, with the axes that stay
  /// partial.
  std::vector<Sharding> shardings;
};

class Placer {
public:
  Placer(const Mesh &mesh, LetsThrough letsThrough)
      : letsThrough(std::move(letsThrough)), chooser(mesh) {}
  /// `shardings`: those that propagation found.
  Placement place(const PropagationProblem &problem,
                  const std::vector<Sharding> &propagated);

private:
  const FactorChoice *choose(const PropagationProblem &problem,
                             const PropagationOp &op,
                             const std::vector<Sharding> &shardings);

  LetsThrough letsThrough;
  FactorChooser chooser;
  std::vector<bool> cheap;
};

/// Bytes each rank sends, by the value that moves: from where its op makes it
/// to where it lies, and to its readers; once for all that want it alike, and
/// as often as it is made.
std::vector<double> bytesOfValues(const PropagationProblem &problem,
                                  const Placement &placement);
/// Per value, whether a cheap op makes it.
std::vector<bool> cheapValues(const PropagationProblem &problem);

} // namespace cleave

#endif // CLEAVE_PASSES_PROPAGATE_PLACEMENT_H

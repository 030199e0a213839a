//===- PartialPainter.h - One set of partial axes --------------*- C++ -*-===//
// Internal to the placement of reductions: decides for the axes that always
// occur together which values stay partial along them.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PASSES_PROPAGATE_PARTIALPAINTER_H
#define CLEAVE_PASSES_PROPAGATE_PARTIALPAINTER_H

#include "passes/propagate/MinCut.h"
#include "passes/propagate/PartialPlacement.h"
#include <cmath>

namespace cleave {

/// No producer.
inline constexpr unsigned kNone = ~0u;

/// Positions of a loop's operands.
inline constexpr unsigned kInit = 0, kIterArg = 1, kYielded = 2;

struct Color {
  ReductionKind kind = ReductionKind::Sum;
  AxisList axes;
};

/// Decides one colour.
class Painter {
public:
  Painter(const PartialProblem &problem, const Color &color,
          llvm::ArrayRef<unsigned> producer,
          std::vector<std::optional<ReductionKind>> &opKinds,
          PartialResult &result)
      : problem(problem), color(color), producer(producer), opKinds(opKinds),
        result(result), potential(problem.values.size()),
        node(problem.values.size(), kNone), whole(problem.values.size()),
        declared(problem.values.size()), modes(problem.ops.size()),
        chosen(problem.ops.size(), 0) {}
  void run();

private:
  /// Positions of operands.
  using Mode = llvm::SmallVector<unsigned, 2>;
  struct Part {
    std::vector<unsigned> values, ops;
  };
  bool has(const AxisList &axes) const {
    return withoutAxes(color.axes, axes).empty();
  }
  bool creates(unsigned value) const;
  bool joins(unsigned op, unsigned position) const;
  void findPotential();
  void spread();
  bool mayCarry(unsigned op) const;
  void findModes(unsigned op);
  bool allows(unsigned op, llvm::ArrayRef<unsigned> positions) const;
  void findWhole();
  std::vector<Part> findParts() const;
  void solve(Part &part);
  void chooseDearest(unsigned op);
  void tryAllModes(const Part &part, llvm::ArrayRef<unsigned> undecided,
                   std::vector<bool> &kept);
  void improveModes(const Part &part, llvm::ArrayRef<unsigned> undecided,
                    std::vector<bool> &kept);
  double cut(const Part &part, std::vector<bool> &kept);
  void build(MinCut &graph, const Part &part) const;
  void buildLoop(MinCut &graph, unsigned op) const;
  bool passes(unsigned op, const std::vector<bool> &kept) const;
  bool isProduced(unsigned value, const std::vector<bool> &kept) const;
  void finish(const Part &part, const std::vector<bool> &kept);
  void reportBroken(const Part &part, unsigned value, bool produced);
  void report(PartialError::Kind kind, unsigned value, unsigned op);
  double reduceBytes(unsigned value) const {
    return problem.values[value].times * problem.reduceCost(value, color.axes);
  }
  int64_t capacity(unsigned value) const {
    return std::llround(reduceBytes(value) * kScale);
  }

  /// Costs are bytes times this, as integers.
  static constexpr double kScale = 16;

  const PartialProblem &problem;
  const Color &color;
  llvm::ArrayRef<unsigned> producer;
  std::vector<std::optional<ReductionKind>> &opKinds;
  PartialResult &result;
  std::vector<bool> potential;
  std::vector<unsigned> node;
  std::vector<bool> whole, declared;
  /// Per op, the sets of operand positions that may be partial together.
  std::vector<llvm::SmallVector<Mode, 1>> modes;
  std::vector<unsigned> chosen;
};

} // namespace cleave

#endif // CLEAVE_PASSES_PROPAGATE_PARTIALPAINTER_H

//===- PartialGraph.h - Programs for tests of partial values ---*- C++ -*-===//
#ifndef CLEAVE_TEST_PASSES_PROPAGATE_PARTIALGRAPH_H
#define CLEAVE_TEST_PASSES_PROPAGATE_PARTIALGRAPH_H

#include "passes/propagate/PartialPlacement.h"

namespace cleave::test {

/// How a test op treats partial sums.
enum class Law { Linear, AllOrNone, EitherSide, AnyOperand, Never };

inline bool lawAllows(Law law, const llvm::BitVector &partial) {
  switch (law) {
  case Law::Linear:
  case Law::AllOrNone:
    return partial.all();
  case Law::EitherSide:
    return partial.count() == 1;
  case Law::AnyOperand:
    return true;
  case Law::Never:
    return false;
  }
  return false;
}

struct Graph {
  PartialProblem problem;
  std::vector<Law> laws;

  Graph() {
    problem.letsThrough = [this](unsigned op, ReductionKind kind,
                                 const llvm::BitVector &partial) {
      return lawAllows(laws[op], partial);
    };
  }
  unsigned value(double bytes, AxisList created = {}) {
    PartialValue value;
    value.bytes = bytes;
    value.created = std::move(created);
    problem.values.push_back(std::move(value));
    return problem.values.size() - 1;
  }
  unsigned op(Law law, llvm::ArrayRef<unsigned> operands, double bytes) {
    unsigned result = value(bytes);
    PartialOp op;
    op.operands.assign(operands.begin(), operands.end());
    op.results.push_back(result);
    problem.ops.push_back(std::move(op));
    laws.push_back(law);
    return result;
  }
  /// What is made between these runs `trips` times.
  unsigned beginLoop(double bytes) { return value(bytes); }
  unsigned endLoop(unsigned init, unsigned arg, unsigned yielded,
                   double trips) {
    unsigned result =
        op(Law::Never, {init, arg, yielded}, problem.values[arg].bytes);
    problem.ops.back().loop = true;
    for (unsigned v = arg; v < result; ++v)
      problem.values[v].times *= trips;
    return result;
  }
  void output(unsigned value) { problem.values[value].neededWhole = true; }
  std::vector<unsigned> reduced(const PartialResult &result) const {
    std::vector<unsigned> values;
    for (unsigned v = 0; v < problem.values.size(); ++v)
      if (!result.reducedAt(v).empty())
        values.push_back(v);
    return values;
  }
};

const AxisRef kX{0, 1, 2}, kY{1, 1, 4};
using Values = std::vector<unsigned>;

} // namespace cleave::test

#endif // CLEAVE_TEST_PASSES_PROPAGATE_PARTIALGRAPH_H

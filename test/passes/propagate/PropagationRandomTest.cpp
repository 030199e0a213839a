//===- PropagationRandomTest.cpp - Invariants on random programs ----------===//
#include "TestProgram.h"
#include "passes/propagate/AxisLists.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>
#include <random>

using namespace cleave;
using namespace cleave::test;

namespace {

class Generator {
public:
  explicit Generator(unsigned seed) : random(seed) {}
  PropagationProblem make();

private:
  unsigned pick(unsigned n) { return static_cast<unsigned>(random() % n); }
  void makeMesh();
  unsigned makeValue(Shape shape);
  Sharding makeSharding(unsigned rank);
  AxisRef makeAxis(unsigned axis);
  void makeOp();

  std::mt19937 random;
  PropagationProblem problem;
};

} // namespace

void Generator::makeMesh() {
  unsigned numAxes = 1 + pick(4);
  for (unsigned i = 0; i < numAxes; ++i) {
    static constexpr int64_t sizes[] = {1, 2, 2, 3, 4, 6, 5, 12};
    problem.mesh.axes.push_back({std::string(1, 'a' + i), sizes[pick(8)]});
  }
}

/// A whole axis or the major or minor part of it.
AxisRef Generator::makeAxis(unsigned axis) {
  AxisRef ref = problem.mesh.whole(axis);
  for (int64_t part : {2, 3, 4})
    if (ref.size % part == 0 && ref.size > part && pick(4) == 0)
      return pick(2) ? AxisRef{axis, 1, part}
                     : AxisRef{axis, part, ref.size / part};
  return ref;
}

Sharding Generator::makeSharding(unsigned rank) {
  Sharding sharding = Sharding::whole(rank, /*open=*/true);
  if (pick(2))
    return sharding;
  for (DimSharding &dim : sharding.dims) {
    dim.open = pick(2);
    if (pick(3) == 0)
      dim.priority = pick(3);
  }
  for (unsigned axis = 0; axis < problem.mesh.axes.size(); ++axis) {
    unsigned where = pick(rank + 3);
    if (where < rank)
      sharding.dims[where].axes.push_back(makeAxis(axis));
    else if (where == rank)
      sharding.replicated.push_back(makeAxis(axis));
    else if (where == rank + 1 && pick(3) == 0)
      sharding.partial.push_back(makeAxis(axis));
  }
  return sharding;
}

unsigned Generator::makeValue(Shape shape) {
  PropagationValue value;
  value.initial = makeSharding(shape.size());
  value.shape = std::move(shape);
  value.foreign = pick(40) == 0;
  problem.values.push_back(std::move(value));
  return problem.values.size() - 1;
}

/// A rule of up to four factors, each in some of up to four tensors; some dims
/// are compound, some tensors exist already if their shape fits.
void Generator::makeOp() {
  PropagationOp op;
  unsigned numFactors = 1 + pick(4), numTensors = 2 + pick(3);
  for (unsigned f = 0; f < numFactors; ++f) {
    static constexpr int64_t sizes[] = {1, 2, 3, 4, 6, 8, 16};
    Factor factor;
    factor.size = sizes[pick(7)];
    factor.kind =
        pick(3) ? FactorKind::PassThrough : static_cast<FactorKind>(pick(4));
    factor.blocked = pick(10) == 0;
    op.rule.factors.push_back(factor);
  }
  unsigned numOperands = 1 + pick(numTensors - 1);
  for (unsigned t = 0; t < numTensors; ++t) {
    bool isResult = t >= numOperands;
    TensorFactors tensor;
    Shape shape;
    for (unsigned f = 0; f < numFactors; ++f) {
      bool reduction = op.rule.factors[f].kind == FactorKind::Reduction;
      if ((isResult && reduction) || pick(4) == 0)
        continue;
      if (tensor.dims.empty() || pick(4)) {
        tensor.dims.emplace_back();
        shape.push_back(1);
      }
      tensor.dims.back().push_back(f);
      shape.back() *= op.rule.factors[f].size;
    }
    if (pick(2)) {
      std::reverse(tensor.dims.begin(), tensor.dims.end());
      std::reverse(shape.begin(), shape.end());
    }
    std::optional<unsigned> known;
    if (!isResult && pick(4))
      for (auto [v, value] : llvm::enumerate(problem.values))
        if (value.shape == shape && pick(2))
          known = v;
    unsigned value = known ? *known : makeValue(shape);
    if (isResult) {
      op.rule.results.push_back(tensor);
      op.results.push_back(value);
    } else {
      op.rule.operands.push_back(tensor);
      op.operands.push_back(value);
    }
  }
  op.direction = pick(8) ? Direction::Both : static_cast<Direction>(pick(4));
  op.cheap = pick(10) == 0;
  problem.ops.push_back(std::move(op));
}

PropagationProblem Generator::make() {
  makeMesh();
  unsigned numOps = 1 + pick(12);
  for (unsigned i = 0; i < numOps; ++i)
    makeOp();
  for (unsigned i = pick(3); i > 0; --i) {
    llvm::SmallVector<unsigned, 4> group{
        pick(static_cast<unsigned>(problem.values.size()))};
    for (unsigned v = 0; v < problem.values.size(); ++v)
      if (pick(3) == 0 &&
          problem.values[v].shape == problem.values[group[0]].shape &&
          !problem.values[v].foreign)
        group.push_back(v);
    problem.groups.push_back(group);
  }
  return problem;
}

//===----------------------------------------------------------------------===//
// Invariants
//===----------------------------------------------------------------------===//

static AxisList clean(llvm::ArrayRef<AxisRef> axes) {
  return comparePrefix(axes, axes).common;
}

static void checkValue(const PropagationValue &value, const Sharding &after) {
  const Sharding &before = value.initial;
  AxisList used;
  for (auto [was, is] : llvm::zip_equal(before.dims, after.dims)) {
    EXPECT_FALSE(is.open);
    EXPECT_TRUE(comparePrefix(was.axes, is.axes).restA.empty());
    if (!was.open || value.foreign)
      EXPECT_EQ(clean(was.axes), clean(is.axes));
    for (AxisRef ref : is.axes) {
      EXPECT_FALSE(overlaps(used, ref));
      used.push_back(ref);
      EXPECT_FALSE(overlaps(after.replicated, ref));
      EXPECT_FALSE(overlaps(after.partial, ref));
    }
  }
  EXPECT_EQ(before.replicated, after.replicated);
  EXPECT_EQ(before.partial, after.partial);
}

/// Every added axis is explained, and the chain ends at an annotation.
static void checkDecisions(const PropagationProblem &problem,
                           const PropagationResult &result) {
  std::vector<std::vector<AxisList>> axes;
  for (const PropagationValue &value : problem.values) {
    axes.emplace_back();
    for (const DimSharding &dim : value.initial.dims)
      axes.back().push_back(dim.axes);
  }
  for (const Decision &decision : result.decisions) {
    EXPECT_FALSE(decision.axes.empty());
    AxisList &dim = axes[decision.value][decision.dim];
    llvm::append_range(dim, decision.axes);
    // The source had these axes before.
    for (AxisRef ref : decision.axes)
      EXPECT_TRUE(overlaps(axes[decision.source][decision.sourceDim], ref));
    for (const Alternative &loser : decision.losers)
      EXPECT_LT(loser.source, problem.values.size());
  }
  if (!result.errors.empty())
    return;
  for (auto [v, sharding] : llvm::enumerate(result.shardings))
    for (auto [d, dim] : llvm::enumerate(sharding.dims))
      EXPECT_EQ(clean(axes[v][d]), clean(dim.axes));
}

static bool same(const PropagationResult &a, const PropagationResult &b) {
  return a.shardings == b.shardings && a.decisions.size() == b.decisions.size();
}

TEST(PropagationRandom, Invariants) {
  for (unsigned seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    PropagationProblem problem = Generator(seed).make();
    PropagationResult result = propagate(problem);
    if (result.errors.empty())
      for (auto [value, sharding] :
           llvm::zip_equal(problem.values, result.shardings))
        checkValue(value, sharding);
    if (result.errors.empty())
      for (const auto &group : problem.groups)
        for (unsigned member : group)
          for (auto [a, b] : llvm::zip_equal(result.shardings[member].dims,
                                             result.shardings[group[0]].dims))
            EXPECT_EQ(clean(a.axes), clean(b.axes));
    checkDecisions(problem, result);
    EXPECT_TRUE(same(result, propagate(problem)));
    if (::testing::Test::HasFailure())
      return;
  }
}

// What came out, put in again with the same dims open, stays. Without
// priorities, groups and cheap values: these depend on what was written.
TEST(PropagationRandom, SecondRunAddsNothing) {
  for (unsigned seed = 0; seed < 3000; ++seed) {
    PropagationProblem problem = Generator(seed).make();
    problem.groups.clear();
    for (PropagationOp &op : problem.ops)
      op.cheap = false;
    for (PropagationValue &value : problem.values)
      for (DimSharding &dim : value.initial.dims)
        dim.priority.reset();
    PropagationResult result = propagate(problem);
    for (auto [value, sharding] :
         llvm::zip_equal(problem.values, result.shardings))
      for (auto [dim, after] :
           llvm::zip_equal(value.initial.dims, sharding.dims))
        dim.axes = after.axes;
    PropagationResult again = propagate(problem);
    ASSERT_TRUE(again.decisions.empty()) << "seed " << seed;
    ASSERT_EQ(again.shardings, result.shardings) << "seed " << seed;
  }
}

// Every op of a random program can be computed somewhere, and the shardings
// there are legal.
TEST(PropagationRandom, EveryOpCanBeComputed) {
  for (unsigned seed = 0; seed < 600; ++seed) {
    PropagationProblem problem = Generator(seed).make();
    PropagationResult result = propagate(problem);
    for (const PropagationOp &op : problem.ops) {
      std::vector<PlacedTensor> tensors;
      llvm::SmallVector<unsigned> values(op.operands.begin(),
                                         op.operands.end());
      llvm::append_range(values, op.results);
      for (unsigned v : values)
        tensors.push_back({result.shardings[v], problem.values[v].shape,
                           problem.values[v].elementBytes});
      FactorChoice choice = chooseFactorAxes(op.rule, tensors, problem.mesh);
      ASSERT_TRUE(computableAt(op.rule, choice.axes)) << "seed " << seed;
      AxisList used;
      for (const AxisList &axes : choice.axes)
        for (AxisRef ref : axes) {
          ASSERT_FALSE(overlaps(used, ref)) << "seed " << seed;
          used.push_back(ref);
        }
    }
  }
}

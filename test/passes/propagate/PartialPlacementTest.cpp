//===- PartialPlacementTest.cpp - Where partial values are reduced --------===//
#include "passes/propagate/PartialPlacement.h"
#include "TestProgram.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>
#include <random>

using namespace cleave;
using namespace cleave::test;

namespace {

/// How a test op treats partial sums.
enum class Law { Linear, AllOrNone, EitherSide, AnyOperand, Never };

bool lawAllows(Law law, const llvm::BitVector &partial) {
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

} // namespace

TEST(PartialPlacement, SummandsAreAddedBeforeOneReduction) {
  Graph g;
  unsigned a = g.value(64, {kX}), b = g.value(64, {kX});
  unsigned sum = g.op(Law::AllOrNone, {a, b}, 64);
  g.output(sum);
  PartialResult result = placePartials(g.problem);
  EXPECT_EQ(g.reduced(result), Values{sum});
  EXPECT_EQ(result.produced[sum], AxisList{kX});
  EXPECT_EQ(result.bytes, 64);
}

TEST(PartialPlacement, WholeSummandForcesReduction) {
  Graph g;
  unsigned a = g.value(64, {kX}), b = g.value(64);
  g.output(g.op(Law::AllOrNone, {a, b}, 64));
  EXPECT_EQ(g.reduced(placePartials(g.problem)), Values{a});
}

TEST(PartialPlacement, OtherAxesForceReduction) {
  Graph g;
  unsigned a = g.value(64, {kX}), b = g.value(64, {kY});
  g.output(g.op(Law::AllOrNone, {a, b}, 64));
  EXPECT_EQ(g.reduced(placePartials(g.problem)), (Values{a, b}));
}

TEST(PartialPlacement, WaitsPastASliceOnly) {
  Graph g;
  unsigned a = g.value(64, {kX});
  unsigned slice = g.op(Law::Linear, {a}, 16);
  unsigned spread = g.op(Law::Linear, {slice}, 256);
  g.output(spread);
  EXPECT_EQ(g.reduced(placePartials(g.problem)), Values{slice});
}

// y = x w + a, computed at kX: `a` is one more summand, whole or not.
TEST(PartialPlacement, AccumulatorsJoinWhatIsCreated) {
  for (AxisRef axis : {kX, kY}) {
    Graph g;
    unsigned a = g.value(64, {axis});
    unsigned y = g.op(Law::Never, {a}, 64);
    g.problem.values[y].created = {kX};
    g.problem.ops[0].usedAxes = {kX};
    g.problem.ops[0].accumulators = {0};
    g.output(y);
    EXPECT_EQ(g.reduced(placePartials(g.problem)),
              axis == kX ? Values{y} : (Values{a, y}));
  }
}

TEST(PartialPlacement, EqualBytesReduceAtOnce) {
  Graph g;
  unsigned a = g.value(64, {kX});
  g.output(g.op(Law::Linear, {a}, 64));
  EXPECT_EQ(g.reduced(placePartials(g.problem)), Values{a});
}

TEST(PartialPlacement, OneReductionForAllUsers) {
  Graph g;
  unsigned a = g.value(64, {kX});
  unsigned slice = g.op(Law::Linear, {a}, 16);
  g.output(slice);
  g.output(g.op(Law::Never, {a}, 64));
  PartialResult result = placePartials(g.problem);
  EXPECT_EQ(g.reduced(result), Values{a});
  EXPECT_EQ(result.bytes, 64);
}

TEST(PartialPlacement, TwoSmallSlicesOrOneWhole) {
  for (double bytes : {16.0, 48.0}) {
    Graph g;
    unsigned a = g.value(64, {kX});
    unsigned first = g.op(Law::Linear, {a}, bytes);
    unsigned second = g.op(Law::Linear, {a}, bytes);
    g.output(first);
    g.output(second);
    EXPECT_EQ(g.reduced(placePartials(g.problem)),
              bytes == 16 ? (Values{first, second}) : Values{a});
  }
}

// Only one side of a product may be partial: the dear one.
TEST(PartialPlacement, ProductKeepsTheLargerSide) {
  Graph g;
  unsigned a = g.value(8, {kX}), b = g.value(64, {kX});
  unsigned product = g.op(Law::EitherSide, {a, b}, 32);
  g.output(product);
  EXPECT_EQ(g.reduced(placePartials(g.problem)), (Values{a, product}));
}

TEST(PartialPlacement, PartialAxesDontPassAnOpCutAlongThem) {
  Graph g;
  unsigned a = g.value(64, {kX});
  unsigned slice = g.op(Law::Linear, {a}, 16);
  g.problem.ops[0].usedAxes = {kX};
  g.output(slice);
  EXPECT_EQ(g.reduced(placePartials(g.problem)), Values{a});
}

// The value is wanted cut along the axis of its summands: a reduce-scatter.
TEST(PartialPlacement, ValueCutAlongItsPartialAxisIsReducedAtOnce) {
  Graph g;
  unsigned a = g.value(64, {kX, kY});
  g.problem.values[a].cutAxes = {kX};
  unsigned slice = g.op(Law::Linear, {a}, 16);
  g.output(slice);
  EXPECT_EQ(g.reduced(placePartials(g.problem)), Values{a});
}

TEST(PartialPlacement, DeadPartialValueIsNotReduced) {
  Graph g;
  g.value(64, {kX});
  EXPECT_EQ(placePartials(g.problem).bytes, 0);
}

TEST(PartialPlacement, AxesTogetherAndApart) {
  Graph g;
  unsigned a = g.value(64, {kX, kY}), b = g.value(64, {kX});
  unsigned sum = g.op(Law::AllOrNone, {a, b}, 64);
  g.output(sum);
  PartialResult result = placePartials(g.problem);
  EXPECT_EQ(result.reducedAt(a), AxisList{kY});
  EXPECT_EQ(result.kept[a], AxisList{kX});
  EXPECT_EQ(result.reducedAt(sum), AxisList{kX});
}

TEST(PartialPlacement, SumsDontPassAsMax) {
  Graph g;
  unsigned a = g.value(64, {kX});
  unsigned r = g.op(Law::Linear, {a}, 8);
  g.problem.values[r].created = {kY};
  g.problem.values[r].kind = ReductionKind::Max;
  g.output(r);
  PartialResult result = placePartials(g.problem);
  EXPECT_EQ(g.reduced(result), (Values{a, r}));
  EXPECT_EQ(result.kinds[r], ReductionKind::Max);
}

//===----------------------------------------------------------------------===//
// Declared partial values
//===----------------------------------------------------------------------===//

TEST(PartialPlacement, DeclaredArgumentStaysPartial) {
  Graph g;
  unsigned a = g.value(8);
  g.problem.values[a].declared = {kX};
  unsigned spread = g.op(Law::Linear, {a}, 64);
  g.output(spread);
  PartialResult result = placePartials(g.problem);
  EXPECT_TRUE(result.errors.empty());
  EXPECT_EQ(g.reduced(result), Values{spread});
}

TEST(PartialPlacement, DeclaredResultKeepsTheChainPartial) {
  Graph g;
  unsigned a = g.value(8, {kX});
  unsigned spread = g.op(Law::Linear, {a}, 64);
  g.problem.values[spread].declared = {kX};
  PartialResult result = placePartials(g.problem);
  EXPECT_TRUE(result.errors.empty());
  EXPECT_EQ(result.bytes, 0);
  EXPECT_EQ(result.kept[spread], AxisList{kX});
}

TEST(PartialPlacement, DeclaredIntoNonLinearIsAnError) {
  Graph g;
  unsigned a = g.value(8);
  g.problem.values[a].declared = {kX, kY};
  g.output(g.op(Law::Never, {a}, 8));
  PartialResult result = placePartials(g.problem);
  ASSERT_EQ(result.errors.size(), 1u);
  EXPECT_EQ(result.errors[0].kind, PartialError::NonLinearUse);
  EXPECT_EQ(result.errors[0].value, a);
  EXPECT_EQ(result.errors[0].op, 0u);
  EXPECT_EQ(result.errors[0].axes, (AxisList{kX, kY}));
}

TEST(PartialPlacement, DeclaredSummandBesideAWholeOneIsAnError) {
  Graph g;
  unsigned a = g.value(8), b = g.value(8, {kX});
  g.problem.values[a].declared = {kX};
  g.output(b);
  g.output(g.op(Law::AllOrNone, {a, b}, 8));
  PartialResult result = placePartials(g.problem);
  ASSERT_EQ(result.errors.size(), 1u);
  EXPECT_EQ(result.errors[0].kind, PartialError::NonLinearUse);
  EXPECT_EQ(result.errors[0].value, a);
}

TEST(PartialPlacement, DeclaredButNotProducedIsAnError) {
  Graph g;
  unsigned a = g.value(8);
  unsigned b = g.op(Law::Linear, {a}, 8);
  g.problem.values[b].declared = {kX};
  PartialResult result = placePartials(g.problem);
  ASSERT_EQ(result.errors.size(), 1u);
  EXPECT_EQ(result.errors[0].kind, PartialError::NotPartial);
  EXPECT_EQ(result.errors[0].value, b);
}

// A sum is declared, the body makes a maximum.
TEST(PartialPlacement, DeclaredWithAnotherKindIsAnError) {
  Graph g;
  unsigned a = g.value(8);
  unsigned b = g.op(Law::Never, {a}, 8);
  g.problem.values[b].created = {kX};
  g.problem.values[b].kind = ReductionKind::Max;
  g.problem.values[b].declared = {kX};
  PartialResult result = placePartials(g.problem);
  ASSERT_EQ(result.errors.size(), 1u);
  EXPECT_EQ(result.errors[0].kind, PartialError::NotPartial);
}

//===----------------------------------------------------------------------===//
// Against brute force
//===----------------------------------------------------------------------===//

/// Bytes of a labelling with one axis, or none if it is not allowed.
static std::optional<double> bytesOf(const Graph &g, unsigned kept) {
  std::vector<bool> produced;
  for (const PartialValue &value : g.problem.values)
    produced.push_back(!value.created.empty());
  for (auto [i, op] : llvm::enumerate(g.problem.ops)) {
    llvm::BitVector partial(op.operands.size());
    for (auto [k, operand] : llvm::enumerate(op.operands))
      if (kept >> operand & 1)
        partial.set(k);
    if (partial.none())
      continue;
    if (!lawAllows(g.laws[i], partial))
      return std::nullopt;
    produced[op.results[0]] = true;
  }
  double bytes = 0;
  for (auto [v, value] : llvm::enumerate(g.problem.values)) {
    bool stays = kept >> v & 1;
    if (stays && (!produced[v] || value.neededWhole))
      return std::nullopt;
    if (produced[v] && !stays)
      bytes += value.bytes;
  }
  return bytes;
}

static Graph randomGraph(std::mt19937 &random, llvm::ArrayRef<Law> laws) {
  Graph g;
  auto pick = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  unsigned inputs = 1 + pick(4), ops = 2 + pick(7);
  for (unsigned i = 0; i < inputs; ++i)
    g.value(1 + pick(16), pick(4) ? AxisList{kX} : AxisList{});
  for (unsigned i = 0; i < ops; ++i) {
    unsigned known = g.problem.values.size();
    Law law = laws[pick(laws.size())];
    llvm::SmallVector<unsigned> operands{pick(known)};
    if (law != Law::Linear)
      operands.push_back(pick(known));
    unsigned result = g.op(law, operands, 1 + pick(16));
    if (pick(3) == 0)
      g.output(result);
  }
  g.output(g.problem.values.size() - 1);
  return g;
}

static double kept(const PartialResult &result, unsigned &bits) {
  for (auto [v, axes] : llvm::enumerate(result.kept))
    if (!axes.empty())
      bits |= 1u << v;
  return result.bytes;
}

static void compare(unsigned trials, llvm::ArrayRef<Law> laws,
                    unsigned allowedWorse) {
  std::mt19937 random(7);
  unsigned worse = 0;
  for (unsigned trial = 0; trial < trials; ++trial) {
    Graph g = randomGraph(random, laws);
    g.problem.letsThrough = [&](unsigned op, ReductionKind,
                                const llvm::BitVector &partial) {
      return lawAllows(g.laws[op], partial);
    };
    PartialResult result = placePartials(g.problem);
    unsigned bits = 0;
    double bytes = kept(result, bits);
    std::optional<double> own = bytesOf(g, bits);
    ASSERT_TRUE(own) << "trial " << trial;
    EXPECT_EQ(*own, bytes) << "trial " << trial;
    double best = bytes;
    for (unsigned all = 0; all < (1u << g.problem.values.size()); ++all)
      if (std::optional<double> other = bytesOf(g, all))
        best = std::min(best, *other);
    worse += best < bytes;
  }
  std::printf("%u of %u above the least\n", worse, trials);
  EXPECT_LE(worse, allowedWorse) << "of " << trials;
}

// Where each op admits one set of partial operands the answer is exact.
TEST(PartialPlacement, BruteForceLinear) {
  compare(1500, {Law::Linear, Law::AllOrNone, Law::AllOrNone, Law::Never}, 0);
}

// With several sets the search over modes is local.
TEST(PartialPlacement, BruteForceProducts) {
  compare(1500,
          {Law::Linear, Law::AllOrNone, Law::EitherSide, Law::AnyOperand,
           Law::Never},
          5);
}

TEST(PartialPlacement, LargeProgramsAreFast) {
  Graph g;
  unsigned x = g.value(64, {kX});
  for (unsigned i = 0; i < 10000; ++i) {
    x = g.op(Law::Linear, {x}, 64 + i % 7);
    if (i % 3 == 0)
      x = g.op(Law::AllOrNone, {x, g.value(64, {kX})}, 64);
    if (i % 50 == 49) {
      x = g.op(Law::Never, {x}, 64);
      x = g.op(Law::EitherSide, {x, g.value(32, {kX})}, 64);
    }
  }
  g.output(x);
  double start = cpuSeconds();
  PartialResult result = placePartials(g.problem);
  double seconds = cpuSeconds() - start;
  std::printf("%zu ops: %.1f ms\n", g.problem.ops.size(), seconds * 1e3);
  EXPECT_GT(result.bytes, 0);
  EXPECT_LT(seconds, 1.5);
}

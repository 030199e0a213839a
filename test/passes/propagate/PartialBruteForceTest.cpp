//===- PartialBruteForceTest.cpp - The least of all placements ------------===//
#include "PartialGraph.h"
#include "TestProgram.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>
#include <random>

using namespace cleave;
using namespace cleave::test;

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
    if (op.loop) {
      // Init, iter-arg and yielded value.
      if (partial[1] != partial[2] || (partial[0] && !partial[1]))
        return std::nullopt;
      produced[op.operands[1]] = partial[2];
      produced[op.results[0]] = partial[2];
      continue;
    }
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
      bytes += value.times * value.bytes;
  }
  return bytes;
}

static Graph randomGraph(std::mt19937 &random, llvm::ArrayRef<Law> laws) {
  Graph g;
  auto pick = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  unsigned inputs = 1 + pick(4), ops = 2 + pick(7);
  for (unsigned i = 0; i < inputs; ++i)
    g.value(1 + pick(16), pick(4) ? AxisList{kX} : AxisList{});
  // Half of the programs have a loop around some of their ops.
  unsigned begin = pick(2 * ops), init = 0, arg = 0;
  for (unsigned i = 0; i < ops; ++i) {
    if (i == begin) {
      init = pick(g.problem.values.size());
      arg = g.beginLoop(1 + pick(16));
    }
    unsigned known = g.problem.values.size();
    Law law = laws[pick(laws.size())];
    llvm::SmallVector<unsigned> operands{pick(known)};
    if (law != Law::Linear)
      operands.push_back(pick(known));
    unsigned result = g.op(law, operands, 1 + pick(16));
    if (pick(3) == 0)
      g.output(result);
    if (i >= begin && arg && pick(3) == 0) {
      unsigned yielded = arg + pick(g.problem.values.size() - arg);
      g.endLoop(init, arg, yielded, 1 + pick(3));
      arg = 0;
    }
  }
  if (arg)
    g.endLoop(init, arg, g.problem.values.size() - 1, 2);
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

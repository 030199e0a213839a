//===- SharedMovesTest.cpp - Values moved once for several readers --------===//
#include "passes/propagate/SharedMoves.h"
#include "TestProgram.h"
#include <gtest/gtest.h>
#include <numeric>
#include <random>

using namespace cleave;
using namespace cleave::test;

namespace {

struct Shared : Program {
  using Program::Program;

  std::vector<SharedMove> solve() {
    // Sums and copies of summands are summands, and so are products with one.
    placer.emplace(problem.mesh, [this](unsigned op, ReductionKind,
                                        const llvm::BitVector &partial) {
      bool isProduct =
          llvm::any_of(problem.ops[op].rule.factors, [](const Factor &factor) {
            return factor.kind == FactorKind::Reduction;
          });
      return isProduct ? partial.count() == 1 : partial.all();
    });
    result = propagate(problem);
    placement = placer->place(problem, result.shardings);
    before = bytes();
    std::vector<SharedMove> moves =
        shareMoves(problem, *placer, result, placement);
    placement = placer->place(problem, result.shardings);
    return moves;
  }
  /// Returns the value: it is needed so.
  void output(unsigned value, llvm::StringRef sharding) {
    identity(value, Direction::Both, sharding);
    problem.ops.back().tie = Tie::Edge;
  }
  double bytes() const {
    std::vector<double> all = bytesOfValues(problem, placement);
    return std::accumulate(all.begin(), all.end(), 0.0);
  }
  std::string show(const Sharding &sharding) const {
    return print(problem.mesh, sharding);
  }

  /// Owns what the placement points to.
  std::optional<Placer> placer;
  Placement placement;
  /// Without moves.
  double before = 0;
};

/// Rows times two weights, and their product times a third one; rows as
/// columns: the weights are cut by columns, by columns, and by rows.
struct Gated {
  Gated(Shared &p, int64_t rows, llvm::StringRef inner = "") {
    x = p.value({rows, 8}, "{a}{}");
    v = p.value({8, 8}, "{}{a}");
    w = p.value({8, 8}, "{}{a}");
    u = p.value({8, 8}, "{a}{}");
    first = p.problem.ops.size();
    g = p.add(p.dot(x, v, inner), p.dot(x, w, inner));
    y = p.dot(g, u);
    p.output(y, "{a}{}");
  }
  unsigned x, v, w, u, g, y;
  /// The first of its ops.
  unsigned first;
};

TEST(SharedMoves, MovesOnce) {
  Shared p("a2");
  Gated m(p, 8);
  std::vector<SharedMove> moves = p.solve();
  ASSERT_EQ(moves.size(), 1u);
  EXPECT_EQ(moves[0].value, m.x);
  EXPECT_EQ(p.show(moves[0].sharding), "{}{}");
  EXPECT_EQ(moves[0].readers,
            (llvm::SmallVector<unsigned, 4>{m.first, m.first + 1}));
  // The value stands behind the others, and the readers read it.
  EXPECT_EQ(moves[0].moved, p.problem.values.size() - 1);
  EXPECT_EQ(p.problem.ops[m.first].operands[0], moves[0].moved);
  EXPECT_EQ(p.problem.ops[m.first + 1].operands[0], moves[0].moved);
  EXPECT_EQ(p.problem.ops.back().tie, Tie::Move);
  EXPECT_EQ(p[m.x], "{a}{}");
  EXPECT_EQ(p[m.g], "{}{a}");
  // Three gathers of weights before; a gather and a scatter now.
  EXPECT_EQ(p.before, 3 * 128);
  EXPECT_EQ(p.bytes(), 2 * 128);
  EXPECT_EQ(moves[0].bytesBefore, 3 * 128);
  EXPECT_EQ(moves[0].bytes, 2 * 128);
}

/// Equal bytes, and more, are no reason.
TEST(SharedMoves, OnlyWhereThatIsLess) {
  for (int64_t rows : {12, 32}) {
    Shared p("a2");
    Gated m(p, rows);
    EXPECT_TRUE(p.solve().empty());
    EXPECT_EQ(p.bytes(), p.before);
    EXPECT_EQ(p.problem.values.size(), 9u);
    EXPECT_EQ(p.problem.ops.size(), 5u);
    EXPECT_EQ(p.problem.ops[m.first].operands[0], m.x);
    EXPECT_EQ(p[m.g], "{a}{}");
  }
}

TEST(SharedMoves, ClosedReadersStay) {
  Shared p("a2");
  Gated m(p, 8, "{a}{}");
  EXPECT_TRUE(p.solve().empty());
  EXPECT_EQ(p[m.g], "{a}{}");
}

/// A value that one op reads, twice even, is not shared.
TEST(SharedMoves, OneReaderIsNone) {
  Shared p("a2");
  unsigned x = p.value({8, 8}, "{a}{}"), w = p.value({8, 8}, "{}{a}");
  unsigned g = p.op("ik,kj,ik->ij", {x, w, x}, {8, 8});
  p.output(p.dot(g, p.value({8, 8}, "{a}{}")), "{a}{}");
  EXPECT_TRUE(p.solve().empty());
}

/// Two blocks in a row: the second one's rows are declared.
TEST(SharedMoves, EachPartForItself) {
  Shared p("a2");
  Gated one(p, 8), two(p, 32), three(p, 8), four(p, 8, "{a}{}");
  std::vector<SharedMove> moves = p.solve();
  ASSERT_EQ(moves.size(), 2u);
  EXPECT_EQ(moves[0].value, one.x);
  EXPECT_EQ(moves[1].value, three.x);
  EXPECT_EQ(moves[0].bytesBefore, 3 * 128);
  EXPECT_EQ(moves[1].bytes, 2 * 128);
  EXPECT_EQ(p.before - p.bytes(), 2 * 128);
  EXPECT_EQ(p[two.g], "{a}{}");
  EXPECT_EQ(p[three.g], "{}{a}");
  EXPECT_EQ(p[four.g], "{a}{}");
}

/// Weights from outside of a loop move once, what a trip makes in each.
TEST(SharedMoves, TripsCount) {
  Shared p("a2");
  Gated m(p, 8);
  for (unsigned id : {m.x, m.g, m.y})
    p.problem.values[id].times = 4;
  for (PropagationOp &op : p.problem.ops)
    op.times = 4;
  EXPECT_TRUE(p.solve().empty());
}

/// What is left of a cut of priority 1 still waits for all of priority 0; so
/// does what came from such a cut.
TEST(SharedMoves, PrioritiesStay) {
  for (bool direct : {true, false}) {
    Shared p("a2,b2");
    unsigned x = p.value({16, 8}, "{b,a}p1{}");
    if (!direct)
      x = p.identity(x, Direction::Both);
    unsigned v = p.value({8, 8}, "{}p1{a}p1"), w = p.value({8, 8}, "{}p1{a}p1");
    unsigned g = p.add(p.dot(x, v), p.dot(x, w));
    p.output(p.dot(g, p.value({8, 8}, "{a}p1{}p1")), "{b,a}p1{}p1");
    std::vector<SharedMove> moves = p.solve();
    ASSERT_EQ(moves.size(), 1u);
    EXPECT_EQ(p.show(moves[0].sharding), "{b}{}");
    EXPECT_EQ(moves[0].sharding.dims[0].priority, 1u);
    EXPECT_EQ(p.problem.values[moves[0].moved].initial.dims[0].priority, 1u);
  }
}

/// What nobody reads moves nothing, and so is no reason.
TEST(SharedMoves, DeadReadersDoNotCount) {
  Shared p("a2");
  unsigned x = p.value({8, 8}, "{a}{}");
  for (int i = 0; i < 3; ++i)
    p.dot(x, p.value({8, 8}, "{}{a}"));
  unsigned y = p.dot(x, p.value({8, 8}, "{}{a}"));
  p.output(y, "{a}{}");
  EXPECT_TRUE(p.solve().empty());
  EXPECT_EQ(p.bytes(), 128);
}

/// The weights are cut along the summed dim: the value is exchanged, so that it
/// is cut there too.
TEST(SharedMoves, ExchangesInsteadOfGathering) {
  Shared p("a2");
  unsigned x = p.value({4, 8}, "{a}{}");
  for (int i = 0; i < 3; ++i)
    p.output(p.dot(x, p.value({8, 3}, "{a}{}")), "{a}{}");
  std::vector<SharedMove> moves = p.solve();
  ASSERT_EQ(moves.size(), 1u);
  EXPECT_EQ(p.show(moves[0].sharding), "{}{a}");
  EXPECT_EQ(moves[0].readers.size(), 3u);
  EXPECT_EQ(p.before, 3 * 48);
  EXPECT_EQ(p.bytes(), 32 + 3 * 24);
}

/// What is declared partial stays so, beside others that move.
TEST(SharedMoves, PartialValuesStay) {
  Shared p("a2,b2");
  unsigned x = p.value({8, 8}, "{a}{} partial=sum{b}");
  for (int i = 0; i < 2; ++i)
    p.output(p.dot(x, p.value({8, 8}, "{}{a}")), "{a}{}");
  Gated other(p, 8);
  std::vector<SharedMove> moves = p.solve();
  ASSERT_EQ(moves.size(), 1u);
  EXPECT_EQ(moves[0].value, other.x);
}

//===----------------------------------------------------------------------===//
// Random programs
//===----------------------------------------------------------------------===//

void fill(Shared &p, unsigned seed) {
  std::mt19937 random(seed);
  auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  static const char *const cuts[] = {"{a}{}", "{}{a}",   "{b}{a}", "{}{b}",
                                     "{b}{}", "{?}{?}",  "{a}{b}", "{a,b}{}",
                                     "",      "{a,?}{?}"};
  std::vector<unsigned> pool;
  auto fresh = [&] { return p.value({8, 8}, cuts[below(std::size(cuts))]); };
  for (int i = 0; i < 2; ++i)
    pool.push_back(fresh());
  unsigned ops = 3 + below(12);
  for (unsigned i = 0; i < ops; ++i) {
    // The first ones have several readers.
    unsigned x = pool[below(below(2) ? 2 : pool.size())];
    llvm::StringRef result = below(5) == 0 ? cuts[below(std::size(cuts))] : "";
    switch (below(4)) {
    case 0:
      pool.push_back(p.add(x, pool[below(pool.size())], result));
      break;
    case 1:
      pool.push_back(p.identity(x, Direction::Both, result));
      break;
    default:
      pool.push_back(p.dot(x, fresh(), result));
    }
  }
  p.output(pool.back(), cuts[below(std::size(cuts))]);
  for (unsigned value : pool)
    if (below(3) == 0)
      p.output(value, "");
}

TEST(SharedMoves, RandomProgramsSendLess) {
  unsigned shared = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    Shared p("a2,b2"), again("a2,b2");
    fill(p, seed);
    fill(again, seed);
    std::vector<SharedMove> moves = p.solve();
    SCOPED_TRACE(seed);
    if (moves.empty())
      EXPECT_EQ(p.bytes(), p.before);
    else
      EXPECT_LT(p.bytes(), p.before);
    shared += !moves.empty();
    // What was found is what propagation gives of the extended problem.
    std::vector<Sharding> found = p.result.shardings;
    EXPECT_EQ(propagate(p.problem).shardings, found);
    // Closed dims of the user are as written.
    for (auto [v, value] : llvm::enumerate(again.problem.values))
      for (auto [dim, now] : llvm::zip_equal(value.initial.dims, found[v].dims))
        if (!dim.open)
          EXPECT_EQ(dim.axes, now.axes);
    EXPECT_EQ(again.solve().size(), moves.size());
    EXPECT_EQ(again.result.shardings, found);
  }
  EXPECT_GT(shared, 20u);
}

} // namespace

//===- FactorsTest.cpp - Between shardings of tensors and of factors ------===//
#include "TestProgram.h"
#include "passes/propagate/AxisLists.h"
#include <gtest/gtest.h>
#include <set>

using namespace cleave;
using namespace cleave::test;

static FactorAxes project(const ShardingRule &rule, const Mesh &mesh,
                          unsigned tensor, llvm::StringRef text) {
  unsigned rank = rule.tensor(tensor).dims.size();
  return factorAxesOf(rule, tensor, parseSharding(mesh, rank, text));
}

TEST(Factors, ProjectCompoundDims) {
  Mesh mesh = parseMesh("a4,b2");
  ShardingRule rule = parseRule("(ij)->ij", {{8}, {2, 4}});
  FactorAxes axes = project(rule, mesh, 0, "{a}");
  EXPECT_EQ(toString(mesh, axes[0]), "\"a\":(1)2");
  EXPECT_EQ(toString(mesh, axes[1]), "\"a\":(2)2");
  axes = project(rule, mesh, 0, "{b,a}");
  EXPECT_EQ(toString(mesh, axes[0]), "\"b\"");
  EXPECT_EQ(toString(mesh, axes[1]), "\"a\"");
}

TEST(Factors, MajorFactorThatDoesNotDivide) {
  Mesh mesh = parseMesh("a3,b2");
  ShardingRule rule = parseRule("(ij)->ij", {{8}, {2, 4}});
  FactorAxes axes = project(rule, mesh, 0, "{a,b}");
  EXPECT_TRUE(axes[0].empty() && axes[1].empty());
  EXPECT_EQ(projectDim(rule, {0, 1}, {mesh.whole(0)}).rest.size(), 1u);
}

TEST(Factors, SizeOneFactorsAreSkipped) {
  Mesh mesh = parseMesh("a3");
  ShardingRule rule = parseRule("(ij)->ij", {{8}, {1, 8}});
  FactorAxes axes = project(rule, mesh, 0, "{a}");
  EXPECT_TRUE(axes[0].empty());
  EXPECT_EQ(toString(mesh, axes[1]), "\"a\"");
}

TEST(Factors, ImpliedShardings) {
  Mesh mesh = parseMesh("a2,b2,c2");
  ShardingRule rule = parseRule("ik,kj->ij", {{8, 8}, {8, 8}, {8, 8}});
  rule.factors[1].reduction = ReductionKind::Max;
  FactorAxes axes(3);
  axes[0] = {mesh.whole(0)};
  axes[1] = {mesh.whole(1)};
  axes[2] = {mesh.whole(2)};
  EXPECT_EQ(print(mesh, impliedSharding(rule, 0, axes, mesh)), "{a}{b}");
  EXPECT_EQ(print(mesh, impliedSharding(rule, 1, axes, mesh)), "{b}{c}");
  EXPECT_EQ(print(mesh, impliedSharding(rule, 2, axes, mesh)),
            "{a}{c} partial=max{b}");
}

TEST(Factors, NotComputable) {
  Mesh mesh = parseMesh("a2,b2");
  AxisRef a = mesh.whole(0), b = mesh.whole(1);
  ShardingRule rule = parseRule("ik,kj->ij", {{8, 8}, {8, 8}, {8, 8}});
  using Axes = FactorAxes;
  EXPECT_TRUE(computableAt(rule, Axes{{a}, {b}, {}}));
  EXPECT_FALSE(computableAt(rule, Axes{{a}, {a}, {}}));
  rule.factors[2].kind = FactorKind::NeedReplication;
  EXPECT_FALSE(computableAt(rule, Axes{{}, {}, {b}}));
  EXPECT_TRUE(computableAt(rule, Axes{{}, {b}, {}}));
  ShardingRule diagonal = parseRule("ii->i", {{8, 8}, {8}});
  EXPECT_FALSE(computableAt(diagonal, Axes{{a}}));
}

//===----------------------------------------------------------------------===//
// The condition of compound dims, against indices
//===----------------------------------------------------------------------===//

using Indices = std::set<int64_t>;

static Indices block(int64_t size, int64_t shards, int64_t shard) {
  Indices result;
  int64_t length = ceilDiv(size, shards);
  for (int64_t i = shard * length; i < std::min(size, (shard + 1) * length);
       ++i)
    result.insert(i);
  return result;
}

/// Whether each shard of [m*n] in p*q is the product of those of [m] and [n].
static bool sameBlocks(int64_t m, int64_t n, int64_t p, int64_t q) {
  for (int64_t shard = 0; shard < p * q; ++shard) {
    Indices product;
    for (int64_t i : block(m, p, shard / q))
      for (int64_t j : block(n, q, shard % q))
        product.insert(i * n + j);
    if (product != block(m * n, p * q, shard))
      return false;
  }
  return true;
}

TEST(Factors, CompoundConditionIsExact) {
  for (int64_t m = 1; m <= 6; ++m)
    for (int64_t n = 1; n <= 6; ++n)
      for (int64_t p = 1; p <= 6; ++p)
        for (int64_t q = 1; q <= 6; ++q) {
          ShardingRule rule = parseRule("(ij)->ij", {{m * n}, {m, n}});
          FactorAxes axes(2);
          if (p > 1)
            axes[0] = {{0, 1, p}};
          if (q > 1)
            axes[1] = {{1, 1, q}};
          bool computable = computableAt(rule, axes);
          // Never wrong. Cuts of a size-1 factor, and those into more blocks
          // than there are indices, may be refused though they would do.
          if (computable)
            EXPECT_TRUE(sameBlocks(m, n, p, q))
                << m << ' ' << n << ' ' << p << ' ' << q;
          else if (m > 1 && n > 1 && p <= m && q <= n && n % q == 0 &&
                   m % p == 0)
            EXPECT_FALSE(sameBlocks(m, n, p, q))
                << m << ' ' << n << ' ' << p << ' ' << q;
          makeComputable(rule, axes);
          EXPECT_TRUE(computableAt(rule, axes));
        }
}

TEST(Factors, MakeComputableKeepsWhatItCan) {
  Mesh mesh = parseMesh("a6,b2");
  ShardingRule rule = parseRule("(ij)->ij", {{8}, {2, 4}});
  FactorAxes axes = project(rule, mesh, 0, "{a}");
  makeComputable(rule, axes);
  EXPECT_EQ(toString(mesh, axes[0]), "\"a\":(1)2");
  EXPECT_TRUE(axes[1].empty());
}

//===----------------------------------------------------------------------===//
// The estimate
//===----------------------------------------------------------------------===//

static double bytes(llvm::StringRef mesh, Shape shape, llvm::StringRef from,
                    llvm::StringRef to) {
  Mesh m = parseMesh(mesh);
  return estimateReshardBytes(parseSharding(m, shape.size(), from),
                              parseSharding(m, shape.size(), to), shape, 1);
}

TEST(Factors, EstimateFollowsRingConventions) {
  // 16x8 = 128 elements on x4, y2.
  EXPECT_EQ(bytes("x4,y2", {16, 8}, "{x}{}", "{x}{}"), 0);
  EXPECT_EQ(bytes("x4,y2", {16, 8}, "{}{}", "{x}{y}"), 0);
  EXPECT_EQ(bytes("x4,y2", {16, 8}, "{x}{}", "{}{}"), 96);
  EXPECT_EQ(bytes("x4,y2", {16, 8}, "{x,y}{}", "{x}{}"), 16);
  EXPECT_EQ(bytes("x4,y2", {16, 8}, "{x}{}", "{}{x}"), 24);
  EXPECT_EQ(bytes("x4,y2", {16, 8}, "{}{} partial=sum{x}", "{}{}"), 192);
  EXPECT_EQ(bytes("x4,y2", {16, 8}, "{}{} partial=sum{x}", "{x}{}"), 96);
  EXPECT_EQ(
      bytes("x4,y2", {16, 8}, "{}{} partial=sum{x}", "{}{} partial=sum{x}"), 0);
  // Cut first, then exchange.
  EXPECT_EQ(bytes("x4,y2", {16, 8}, "{x}{}", "{y}{x}"), 12);
  // Uneven: 5 in 4 is blocks of 2.
  EXPECT_EQ(bytes("x4", {5}, "{x}", "{}"), 6);
  // Halves of 10 are blocks of 5, eighths blocks of 2: no eighth lies in one.
  EXPECT_EQ(bytes("x2,y4", {10}, "{x}", "{x,y}"), 2);
  EXPECT_EQ(bytes("x2,y4", {16}, "{x}", "{x,y}"), 0);
}

TEST(Factors, CacheAsksOnce) {
  unsigned asked = 0;
  ReshardCost cost = cached([&](const Sharding &from, const Sharding &to,
                                llvm::ArrayRef<int64_t> shape, int64_t bytes) {
    ++asked;
    return estimateReshardBytes(from, to, shape, bytes);
  });
  Mesh mesh = parseMesh("x4");
  Sharding from = parseSharding(mesh, 1, "{x}"),
           to = parseSharding(mesh, 1, "{}");
  EXPECT_EQ(cost(from, to, {8}, 4), 24);
  EXPECT_EQ(cost(from, to, {8}, 4), 24);
  EXPECT_EQ(asked, 1u);
  EXPECT_EQ(cost(from, to, {16}, 4), 48);
  EXPECT_EQ(cost(to, from, {16}, 4), 0);
  EXPECT_EQ(asked, 3u);
}

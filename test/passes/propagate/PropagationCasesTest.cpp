//===- PropagationCasesTest.cpp - What users of the field expect ----------===//
// The cases of the existing practice, with the same numbers. Where the result
// differs, the comment says why it is better.
#include "TestProgram.h"
#include <gtest/gtest.h>

using namespace cleave;
using namespace cleave::test;

//===----------------------------------------------------------------------===//
// Within one factor
//===----------------------------------------------------------------------===//

TEST(PropagationCases, AddThenDot) {
  Program p("a2,b2");
  unsigned x = p.value({8, 8}, "{a}{b}"), y = p.value({8, 8});
  unsigned w = p.value({8, 16});
  unsigned sum = p.add(x, y), product = p.dot(sum, w);
  p.run();
  EXPECT_EQ(p[y], "{a}{b}");
  EXPECT_EQ(p[sum], "{a}{b}");
  EXPECT_EQ(p[w], "{b}{}");
  EXPECT_EQ(p[product], "{a}{}");
}

TEST(PropagationCases, ClosedResultDimRefuses) {
  Program p("a2,b2");
  unsigned x = p.value({8, 8}, "{a}{}"), w = p.value({8, 16}, "{}{b}");
  unsigned product = p.dot(x, w, "{}{?}");
  p.run();
  EXPECT_EQ(p[product], "{}{b}");
  EXPECT_EQ(p[x], "{a}{}");
  EXPECT_EQ(p[w], "{}{b}");
}

// The common prefix is {b}. With it alone each operand would be gathered;
// taking one side moves only the other, so the result is {b,a}.
TEST(PropagationCases, CommonPrefixThenCheaperSide) {
  Program p("a2,b2,c2");
  unsigned x = p.value({8, 8}, "{b,a}{}"), y = p.value({8, 8}, "{b,c}{}");
  unsigned sum = p.add(x, y);
  const PropagationResult &result = p.run();
  EXPECT_EQ(p[sum], "{b,a}{}");
  ASSERT_EQ(result.decisions.size(), 2u);
  EXPECT_EQ(toString(p.problem.mesh, result.decisions[0].axes), "\"b\"");
  EXPECT_EQ(result.decisions[1].phase, Phase::Resolve);
  ASSERT_EQ(result.decisions[1].losers.size(), 1u);
  EXPECT_EQ(result.decisions[1].losers[0].source, y);
}

// Nothing in common: again the result takes a side instead of being whole.
TEST(PropagationCases, NoCommonPrefix) {
  Program p("a2,b2");
  unsigned x = p.value({8, 8}, "{b,a}{}"), y = p.value({8, 8}, "{a,b}{}");
  unsigned sum = p.add(x, y);
  p.run();
  EXPECT_EQ(p[sum], "{b,a}{}");
}

//===----------------------------------------------------------------------===//
// Reshapes
//===----------------------------------------------------------------------===//

static std::string split(llvm::StringRef mesh, Shape from, Shape to,
                         llvm::StringRef sharding) {
  Program p(mesh);
  unsigned x = p.value(from, sharding);
  unsigned y = p.op("(ij)->ij", {x}, to);
  p.run();
  return p[y];
}

static std::string merge(llvm::StringRef mesh, Shape from, Shape to,
                         llvm::StringRef sharding) {
  Program p(mesh);
  unsigned x = p.value(from, sharding);
  unsigned y = p.op("ij->(ij)", {x}, to);
  p.run();
  return p[y];
}

TEST(PropagationCases, ReshapeSplit) {
  EXPECT_EQ(split("a4", {8}, {2, 4}, "{a}"), "{a:(1)2}{a:(2)2}");
  EXPECT_EQ(split("a2,b2", {8}, {2, 4}, "{b,a}"), "{b}{a}");
  EXPECT_EQ(split("a2,b2", {16}, {4, 4}, "{b,a}"), "{b,a}{}");
  EXPECT_EQ(split("a3", {8}, {2, 4}, "{a}"), "{}{}");
  EXPECT_EQ(split("a6", {8}, {2, 4}, "{a}"), "{a:(1)2}{a:(2)3}");
  EXPECT_EQ(split("a16", {8}, {2, 4}, "{a}"), "{a:(1)2}{a:(2)8}");
}

TEST(PropagationCases, ReshapeMerge) {
  EXPECT_EQ(merge("a2,b2", {2, 4}, {8}, "{a}{b}"), "{a,b}");
  EXPECT_EQ(merge("a2,b2", {4, 4}, {16}, "{a}{b}"), "{a}");
  // A minor dim alone would be strided in the merged one.
  EXPECT_EQ(merge("a2,b2", {4, 4}, {16}, "{}{b}"), "{}");
  EXPECT_EQ(merge("a3", {2, 4}, {8}, "{a}{}"), "{}");
}

TEST(PropagationCases, NonDividingElementwise) {
  for (auto [mesh, sharding] : {std::pair("a3", "{}{a}"), {"a4", "{a}{}"}}) {
    Program p(mesh);
    unsigned x = p.value({2, 4}, sharding), y = p.value({2, 4});
    unsigned sum = p.add(x, y);
    p.run();
    EXPECT_EQ(p[sum], sharding);
    EXPECT_EQ(p[y], sharding);
  }
}

//===----------------------------------------------------------------------===//
// Barriers, meshes
//===----------------------------------------------------------------------===//

TEST(PropagationCases, Barriers) {
  auto run = [](Direction direction) {
    Program p("a2,b2,c2");
    unsigned x = p.value({8, 8}, "{a,?}{c,?}");
    unsigned y = p.identity(x, direction, "{a,b,?}{?}");
    p.run();
    return p[x] + " " + p[y];
  };
  EXPECT_EQ(run(Direction::Backward), "{a,b}{c} {a,b}{}");
  EXPECT_EQ(run(Direction::Forward), "{a}{c} {a,b}{c}");
  EXPECT_EQ(run(Direction::None), "{a}{c} {a,b}{}");
  EXPECT_EQ(run(Direction::Both), "{a,b}{c} {a,b}{c}");
}

TEST(PropagationCases, OtherMesh) {
  Program p("a3");
  unsigned x = p.value({6, 6}, "{a}{}"), y = p.value({6, 6}, "{?}{a,?}");
  p.problem.values[y].foreign = true;
  unsigned z = p.value({6, 6});
  unsigned sum = p.op("ab,ab,ab->ab", {x, y, z}, {6, 6});
  p.run();
  EXPECT_EQ(p[y], "{}{a}");
  EXPECT_EQ(p[z], "{a}{}");
  EXPECT_EQ(p[sum], "{a}{}");
}

//===----------------------------------------------------------------------===//
// Between factors
//===----------------------------------------------------------------------===//

TEST(PropagationCases, ResultKeepsItsAxis) {
  Program p("a2");
  unsigned x = p.value({256, 512}, "{a,?}{?}"), w = p.value({128, 512});
  unsigned product = p.op("ik,jk->ij", {x, w}, {256, 128}, "{?}{a,?}");
  p.run();
  EXPECT_EQ(p[x], "{a}{}");
  EXPECT_EQ(p[w], "{a}{}");
  EXPECT_EQ(p[product], "{}{a}");
}

TEST(PropagationCases, EqualOperandsLowerWins) {
  Program p("a2");
  unsigned x = p.value({8, 8}, "{a}{?}"), y = p.value({8, 8}, "{?}{a}");
  unsigned sum = p.add(x, y);
  p.run();
  EXPECT_EQ(p[sum], "{a}{}");
  ASSERT_EQ(p.result.decisions.size(), 1u);
  ASSERT_EQ(p.result.decisions[0].losers.size(), 1u);
  EXPECT_EQ(p.result.decisions[0].losers[0].source, y);
  EXPECT_EQ(p.result.decisions[0].source, x);
}

// Gathering the 32 elements of the left moves less than the 64 of the right.
TEST(PropagationCases, SmallerTensorMoves) {
  Program p("a2,b2,c2");
  unsigned x = p.value({8, 4}, "{a,b}{?}"), w = p.value({4, 16}, "{?}{a,c}");
  unsigned product = p.dot(x, w);
  p.run();
  EXPECT_EQ(p[product], "{}{a,c}");
  ASSERT_EQ(p.result.decisions.size(), 1u);
  const Decision &decision = p.result.decisions[0];
  ASSERT_EQ(decision.losers.size(), 1u);
  EXPECT_EQ(decision.losers[0].source, x);
  EXPECT_LT(decision.bytes, decision.losers[0].bytes);
}

//===----------------------------------------------------------------------===//
// Priorities
//===----------------------------------------------------------------------===//

TEST(PropagationCases, ElementwiseRunsFirst) {
  Program p("a2");
  unsigned x = p.value({8, 8}, "{a,?}{?}"), w = p.value({8, 8});
  unsigned product = p.dot(x, w), other = p.value({8, 8});
  unsigned sum = p.add(product, other);
  p.add(sum, sum, "{?}{a}");
  p.run();
  EXPECT_EQ(p[product], "{}{a}");
  EXPECT_EQ(p[w], "{}{a}");
  EXPECT_EQ(p[sum], "{}{a}");
}

TEST(PropagationCases, PassThroughBeforeReduction) {
  Program p("a2,b2");
  unsigned x = p.value({32, 1024}), w = p.value({1024, 16}, "{a}{b}");
  unsigned product = p.dot(x, w, "{a}{b}");
  p.run();
  EXPECT_EQ(p[x], "{a}{}");
  EXPECT_EQ(p[product], "{a}{b}");
}

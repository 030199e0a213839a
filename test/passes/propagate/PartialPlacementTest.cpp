//===- PartialPlacementTest.cpp - Where partial values are reduced --------===//
#include "PartialGraph.h"
#include <gtest/gtest.h>

using namespace cleave;
using namespace cleave::test;

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

// Sub-axes that overlap and cannot be aligned, a:(1)3 and a:(2)3 of 6, are two
// matters: what cuts the sum along a:(1)2 does not touch a:(2)3.
TEST(PartialPlacement, SubAxesThatCannotBeAligned) {
  const AxisRef first{0, 1, 3}, second{0, 2, 3}, half{0, 1, 2};
  Graph g;
  unsigned other = g.value(8, {first});
  g.output(other);
  unsigned a = g.value(8, {second}), b = g.value(8, {second});
  unsigned sum = g.op(Law::AllOrNone, {a, b}, 8);
  g.problem.ops[0].usedAxes = {half};
  g.problem.values[sum].declared = {second};
  PartialResult result = placePartials(g.problem);
  EXPECT_TRUE(result.errors.empty());
  EXPECT_EQ(result.kept[sum], AxisList{second});
  EXPECT_EQ(result.produced[other], AxisList{first});
  EXPECT_EQ(g.reduced(result), Values{other});
}

// acc = acc + p in each trip.
TEST(PartialPlacement, LoopsCarrySummands) {
  for (double trips : {1, 2}) {
    Graph g;
    unsigned init = g.value(64), arg = g.beginLoop(64);
    unsigned p = g.op(Law::Never, {init}, 64);
    g.problem.values[p].created = {kX};
    unsigned sum = g.op(Law::AllOrNone, {arg, p}, 64);
    unsigned result = g.endLoop(init, arg, sum, trips);
    g.output(result);
    PartialResult placed = placePartials(g.problem);
    EXPECT_EQ(g.reduced(placed), (trips > 1 ? Values{result} : Values{p}));
    EXPECT_EQ(placed.bytes, 64);
    EXPECT_EQ(placed.kept[arg], (trips > 1 ? AxisList{kX} : AxisList{}));
    EXPECT_EQ(placed.produced[arg], placed.kept[arg]);
  }
}

// The product adds to what is carried; a body that needs it whole, or an
// iter-arg that is cut along the axis, has it reduced in each trip.
TEST(PartialPlacement, LoopsThatNeedTheSumReduceInside) {
  for (unsigned way : {0, 1, 2}) {
    Graph g;
    unsigned init = g.value(64), arg = g.beginLoop(64);
    unsigned next = g.op(Law::Never, {arg}, 64);
    g.problem.values[next].created = {kX};
    g.problem.ops[0].usedAxes = {kX};
    g.problem.ops[0].accumulators = {0};
    if (way == 1)
      g.op(Law::Never, {arg}, 8);
    if (way == 2)
      g.problem.values[arg].cutAxes = {kX};
    unsigned result = g.endLoop(init, arg, next, 3);
    g.output(result);
    PartialResult placed = placePartials(g.problem);
    EXPECT_EQ(g.reduced(placed), Values{way == 0 ? result : next});
    EXPECT_EQ(placed.bytes, way == 0 ? 64 : 3 * 64);
  }
}

// Summands go in and come out; a loop that only scales them has no part in it.
TEST(PartialPlacement, LoopsStartWithSummands) {
  for (Law law : {Law::Linear, Law::Never}) {
    Graph g;
    unsigned init = g.value(64, {kX}), arg = g.beginLoop(64);
    unsigned next = g.op(law, {arg}, 64);
    unsigned result = g.endLoop(init, arg, next, 3);
    unsigned slice = g.op(Law::Linear, {result}, 8);
    g.output(slice);
    EXPECT_EQ(g.reduced(placePartials(g.problem)),
              Values{law == Law::Linear ? slice : init});
  }
}

// Of two loops one yields no summands; so the other carries none either, since
// each starts with the other's.
TEST(PartialPlacement, LoopsThatDependOnEachOther) {
  Graph g;
  unsigned init = g.value(64), a = g.beginLoop(64), b = g.beginLoop(64);
  unsigned p = g.op(Law::Never, {init}, 64);
  g.problem.values[p].created = {kX};
  unsigned sum = g.op(Law::AllOrNone, {a, p}, 64);
  unsigned whole = g.op(Law::Never, {b}, 64);
  unsigned first = g.endLoop(init, a, whole, 3);
  g.op(Law::Never, {init, b, sum}, 64);
  g.problem.ops.back().loop = true;
  g.output(first);
  EXPECT_EQ(g.reduced(placePartials(g.problem)), Values{p});
}

TEST(PartialPlacement, DeclaredLoopResultStaysPartial) {
  Graph g;
  unsigned init = g.value(64), arg = g.beginLoop(64);
  unsigned p = g.op(Law::Never, {init}, 64);
  g.problem.values[p].created = {kX};
  unsigned result = g.endLoop(init, arg, g.op(Law::AllOrNone, {arg, p}, 64), 1);
  g.problem.values[result].declared = {kX};
  PartialResult placed = placePartials(g.problem);
  EXPECT_TRUE(placed.errors.empty());
  EXPECT_EQ(placed.bytes, 0);
  EXPECT_EQ(placed.kept[result], AxisList{kX});
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

//===- AxisListsTest.cpp - Prefixes of lists of axes ----------------------===//
#include "passes/propagate/AxisLists.h"
#include <gtest/gtest.h>

using namespace cleave;

static const AxisRef kA{0, 1, 4}, kB{1, 1, 6}, kC{2, 1, 2};
static const AxisRef kA1{0, 1, 2}, kA2{0, 2, 2};
using List = AxisList;

TEST(AxisLists, ComparePrefix) {
  PrefixComparison cut = comparePrefix({kA, kB}, {kA, kC});
  EXPECT_EQ(cut.common, List{kA});
  EXPECT_EQ(cut.restA, List{kB});
  EXPECT_EQ(cut.restB, List{kC});

  cut = comparePrefix({kA1}, {kA, kB});
  EXPECT_EQ(cut.common, List{kA1});
  EXPECT_TRUE(cut.restA.empty());
  EXPECT_EQ(cut.restB, (List{kA2, kB}));

  // The same digits written apart.
  cut = comparePrefix({kA1, kA2, kC}, {kA, kC});
  EXPECT_EQ(cut.common, (List{kA, kC}));
  EXPECT_TRUE(cut.restA.empty() && cut.restB.empty());

  // 2 and 3 of 6 share nothing; 4 and 6 of 12 share 2.
  cut = comparePrefix({{1, 1, 2}}, {{1, 1, 3}});
  EXPECT_TRUE(cut.common.empty());
  cut = comparePrefix({{0, 1, 4}}, {{0, 1, 6}});
  EXPECT_EQ(cut.common, (List{{0, 1, 2}}));
  EXPECT_EQ(cut.restA, (List{{0, 2, 2}}));
  EXPECT_EQ(cut.restB, (List{{0, 2, 3}}));
}

TEST(AxisLists, FreePrefix) {
  EXPECT_EQ(freePrefix({kA, kB}, {kC}), (List{kA, kB}));
  EXPECT_EQ(freePrefix({kA, kB}, {kB}), List{kA});
  EXPECT_EQ(freePrefix({kA, kB}, {kA2}), List{kA1});
  EXPECT_EQ(freePrefix({kA, kB}, {kA1}), List{});
  // A digit that cannot be aligned with what is used.
  EXPECT_EQ(freePrefix({{1, 1, 3}}, {{1, 2, 3}}), List{});
}

TEST(AxisLists, DividingPrefix) {
  EXPECT_EQ(dividingPrefix({kA, kC}, 8), (List{kA, kC}));
  EXPECT_EQ(dividingPrefix({kA, kC}, 6), List{kA1});
  EXPECT_EQ(dividingPrefix({kB}, 4), (List{{1, 1, 2}}));
  EXPECT_EQ(dividingPrefix({kA}, 7), List{});
}

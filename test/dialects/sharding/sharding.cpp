//===- sharding.cpp - Meshes, axes and layouts ----------------------------===//
#include "dialects/sharding/Sharding.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>

using namespace cleave;

namespace {

Mesh makeMesh() {
  Mesh mesh;
  mesh.name = "mesh";
  mesh.axes = {{"a", 12}, {"b", 2}};
  return mesh;
}

TEST(Mesh, CoordinatesAndRanksAreInverse) {
  Mesh mesh = makeMesh();
  EXPECT_EQ(mesh.numRanks(), 24);
  for (int64_t rank = 0; rank < 24; ++rank)
    EXPECT_EQ(mesh.rankAt(mesh.coordinates(rank)), rank);
  EXPECT_EQ(mesh.coordinates(7)[0], 3);
  EXPECT_EQ(mesh.coordinates(7)[1], 1);
  mesh.axes = {{"a", 2}, {"b", 2}};
  mesh.ranks = {2, 0, 3, 1};
  for (int64_t rank = 0; rank < 4; ++rank)
    EXPECT_EQ(mesh.rankAt(mesh.coordinates(rank)), rank);
  EXPECT_EQ(mesh.coordinates(3)[0], 1);
  EXPECT_EQ(mesh.coordinates(3)[1], 0);
}

TEST(Mesh, DigitsOfSubAxes) {
  Mesh mesh = makeMesh();
  // a:(2)3 of 12: (c / 2) % 3.
  for (int64_t c = 0; c < 12; ++c) {
    EXPECT_EQ(mesh.digit({0, 2, 3}, {c, 0}), c / 2 % 3);
    EXPECT_EQ(mesh.digit({0, 1, 12}, {c, 0}), c);
    AxisRef parts[] = {{0, 1, 2}, {0, 2, 3}, {0, 6, 2}};
    EXPECT_EQ(mesh.linearIndex(parts, {c, 0}), c);
  }
  AxisRef order[] = {{1, 1, 2}, {0, 1, 12}};
  EXPECT_EQ(mesh.linearIndex(order, {5, 1}), 17);
}

TEST(Mesh, FindsAxesByName) {
  Mesh mesh = makeMesh();
  EXPECT_EQ(mesh.findAxis("b"), 1u);
  EXPECT_FALSE(mesh.findAxis("c").has_value());
}

TEST(Axes, Overlap) {
  EXPECT_TRUE(overlaps(AxisRef{0, 1, 4}, AxisRef{0, 2, 2}));
  EXPECT_FALSE(overlaps(AxisRef{0, 1, 2}, AxisRef{0, 2, 2}));
  EXPECT_FALSE(overlaps(AxisRef{0, 1, 4}, AxisRef{1, 1, 4}));
  EXPECT_FALSE(overlaps(AxisRef{0, 1, 1}, AxisRef{0, 1, 4}));
}

TEST(Axes, MergeAndNormalize) {
  AxisList parts = {{0, 1, 2}, {0, 2, 3}, {1, 1, 2}};
  AxisList merged = {{0, 1, 6}, {1, 1, 2}};
  EXPECT_EQ(mergeAxes(parts), merged);
  AxisList reversed = {{0, 2, 3}, {0, 1, 2}};
  EXPECT_EQ(mergeAxes(reversed), reversed);
  EXPECT_EQ(normalizeAxisSet(reversed), (AxisList{{0, 1, 6}}));
}

TEST(Axes, AlignSplitsAtEachOthersCuts) {
  AxisList a = {{0, 1, 4}}, b = {{0, 2, 2}};
  alignAxes(a, b);
  EXPECT_EQ(a, (AxisList{{0, 1, 2}, {0, 2, 2}}));
  EXPECT_EQ(b, (AxisList{{0, 2, 2}}));
  // 2 and 3 of 6 can't be aligned and stay.
  AxisList two = {{0, 1, 2}}, three = {{0, 1, 3}};
  alignAxes(two, three);
  EXPECT_EQ(two, (AxisList{{0, 1, 2}}));
  EXPECT_EQ(three, (AxisList{{0, 1, 3}}));
}

TEST(Axes, WithoutLeavesTheRest) {
  AxisRef half = {0, 2, 2}, other = {1, 1, 3};
  EXPECT_EQ(withoutAxes({{0, 1, 4}, other}, {half}),
            (AxisList{{0, 1, 2}, other}));
  EXPECT_EQ(withoutAxes({half, other}, {{0, 1, 4}}), AxisList{other});
  EXPECT_EQ(withoutAxes({{0, 1, 2}}, {{0, 1, 3}}), (AxisList{{0, 1, 2}}));
}

TEST(Sharding, UnevenBlocks) {
  Sharding sharding = Sharding::whole(2, false);
  sharding.dims[0].axes = {{0, 1, 12}};
  sharding.dims[1].axes = {{1, 1, 2}};
  auto local = localShape({10, 7}, sharding);
  EXPECT_EQ(local[0], 1);
  EXPECT_EQ(local[1], 4);
  EXPECT_EQ(localShape({0, 1}, sharding)[0], 0);
  EXPECT_EQ(localShape({0, 1}, sharding)[1], 1);
}

TEST(Sharding, SameLayoutIgnoresWhatMovesNoData) {
  Sharding a = Sharding::whole(1, false), b = Sharding::whole(1, true);
  a.replicated = {{1, 1, 2}};
  b.dims[0].priority = 2;
  EXPECT_TRUE(a.sameLayout(b));
  a.dims[0].axes = {{0, 1, 2}, {0, 2, 6}};
  EXPECT_FALSE(a.sameLayout(b));
  b.dims[0].axes = {{0, 1, 12}};
  EXPECT_TRUE(a.sameLayout(b));
  a.partial = b.partial = {{1, 1, 2}};
  EXPECT_TRUE(a.sameLayout(b));
  b.kind = ReductionKind::Max;
  EXPECT_FALSE(a.sameLayout(b));
  EXPECT_FALSE(a.sameLayout(Sharding::whole(2, false)));
}

TEST(Sharding, Uses) {
  Sharding sharding = Sharding::whole(1, false);
  sharding.dims[0].axes = {{0, 1, 2}};
  sharding.partial = {{1, 1, 2}};
  EXPECT_TRUE(sharding.uses({0, 1, 12}));
  EXPECT_FALSE(sharding.uses({0, 2, 6}));
  EXPECT_TRUE(sharding.uses({1, 1, 2}));
  EXPECT_FALSE(sharding.isFullyReplicated());
  EXPECT_TRUE(Sharding::whole(3, true).isFullyReplicated());
}

TEST(Sharding, Prints) {
  Mesh mesh = makeMesh();
  Sharding sharding = Sharding::whole(3, false);
  sharding.dims[0].axes = {{0, 1, 2}, {1, 1, 2}};
  sharding.dims[0].open = true;
  sharding.dims[1].open = true;
  sharding.dims[2].priority = 1;
  sharding.replicated = {{0, 2, 3}};
  sharding.partial = {{0, 6, 2}};
  sharding.kind = ReductionKind::Max;
  EXPECT_EQ(toString(mesh, sharding),
            "[{\"a\":(1)2, \"b\", ?}, {?}, {}p1], replicated={\"a\":(2)3}, "
            "partial=max{\"a\":(6)2}");
}

TEST(Reduction, NamesAreInverse) {
  for (int i = 0; i <= int(ReductionKind::Xor); ++i) {
    auto kind = static_cast<ReductionKind>(i);
    EXPECT_EQ(parseReduction(reductionName(kind)), kind);
  }
  EXPECT_FALSE(parseReduction("mean").has_value());
}

} // namespace

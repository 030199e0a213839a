//===- reshard.cpp - Every reshard, run and compared ----------------------===//
#include "passes/partition/Reshard.h"
#include "test/passes/partition/ReshardSimulation.h"
#include <chrono>
#include <gtest/gtest.h>
#include <random>

using namespace cleave;
using namespace cleave::test;

namespace {

Mesh makeMesh(llvm::ArrayRef<int64_t> sizes) {
  Mesh mesh;
  mesh.name = "mesh";
  for (auto [i, size] : llvm::enumerate(sizes))
    mesh.axes.push_back({std::string(1, char('a' + i)), size});
  return mesh;
}

AxisList wholeAxes(const Mesh &mesh) {
  AxisList axes;
  for (unsigned i = 0; i < mesh.axes.size(); ++i)
    axes.push_back(mesh.whole(i));
  return axes;
}

/// Runs all pairs of `shardings`.
void runPairs(const Mesh &mesh, llvm::ArrayRef<int64_t> shape,
              llvm::ArrayRef<Sharding> froms, llvm::ArrayRef<Sharding> tos) {
  Resharder resharder(mesh, cpuLocalMachine());
  for (const Sharding &from : froms)
    for (const Sharding &to : tos)
      ASSERT_EQ("", runReshard(resharder, shape, from, to));
}

void runAll(const Mesh &mesh, llvm::ArrayRef<int64_t> shape,
            llvm::ArrayRef<AxisRef> digits,
            std::optional<ReductionKind> kind = std::nullopt) {
  std::vector<Sharding> all = allShardings(shape.size(), digits, kind);
  runPairs(mesh, shape, all, all);
}

constexpr int64_t kSizes[] = {0, 1, 2, 3, 5, 7, 10, 12};

std::vector<std::vector<int64_t>> kTwoAxes = {{2, 2}, {2, 3}, {3, 2}};

TEST(Reshard, VectorsOnSmallMeshes) {
  for (const std::vector<int64_t> &sizes :
       std::vector<std::vector<int64_t>>{{2, 2}, {2, 3}, {3, 2}, {4}, {6}})
    for (int64_t size : kSizes)
      runAll(makeMesh(sizes), {size}, wholeAxes(makeMesh(sizes)),
             ReductionKind::Sum);
}

TEST(Reshard, VectorsOnThreeAxes) {
  Mesh mesh = makeMesh({2, 2, 2});
  for (int64_t size : {3, 10, 12})
    runAll(mesh, {size}, wholeAxes(mesh), ReductionKind::Max);
}

TEST(Reshard, MatricesOnTwoAxes) {
  for (const std::vector<int64_t> &sizes : kTwoAxes)
    for (int64_t rows : kSizes)
      for (int64_t columns : {1, 3, 4, 7})
        runAll(makeMesh(sizes), {rows, columns}, wholeAxes(makeMesh(sizes)));
}

TEST(Reshard, PartialMatricesOfEveryKind) {
  for (const std::vector<int64_t> &sizes : kTwoAxes)
    for (ReductionKind kind :
         {ReductionKind::Sum, ReductionKind::Prod, ReductionKind::Max,
          ReductionKind::Min, ReductionKind::And, ReductionKind::Or})
      runAll(makeMesh(sizes), {5, 4}, wholeAxes(makeMesh(sizes)), kind);
}

TEST(Reshard, FromOnePartialKindToAnother) {
  Mesh mesh = makeMesh({2, 3});
  runPairs(mesh, {5, 6}, allShardings(2, wholeAxes(mesh), ReductionKind::Sum),
           allShardings(2, wholeAxes(mesh), ReductionKind::Max));
}

TEST(Reshard, SubAxes) {
  Mesh mesh = makeMesh({4, 2});
  AxisList digits = {{0, 1, 2}, {0, 2, 2}, mesh.whole(1)};
  for (int64_t size : {1, 5, 8})
    runAll(mesh, {size}, digits);
  std::vector<Sharding> whole = allShardings(2, wholeAxes(mesh), std::nullopt);
  std::vector<Sharding> parts = allShardings(2, digits, std::nullopt);
  runPairs(mesh, {8, 6}, whole, parts);
  runPairs(mesh, {5, 3}, parts, whole);
}

// a:(1)2 and a:(1)3 of a=6 share no digit that both could be made of.
TEST(Reshard, SubAxesThatDoNotAlign) {
  for (const std::vector<int64_t> &sizes :
       std::vector<std::vector<int64_t>>{{6}, {12}, {6, 2}}) {
    Mesh mesh = makeMesh(sizes);
    AxisList twos = {{0, 1, 2}, {0, 2, 3}}, threes = {{0, 1, 3}, {0, 3, 2}};
    for (unsigned i = 1; i < sizes.size(); ++i) {
      twos.push_back(mesh.whole(i));
      threes.push_back(mesh.whole(i));
    }
    for (int64_t size : {1, 5, 6, 12}) {
      runPairs(mesh, {size}, allShardings(1, twos, ReductionKind::Sum),
               allShardings(1, threes, ReductionKind::Sum));
    }
    if (sizes.size() == 1)
      for (const std::vector<int64_t> &shape :
           std::vector<std::vector<int64_t>>{{6, 12}, {5, 7}})
        runPairs(mesh, shape, allShardings(2, twos, std::nullopt),
                 allShardings(2, threes, std::nullopt));
  }
}

TEST(Reshard, ThreeDims) {
  Mesh mesh = makeMesh({2, 2});
  runAll(mesh, {3, 4, 2}, wholeAxes(mesh));
}

TEST(Reshard, RanksInAnotherOrder) {
  Mesh mesh = makeMesh({2, 3});
  mesh.ranks = {5, 0, 3, 1, 4, 2};
  runAll(mesh, {7, 6}, wholeAxes(mesh), ReductionKind::Sum);
}

TEST(Reshard, ScalarsAreReducedOrMadePartial) {
  Mesh mesh = makeMesh({2, 2});
  runAll(mesh, {}, wholeAxes(mesh), ReductionKind::Sum);
}

TEST(Reshard, AxesOfSizeOneChangeNothing) {
  Mesh mesh = makeMesh({2, 1});
  Resharder resharder(mesh, cpuLocalMachine());
  Sharding one = Sharding::whole(1, false), two = one;
  one.dims[0].axes = {mesh.whole(0), mesh.whole(1)};
  two.dims[0].axes = {mesh.whole(0)};
  two.partial = {mesh.whole(1)};
  EXPECT_TRUE(resharder.plan({6}, 4, one, two).steps.empty());
}

/// A random sharding over digits of the mesh; axes may be cut in two.
Sharding randomSharding(std::mt19937 &random, const Mesh &mesh, unsigned rank) {
  auto draw = [&](int64_t n) { return int64_t(random() % n); };
  Sharding sharding = Sharding::whole(rank, false);
  AxisList digits;
  for (unsigned axis = 0; axis < mesh.axes.size(); ++axis) {
    int64_t size = mesh.axes[axis].size, cut = 1 + draw(size);
    if (size % cut == 0 && draw(2)) {
      digits.push_back({axis, 1, cut});
      digits.push_back({axis, cut, size / cut});
    } else {
      digits.push_back(mesh.whole(axis));
    }
  }
  std::shuffle(digits.begin(), digits.end(), random);
  constexpr ReductionKind kKinds[] = {ReductionKind::Sum, ReductionKind::Max};
  sharding.kind = kKinds[draw(2)];
  for (AxisRef digit : digits) {
    int64_t place = draw(rank + 2);
    if (digit.size == 1)
      continue;
    if (place < rank)
      sharding.dims[place].axes.push_back(digit);
    else if (place == rank && draw(3) == 0)
      sharding.partial.push_back(digit);
  }
  for (DimSharding &dim : sharding.dims)
    dim.axes = mergeAxes(dim.axes);
  sharding.partial = normalizeAxisSet(sharding.partial);
  return sharding;
}

TEST(Reshard, RandomTriples) {
  const char *given = std::getenv("CLEAVE_SEED");
  unsigned seed = given ? std::atoi(given) : std::random_device()();
  std::cout << "CLEAVE_SEED=" << seed << '\n';
  std::mt19937 random(seed);
  constexpr int64_t kAxisSizes[] = {1, 2, 3, 4, 6};
  constexpr int64_t kDims[] = {1, 2, 3, 4, 5, 7, 8, 10, 12, 13};
  for (int trial = 0; trial < 1500; ++trial) {
    std::vector<int64_t> sizes;
    int64_t ranks = 1;
    while (sizes.size() < 1 + random() % 3) {
      int64_t size = kAxisSizes[random() % 5];
      if (ranks * size > 24)
        break;
      ranks *= size;
      sizes.push_back(size);
    }
    Mesh mesh = makeMesh(sizes);
    Resharder resharder(mesh, cpuLocalMachine());
    llvm::SmallVector<int64_t, 4> shape;
    for (unsigned i = 0, rank = 1 + random() % 3; i < rank; ++i)
      shape.push_back(kDims[random() % 10]);
    Sharding from = randomSharding(random, mesh, shape.size());
    Sharding to = randomSharding(random, mesh, shape.size());
    ASSERT_EQ("", runReshard(resharder, shape, from, to));
  }
}

} // namespace

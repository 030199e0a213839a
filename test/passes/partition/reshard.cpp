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

TEST(Reshard, VectorsOnSmallMeshes) {
  for (const std::vector<int64_t> &sizes : std::vector<std::vector<int64_t>>{
           {2, 2}, {2, 3}, {3, 2}, {4}, {6}, {2, 2, 2}})
    for (int64_t size : kSizes)
      runAll(makeMesh(sizes), {size}, wholeAxes(makeMesh(sizes)),
             ReductionKind::Sum);
}

TEST(Reshard, MatricesOnTwoAxes) {
  for (const std::vector<int64_t> &sizes :
       std::vector<std::vector<int64_t>>{{2, 2}, {2, 3}, {3, 2}})
    for (int64_t rows : kSizes)
      for (int64_t columns : {1, 3, 4, 7})
        runAll(makeMesh(sizes), {rows, columns}, wholeAxes(makeMesh(sizes)));
}

} // namespace

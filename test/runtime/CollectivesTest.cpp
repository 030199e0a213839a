//===- CollectivesTest.cpp - The conformance suite, local backends --------===//
#include "test/runtime/Conformance.h"

#include <gtest/gtest.h>

using namespace cleave::rt;
using namespace cleave::rt::test;

namespace {

struct MeshCase {
  std::vector<int64_t> sizes;
  std::vector<int64_t> ranks;
};

const MeshCase kMeshes[] = {
    {{2}, {}},    {{3}, {}},       {{4}, {2, 0, 3, 1}},
    {{2, 2}, {}}, {{1, 3}, {}},    {{2, 3}, {5, 3, 1, 0, 2, 4}},
    {{8}, {}},    {{2, 2, 2}, {}}, {{4, 2}, {7, 6, 5, 4, 3, 2, 1, 0}},
    {{1}, {}},
};

using Runner = Status (*)(const CleaveProgram &, const RankBody &, double);

void conform(Runner run, uint64_t seed, int numCases) {
  for (const MeshCase &mesh : kMeshes) {
    TestProgram program(mesh.sizes, kConformanceArena, mesh.ranks);
    auto cases = drawCases(program.program, seed++, numCases);
    Status status = run(
        program.program,
        [&](int64_t rank, Backend &backend, char *arena) {
          return runConformance(program.program, rank, backend, arena, cases);
        },
        30);
    ASSERT_TRUE(status.ok()) << status.message();
  }
}

TEST(Collectives, ThreadsConform) { conform(runThreads, 1, 200); }
TEST(Collectives, ProcessesConform) { conform(runProcesses, 1000, 100); }

} // namespace

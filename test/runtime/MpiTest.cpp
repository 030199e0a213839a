//===- MpiTest.cpp - The conformance suite under mpirun -------------------===//
// Started as `mpirun -n 4 runtime_mpi_test [fault]`: each process is a rank.
#include "runtime/launch/Mpi.h"
#include "test/runtime/Conformance.h"

#include <cstdio>
#include <cstring>
#include <unistd.h>

using namespace cleave::rt;
using namespace cleave::rt::test;

static Status conform(PluginBackend &backend, const CleaveProgram &program,
                      uint64_t seed) {
  std::vector<char> arena(static_cast<size_t>(kConformanceArena));
  auto cases = drawCases(program, seed, 150);
  return runConformance(program, backend.rank(), backend, arena.data(), cases);
}

/// Large enough for slices, and send and receive in a ring.
static Status runPairs(PluginBackend &backend, const CleaveProgram &program) {
  Mesh mesh(program);
  int64_t rank = backend.rank(), n = program.numRanks;
  TestComm send = makeComm(CLEAVE_SEND, 0, n, 1000, "send");
  TestComm recv = makeComm(CLEAVE_RECV, 0, n, 1000, "recv");
  send.comm.peer = 1;
  recv.comm.peer = -1;
  std::vector<float> data(1000, float(rank)), got(1000);
  CommPlan plan;
  if (rank + 1 < n) {
    CLEAVE_RETURN_IF_ERROR(planComm(mesh, rank, send.comm, &plan));
    CLEAVE_RETURN_IF_ERROR(backend.run(
        plan, reinterpret_cast<const char *>(data.data()), nullptr));
  }
  CommPlan other;
  if (rank == 0)
    return Status();
  CLEAVE_RETURN_IF_ERROR(planComm(mesh, rank, recv.comm, &other));
  CLEAVE_RETURN_IF_ERROR(
      backend.run(other, nullptr, reinterpret_cast<char *>(got.data())));
  for (float value : got)
    if (value != float(rank - 1))
      return internalError("rank ", rank, " has received something else");
  return Status();
}

/// Rank 1 differs, or does not come.
static Status fault(PluginBackend &backend, const CleaveProgram &program,
                    const char *kind) {
  Mesh mesh(program);
  int64_t n = program.numRanks;
  TestComm sum = makeComm(CLEAVE_ALL_REDUCE, 0, n, 4, "all_reduce over 'a'",
                          "'%x' (m.mlir:1:2)");
  TestComm gather =
      makeComm(CLEAVE_ALL_GATHER, 0, n, 4, "all_gather over 'a'", "'%y'");
  std::vector<char> in(64), out(256);
  CommPlan plan;
  bool differs = backend.rank() == 1;
  if (differs && std::strcmp(kind, "late") == 0)
    sleep(5);
  if (!differs && std::strcmp(kind, "late") != 0)
    usleep(100'000 * useconds_t(backend.rank()));
  CLEAVE_RETURN_IF_ERROR(
      planComm(mesh, backend.rank(), differs ? gather.comm : sum.comm, &plan));
  return backend.run(plan, in.data(), out.data());
}

int main(int argc, char **argv) {
  TestProgram program({4}, 1 << 20), square({2, 2}, 1 << 20, {2, 0, 3, 1});
  const CleaveCommPlugin *plugin;
  Status status = loadMpiPlugin(&plugin);
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return 1;
  }
  PluginBackend backend(*plugin);
  status = backend.join(program.program, argc > 1 ? 0.5 : 30);
  if (status.ok() && argc > 1) {
    status = fault(backend, program.program, argv[1]);
  } else if (status.ok()) {
    status = runPairs(backend, program.program);
    if (status.ok())
      status = conform(backend, program.program, 42);
  }
  if (status.ok() && argc == 1) {
    // The same processes as another mesh.
    PluginBackend second(*plugin);
    status = second.join(square.program, 30);
    if (status.ok())
      status = conform(second, square.program, 43);
    if (!status.ok())
      second.fail(status);
    if (status.ok() && backend.rank() == 0)
      std::printf("all cases agree\n");
  }
  if (!status.ok())
    backend.fail(status);
  return 0;
}

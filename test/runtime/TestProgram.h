//===- TestProgram.h - Programs made up by tests ----------------*- C++ -*-===//
#ifndef CLEAVE_TEST_RUNTIME_TESTPROGRAM_H
#define CLEAVE_TEST_RUNTIME_TESTPROGRAM_H

#include "runtime/comm/LocalBackend.h"
#include "runtime/comm/Mesh.h"
#include "runtime/launch/Supervisor.h"
#include <functional>
#include <memory>
#include <numeric>
#include <thread>

namespace cleave::rt::test {

/// A program with a mesh and memory, but no entries.
struct TestProgram {
  std::vector<std::string> names;
  std::vector<const char *> namePointers;
  std::vector<int64_t> sizes, ranks;
  CleaveProgram program = {};

  explicit TestProgram(std::vector<int64_t> axisSizes,
                       int64_t arenaBytes = 1 << 20,
                       std::vector<int64_t> rankOrder = {})
      : sizes(std::move(axisSizes)), ranks(std::move(rankOrder)) {
    int64_t n = 1;
    for (int64_t size : sizes)
      n *= size;
    if (ranks.empty()) {
      ranks.resize(size_t(n));
      std::iota(ranks.begin(), ranks.end(), int64_t(0));
    }
    for (size_t a = 0; a < sizes.size(); ++a)
      names.push_back(std::string(1, char('a' + a)));
    for (const std::string &name : names)
      namePointers.push_back(name.c_str());
    program.magic = CLEAVE_ABI_MAGIC;
    program.version = CLEAVE_ABI_VERSION;
    program.numAxes = int64_t(sizes.size());
    program.axisNames = namePointers.data();
    program.axisSizes = sizes.data();
    program.numRanks = n;
    program.ranks = ranks.data();
    program.initArenaBytes = arenaBytes;
    program.manifest = "{}";
  }
  TestProgram(const TestProgram &) = delete;
};

/// A rank's backend and its arena.
using RankBody = std::function<Status(int64_t rank, Backend &, char *arena)>;

/// Runs a body on every rank, ranks as threads. The first failure as
/// SharedArea records it.
inline Status runThreads(const CleaveProgram &program, const RankBody &body,
                         double timeoutSeconds = 30) {
  std::unique_ptr<SharedArea> area;
  CLEAVE_RETURN_IF_ERROR(
      SharedArea::create(program, SharedArea::Kind::threads, &area));
  std::vector<std::thread> threads;
  for (int64_t r = 0; r < program.numRanks; ++r)
    threads.emplace_back([&, r] {
      LocalBackend backend(*area, r, timeoutSeconds);
      Status status = body(r, backend, area->arena(r));
      if (status.ok())
        backend.finish();
      else
        backend.fail(status);
    });
  for (std::thread &thread : threads)
    thread.join();
  return area->failure();
}

/// The same with ranks as processes.
inline Status runProcesses(const CleaveProgram &program, const RankBody &body,
                           double timeoutSeconds = 30) {
  std::unique_ptr<SharedArea> area;
  CLEAVE_RETURN_IF_ERROR(
      SharedArea::create(program, SharedArea::Kind::processes, &area));
  Supervisor supervisor(*area, timeoutSeconds);
  CLEAVE_RETURN_IF_ERROR(supervisor.start([&](int64_t r) {
    LocalBackend backend(*area, r, timeoutSeconds);
    return body(r, backend, area->arena(r));
  }));
  return supervisor.join();
}

/// A communication with storage for its axes.
struct TestComm {
  std::vector<CleaveAxisRef> axes, source;
  CleaveComm comm = {};
  std::string name, cause;

  TestComm() = default;
  TestComm(const TestComm &other) { *this = other; }
  TestComm &operator=(const TestComm &other) {
    axes = other.axes;
    source = other.source;
    comm = other.comm;
    name = other.name;
    cause = other.cause;
    return fix();
  }
  /// Points the struct at the storage.
  TestComm &fix() {
    comm.axes = {int64_t(axes.size()), axes.data()};
    comm.source = {int64_t(source.size()), source.data()};
    comm.name = name.c_str();
    comm.cause = cause.c_str();
    return *this;
  }
};

/// A communication over one whole axis.
inline TestComm makeComm(CleaveCommKind kind, int64_t axis, int64_t axisSize,
                         int64_t dim0, std::string name,
                         std::string cause = "") {
  TestComm c;
  c.axes = {{axis, 1, axisSize}};
  c.comm.kind = kind;
  c.comm.outer = c.comm.middle = c.comm.dim1 = c.comm.inner = 1;
  c.comm.dim0 = dim0;
  c.name = std::move(name);
  c.cause = std::move(cause);
  return c.fix();
}

} // namespace cleave::rt::test

#endif // CLEAVE_TEST_RUNTIME_TESTPROGRAM_H

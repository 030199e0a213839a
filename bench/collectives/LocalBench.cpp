//===- LocalBench.cpp - Times the local backend ---------------------------===//
// bench_collectives_local RANKS [--min= --max= --batch=]
#include "bench/collectives/Cases.h"
#include "runtime/comm/LocalBackend.h"
#include "runtime/launch/Supervisor.h"

#include <numeric>

using namespace cleave;
using namespace cleave::rt;

namespace {

constexpr int64_t kHalf = 66 << 20;

CleaveComm makeComm(uint32_t kind, uint32_t dtype, const CleaveAxes &axes,
                    int64_t count) {
  CleaveComm comm = {};
  comm.kind = kind;
  comm.dtype = dtype;
  comm.axes = axes;
  comm.outer = comm.middle = comm.dim1 = comm.inner = 1;
  comm.dim0 = count;
  comm.name = "bench";
  return comm;
}

struct Case {
  const char *kind, *dtype;
  int64_t bytes;
  CleaveComm comm, back; // back: the answer of send_recv
};

std::vector<Case> makeCases(const bench::Selection &selection, int64_t n,
                            const CleaveAxes &axes) {
  std::vector<Case> cases;
  for (int k = 0; k < 5; ++k)
    for (int d = 0; d < 2; ++d)
      for (int64_t bytes : selection.sizes) {
        static constexpr uint32_t kinds[] = {
            CLEAVE_ALL_REDUCE, CLEAVE_REDUCE_SCATTER, CLEAVE_ALL_GATHER,
            CLEAVE_ALL_TO_ALL, CLEAVE_SEND};
        int64_t count = bytes / (d == 0 ? 4 : 2);
        if (kinds[k] == CLEAVE_ALL_GATHER)
          count /= n; // `bytes` is the gathered value
        uint32_t dtype = d == 0 ? CLEAVE_F32 : CLEAVE_BF16;
        CleaveComm comm = makeComm(kinds[k], dtype, axes, count);
        if (kinds[k] == CLEAVE_ALL_TO_ALL) { // n blocks, as MPI has them
          comm.dim0 = n;
          comm.dim1 = count / n;
        }
        Case c{bench::kKinds[k], bench::kDtypes[d], bytes, comm,
               makeComm(CLEAVE_RECV, dtype, axes, count)};
        c.comm.peer = 1;
        c.back.peer = -1;
        cases.push_back(c);
      }
  return cases;
}

/// The plans of one iteration on this rank.
Status plansOf(const Case &c, const Mesh &mesh, int64_t rank,
               std::vector<CommPlan> *plans) {
  if (c.comm.kind != CLEAVE_SEND) {
    plans->resize(1);
    return planComm(mesh, rank, c.comm, &plans->front());
  }
  if (rank > 1)
    return Status();
  // Rank 0 sends to rank 1, which sends back; the axis has only one direction
  // to a neighbour, so the way back is a send over distance -1.
  plans->resize(2);
  static CleaveComm forth, answer, back, take;
  forth = c.comm;
  take = c.back;
  answer = c.comm;
  answer.peer = -1;
  back = c.back;
  back.peer = 1;
  CLEAVE_RETURN_IF_ERROR(
      planComm(mesh, rank, rank == 0 ? forth : take, &plans->front()));
  return planComm(mesh, rank, rank == 0 ? back : answer, &plans->back());
}

Status runRank(const bench::Selection &selection, SharedArea &area,
               const std::vector<Case> &cases, int64_t rank) {
  Mesh mesh(area.program());
  LocalBackend backend(area, rank, 60);
  char *in = area.arena(rank), *out = in + kHalf;
  std::fill(in, out + kHalf, char(rank + 1));
  auto *shared = reinterpret_cast<std::atomic<int64_t> *>(area.resident(0));
  Status status;
  for (const Case &c : cases) {
    std::vector<CommPlan> plans;
    CLEAVE_RETURN_IF_ERROR(plansOf(c, mesh, rank, &plans));
    auto once = [&] {
      for (const CommPlan &plan : plans)
        if (status.ok())
          status = backend.run(plan, in, out);
    };
    auto barrier = [&] {
      if (status.ok())
        status = backend.barrier(kOutputsCreated);
    };
    auto agree = [&](int64_t count) {
      if (rank == 0)
        shared->store(count);
      barrier();
      return shared->load();
    };
    double seconds =
        bench::measure(selection.batchSeconds, once, agree, barrier);
    CLEAVE_RETURN_IF_ERROR(status);
    if (rank == 0)
      bench::report(c.kind, c.dtype, area.program().numRanks, c.bytes,
                    plans.size() == 2 ? seconds / 2 : seconds);
  }
  return status;
}

} // namespace

int main(int argc, char **argv) {
  bench::Selection selection(argc, argv);
  int64_t n = argc > 1 ? std::atoll(argv[1]) : 2;
  std::vector<int64_t> ranks(static_cast<size_t>(n));
  std::iota(ranks.begin(), ranks.end(), int64_t(0));
  const char *axisName = "x";
  CleaveProgram program = {};
  program.numAxes = 1;
  program.axisNames = &axisName;
  program.axisSizes = &n;
  program.numRanks = n;
  program.ranks = ranks.data();
  program.initArenaBytes = 2 * kHalf;
  program.residentBytes = 4096;
  CleaveAxisRef ref = {0, 1, n};
  std::vector<Case> cases = makeCases(selection, n, {1, &ref});
  std::unique_ptr<SharedArea> area;
  Status status =
      SharedArea::create(program, SharedArea::Kind::processes, &area);
  if (status.ok()) {
    Supervisor supervisor(*area, 60);
    status = supervisor.start(
        [&](int64_t rank) { return runRank(selection, *area, cases, rank); });
    if (status.ok())
      status = supervisor.join();
  }
  if (!status.ok())
    std::fprintf(stderr, "error: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}

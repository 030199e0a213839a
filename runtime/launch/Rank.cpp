//===- Rank.cpp - What one rank has and runs ------------------------------===//
#include "runtime/launch/Rank.h"
#include "runtime/support/Clock.h"

#include <algorithm>
#include <cerrno>
#include <sys/mman.h>

namespace cleave::rt {

Rank::Rank(const CleaveProgram &program, const Mesh &mesh, int64_t rank,
           Backend &backend, char *arena, char *resident)
    : program(program), mesh(mesh), index(rank), backend(backend), arena(arena),
      resident(resident) {
  for (int64_t i = 0; i < program.numWeights; ++i)
    weightPlaces.push_back(resident + program.weights[i].offset);
  weights = weightPlaces.data();
}

Status Rank::planOf(const CleaveComm &comm, const CommPlan **plan) {
  // CleaveComm structs are 176 bytes long and 8-byte aligned.
  const CommPlan *&place =
      recent[(reinterpret_cast<uintptr_t>(&comm) >> 4) % kRecent];
  if (place && place->comm == &comm) {
    *plan = place;
    return Status();
  }
  std::unique_ptr<CommPlan> &known = plans[&comm];
  if (!known) {
    auto fresh = std::make_unique<CommPlan>();
    CLEAVE_RETURN_IF_ERROR(planComm(mesh, index, comm, fresh.get()));
    known = std::move(fresh);
  }
  *plan = place = known.get();
  return Status();
}

void Rank::startMeasuring() {
  measures = usage != nullptr;
  if (measures)
    *usage = {};
}

void Rank::count(const CommPlan &plan, double seconds) {
  usage->commSeconds += seconds;
  usage->sentBytes += sentBytes(plan);
  ++usage->numComms;
}

Status Rank::communicate(const CleaveComm &comm, const void *in, void *out) {
  const CommPlan *plan;
  Status status = planOf(comm, &plan);
  if (status.ok()) {
    if (trace)
      trace->begin(comm.name, comm.cause,
                   std::max(plan->inBytes, plan->outBytes));
    char *target = static_cast<char *>(out);
    double start = measures ? monotonicSeconds() : 0;
    status = backend.run(*plan, static_cast<const char *>(in), target);
    if (measures)
      count(*plan, monotonicSeconds() - start);
    if (target < resident || target >= resident + program.residentBytes)
      commEnd = std::max(commEnd, target - arena + plan->outBytes);
    if (trace)
      trace->end();
  }
  if (!status.ok())
    lastError = status;
  return status;
}

Status Rank::finishCall(int32_t code, const char *what) {
  if (code == 0)
    return Status();
  if (!lastError.ok())
    return lastError;
  return internalError("rank ", index, ": ", what, " ended with code ", code);
}

/// Memory that is there for a while, in huge pages where they are worth it.
namespace {
struct TemporaryMemory {
  explicit TemporaryMemory(int64_t size)
      : bytes(size_t(std::max(size, kPage))) {
    void *mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    data = mapped == MAP_FAILED ? nullptr : static_cast<char *>(mapped);
    constexpr size_t kHugePage = 2 << 20;
    if (data && bytes >= kHugePage)
      madvise(data, bytes, MADV_HUGEPAGE);
  }
  ~TemporaryMemory() {
    if (data)
      munmap(data, bytes);
  }
  TemporaryMemory(const TemporaryMemory &) = delete;

  static constexpr int64_t kPage = 4096;
  size_t bytes;
  char *data;
};
} // namespace

Status Rank::init() {
  if (!program.init)
    return Status();
  // Nothing is communicated here, so nobody else reads this; the arena, which
  // others do read, has no huge pages.
  TemporaryMemory frame(program.initArenaBytes);
  if (!frame.data)
    return errnoStatus(
        concat("cannot map ", program.initArenaBytes, " bytes to pack weights"),
        errno);
  if (trace)
    trace->begin("init", "", 0);
  int32_t code = program.init(this, frame.data, resident);
  if (trace)
    trace->end();
  return finishCall(code, "init");
}

Status Rank::call(const CleaveEntry &entry) {
  if (trace)
    trace->begin(entry.name, "", 0);
  double start = measures ? monotonicSeconds() : 0;
  int32_t code = entry.run(this, arena, resident);
  if (measures)
    usage->seconds += monotonicSeconds() - start;
  if (trace)
    trace->end();
  return finishCall(code, entry.name);
}

} // namespace cleave::rt

//===----------------------------------------------------------------------===//
// The functions of abi.def
//===----------------------------------------------------------------------===//

using cleave::rt::Rank;

extern "C" int32_t cleave_rt_comm(CleaveContext *context,
                                  const CleaveComm *comm, const void *in,
                                  void *out) {
  return int32_t(
      static_cast<Rank *>(context)->communicate(*comm, in, out).code());
}

extern "C" int64_t cleave_rt_coordinate(CleaveContext *context,
                                        const CleaveAxes *axes) {
  Rank *rank = static_cast<Rank *>(context);
  return rank->mesh.index(rank->mesh.position(rank->index), *axes);
}

extern "C" void cleave_rt_trace_begin(CleaveContext *context,
                                      const char *name) {
  if (auto &trace = static_cast<Rank *>(context)->trace)
    trace->begin(name, "", 0);
}

extern "C" void cleave_rt_trace_end(CleaveContext *context) {
  if (auto &trace = static_cast<Rank *>(context)->trace)
    trace->end();
}

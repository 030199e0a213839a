//===- LocalBackend.cpp - Collectives through shared memory ---------------===//
#include "runtime/comm/LocalBackend.h"
#include "runtime/cpu/Copy.h"

#include <algorithm>
#include <cstring>

namespace cleave::rt {

#define CLEAVE_PLACE(symbol, text)                                             \
  const CleaveComm symbol = {CLEAVE_ALL_REDUCE,                                \
                             CLEAVE_F32,                                       \
                             CLEAVE_SUM,                                       \
                             0,                                                \
                             {},                                               \
                             {},                                               \
                             1,                                                \
                             0,                                                \
                             1,                                                \
                             1,                                                \
                             1,                                                \
                             0,                                                \
                             0,                                                \
                             0,                                                \
                             0,                                                \
                             0,                                                \
                             text,                                             \
                             ""}
CLEAVE_PLACE(kOutputsCreated, "the meeting before the outputs are written");
CLEAVE_PLACE(kOutputsWritten, "the meeting after the outputs are written");
CLEAVE_PLACE(kTraceWritten, "the meeting after the trace is written");

LocalBackend::LocalBackend(SharedArea &area, int64_t rank,
                           double timeoutSeconds,
                           std::function<bool(int64_t)> isAlive)
    : area(area), self(rank), numRanks(area.layout().numRanks),
      timeout(timeoutSeconds), isCrowded(area.control().isCrowded),
      isAlive(std::move(isAlive)), groupSeq(kMaxGroups), sendSeq(numRanks),
      recvSeq(numRanks) {
  area.rank(self).state.store(RankState::running);
}

LocalBackend::~LocalBackend() = default;

bool LocalBackend::fail(const Status &status) {
  bool first = area.fail(self, status);
  area.rank(self).state.store(RankState::failed);
  return first;
}

void LocalBackend::finish() {
  area.rank(self).state.store(RankState::finished);
}

Status LocalBackend::barrier(const CleaveComm &where) {
  CommPlan plan;
  plan.comm = &where;
  plan.groupKey = 2; // an even key: no group of a program has one
  plan.self = self;
  plan.elementBytes = 4;
  for (int64_t r = 0; r < numRanks; ++r)
    plan.members.push_back({r, r, 0});
  return run(plan, nullptr, nullptr);
}

Status LocalBackend::run(const CommPlan &plan, const char *in, char *out) {
  RankControl &rc = area.rank(self);
  rc.comm.store(area.commId(plan.comm), std::memory_order_relaxed);
  rc.inside.store(1, std::memory_order_relaxed);
  Status status;
  if (plan.comm->kind == CLEAVE_SEND) {
    Place place{plan, kChannelSlot, ++sendSeq[plan.peer]};
    status = runSend(place, in);
  } else if (plan.comm->kind == CLEAVE_RECV) {
    Place place{plan, kChannelSlot, ++recvSeq[plan.peer]};
    status = runRecv(place, out);
  } else {
    if (plan.slot < 0)
      CLEAVE_RETURN_IF_ERROR(findSlot(plan));
    Place place{plan, uint32_t(plan.slot), ++groupSeq[plan.slot]};
    status = runGroup(place, in, out);
  }
  if (status.ok())
    rc.inside.store(0, std::memory_order_relaxed);
  return status;
}

Status LocalBackend::findSlot(const CommPlan &plan) {
  plan.slot = area.slotOf(plan.groupKey);
  if (plan.slot < 0)
    return internalError("rank ", self, ": ", describe(*plan.comm),
                         " is over the ", kMaxGroups + 1,
                         "th set of axes; the runtime keeps ", kMaxGroups);
  return Status();
}

//===----------------------------------------------------------------------===//
// Collectives of a group
//===----------------------------------------------------------------------===//

static bool overlap(const char *a, int64_t aBytes, const char *b,
                    int64_t bBytes) {
  return a < b + bBytes && b < a + aBytes;
}

/// A group of one: what a rank takes, it takes from itself.
static void runAlone(const CommPlan &plan, const char *in, char *out) {
  if (plan.reduce && in != out)
    std::memmove(out, in, size_t(plan.inBytes));
  else if (!plan.reduce)
    for (const Pull &pull : plan.pulls)
      copyRegion(pull.region, out, in);
}

/// In place costs a second synchronisation; copying in costs a second copy, and
/// n reads by all. Where ranks share cores, a synchronisation is a switch of
/// the process, and larger messages are copied in. All ranks decide alike.
bool LocalBackend::isEager(const CommPlan &plan) const {
  constexpr int64_t kCrowded = 8192, kParts = 1024, kWhole = 256;
  static_assert(kCrowded <= kEagerBytes);
  int64_t bytes = std::max(plan.inBytes, plan.peer < 0 ? 0 : plan.outBytes);
  if (plan.peer >= 0)
    return bytes <= kWhole;
  if (isCrowded)
    return bytes <= kCrowded;
  bool takesParts = plan.comm->kind == CLEAVE_REDUCE_SCATTER ||
                    plan.comm->kind == CLEAVE_ALL_TO_ALL;
  return bytes <= (takesParts ? kParts : kWhole);
}

Status LocalBackend::runGroup(Place &place, const char *in, char *out) {
  const CommPlan &plan = place.plan;
  bool aliased = plan.comm->kind == CLEAVE_ALL_REDUCE && in == out;
  if (!aliased && overlap(in, plan.inBytes, out, plan.outBytes))
    return internalError("rank ", self, ": ", describe(*plan.comm),
                         " reads and writes the same memory");
  int64_t n = int64_t(plan.members.size());
  if (n == 1) {
    runAlone(plan, in, out);
    return Status();
  }
  if (isEager(plan))
    return runEager(place, in, out);
  return runInPlace(place, in, out);
}

/// Reduces the rows of a reduce_scatter: in[k] is the input of member k.
static void reduceRows(const CommPlan &plan, const void **in, size_t n,
                       char *out) {
  const Region &r = plan.pulls[size_t(plan.self)].region;
  std::vector<const void *> rows(n);
  size_t elements = size_t(r.bytes / plan.elementBytes);
  for (int64_t i = 0; i < r.count[0]; ++i) {
    int64_t source = r.sourceOffset + i * r.sourceStep[0];
    for (size_t k = 0; k < n; ++k)
      rows[k] = static_cast<const char *>(in[k]) + source;
    plan.reduce(out + i * r.targetStep[0], rows.data(), n, elements);
  }
}

/// Asks for cache lines that others have read and this rank will write: all at
/// once, while there is something else to do, is faster than one by one.
static void fetchForWriting(const void *at, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64)
    __asm__ volatile("prefetchw %0" : : "m"(static_cast<const char *>(at)[i]));
}

/// All have come to `seq`, so nobody reads the entry before it any more: it is
/// the one that this rank writes next.
void LocalBackend::prepareNext(const Place &place, int64_t bytes) {
  Cell &mine = area.cell(self, place.slot);
  const Entry &next = mine.entries[(place.seq + 1) & 1];
  fetchForWriting(&next, 64 + bytes);
}

Status LocalBackend::runEager(Place &place, const char *in, char *out) {
  const CommPlan &plan = place.plan;
  Entry &mine = area.cell(self, place.slot).entries[place.seq & 1];
  if (plan.inBytes)
    std::memcpy(mine.data, in, size_t(plan.inBytes));
  post(place, nullptr, nullptr);
  CLEAVE_RETURN_IF_ERROR(awaitArrivals(place));
  prepareNext(place, plan.inBytes);
  auto data = [&](int64_t member) -> const char * {
    int64_t rank = plan.members[member].rank;
    return area.cell(rank, place.slot).entries[place.seq & 1].data;
  };
  if (!plan.reduce) {
    for (const Pull &pull : plan.pulls)
      copyRegion(pull.region, out, data(pull.member));
    return Status();
  }
  size_t n = plan.members.size();
  pointers.resize(n);
  for (size_t k = 0; k < n; ++k)
    pointers[k] = data(int64_t(k));
  if (plan.comm->kind == CLEAVE_ALL_REDUCE)
    plan.reduce(out, pointers.data(), n, size_t(plan.comm->dim0));
  else if (!plan.pulls.empty())
    reduceRows(plan, pointers.data(), n, out);
  return Status();
}

Status LocalBackend::stage(const CommPlan &plan, const char **in, char **out) {
  bool inside = area.reachable(*in, plan.inBytes);
  if (inside && area.reachable(*out, plan.outBytes))
    return Status();
  if (plan.inBytes > kBounceBytes || plan.outBytes > kBounceBytes)
    return internalError("rank ", self, ": ", describe(*plan.comm), " has ",
                         std::max(plan.inBytes, plan.outBytes),
                         " bytes outside the shared memory; at most ",
                         kBounceBytes, " can be copied in");
  char *room = area.bounce(self);
  if (!inside) {
    std::memcpy(room, *in, size_t(plan.inBytes));
    *in = room;
  }
  if (!area.reachable(*out, plan.outBytes)) {
    // What a realign does not write keeps its value.
    if (plan.comm->kind == CLEAVE_REALIGN)
      std::memcpy(room + kBounceBytes, *out, size_t(plan.outBytes));
    *out = room + kBounceBytes;
  }
  return Status();
}

static void copy(char *target, const char *source, size_t bytes, bool streams) {
  if (streams)
    copyStreaming(target, source, bytes);
  else
    std::memcpy(target, source, bytes);
}

/// Whether what a group reads and writes is so much more than the cache holds
/// that keeping the end of it there is not worth reading all of it into there.
static bool exceedsCache(const CommPlan &plan) {
  int64_t members = std::max<int64_t>(int64_t(plan.members.size()), 2);
  return (plan.inBytes + plan.outBytes) * members > 2 * lastLevelCacheBytes();
}

/// This rank's slice of an all_reduce: read from all, written to all.
void LocalBackend::reduceSlices(const Place &place, int64_t *offset) {
  const CommPlan &plan = place.plan;
  int64_t n = int64_t(plan.members.size()), e = plan.elementBytes;
  int64_t unit = 64 / e, count = plan.comm->dim0;
  int64_t slice = ((count + n - 1) / n + unit - 1) / unit * unit;
  int64_t begin = std::min(count, slice * plan.self);
  int64_t end = std::min(count, begin + slice);
  bool streams = exceedsCache(plan);
  // A block stays in the cache between being reduced and being copied out.
  int64_t block = (32 << 10) / e;
  std::vector<const void *> in(n);
  for (int64_t at = begin; at < end; at += block) {
    int64_t size = std::min(block, end - at);
    for (int64_t k = 0; k < n; ++k)
      in[k] = area.at(offset[2 * k]) + at * e;
    char *target = area.at(offset[2 * plan.self + 1]) + at * e;
    plan.reduce(target, in.data(), size_t(n), size_t(size));
    for (int64_t k = 0; k < n; ++k)
      if (k != plan.self)
        copy(area.at(offset[2 * k + 1]) + at * e, target, size_t(size * e),
             streams);
  }
}

Status LocalBackend::runInPlace(Place &place, const char *in, char *out) {
  const CommPlan &plan = place.plan;
  char *finalOut = out;
  CLEAVE_RETURN_IF_ERROR(stage(plan, &in, &out));
  post(place, in, out);
  std::atomic<uint32_t> &done = area.cell(self, place.slot).done;
  fetchForWriting(&done, 1);
  CLEAVE_RETURN_IF_ERROR(awaitArrivals(place));
  prepareNext(place, 0);
  int64_t n = int64_t(plan.members.size());
  std::vector<int64_t> offset(2 * n);
  for (int64_t k = 0; k < n; ++k) {
    const Entry &entry =
        area.cell(plan.members[k].rank, place.slot).entries[place.seq & 1];
    offset[2 * k] = entry.in;
    offset[2 * k + 1] = entry.out;
  }
  if (plan.comm->kind == CLEAVE_ALL_REDUCE) {
    reduceSlices(place, offset.data());
  } else if (plan.reduce && !plan.pulls.empty()) {
    pointers.resize(n);
    for (int64_t k = 0; k < n; ++k)
      pointers[k] = area.at(offset[2 * k]);
    reduceRows(plan, pointers.data(), size_t(n), out);
  } else if (!plan.reduce) {
    bool streams = exceedsCache(plan);
    for (const Pull &pull : plan.pulls)
      copyRegion(pull.region, out, area.at(offset[2 * pull.member]), streams);
  }
  publish(done, place.seq);
  CLEAVE_RETURN_IF_ERROR(awaitDone(place));
  if (out != finalOut)
    std::memcpy(finalOut, out, size_t(plan.outBytes));
  return Status();
}

//===----------------------------------------------------------------------===//
// Send and receive
//===----------------------------------------------------------------------===//

Status LocalBackend::runSend(Place &place, const char *in) {
  const CommPlan &plan = place.plan;
  Cell &channel = area.channel(self, plan.peer);
  uint32_t seq = place.seq;
  if (seq > 2) // the entry's previous message must have been taken
    CLEAVE_RETURN_IF_ERROR(
        await(place, plan.peer, channel.done, seq - 2, false));
  Entry &entry = channel.entries[seq & 1];
  bool eager = isEager(plan);
  fetchForWriting(&entry, 64 + (eager ? plan.inBytes : 0));
  char *none = nullptr;
  if (eager)
    std::memcpy(entry.data, in, size_t(plan.inBytes));
  else
    CLEAVE_RETURN_IF_ERROR(stage(plan, &in, &none));
  entry.comm = area.commId(plan.comm);
  entry.in = eager ? 0 : area.offsetOf(in);
  publish(entry.arrived, seq);
  if (eager)
    return Status();
  return await(place, plan.peer, channel.done, seq, false);
}

Status LocalBackend::runRecv(Place &place, char *out) {
  const CommPlan &plan = place.plan;
  Cell &channel = area.channel(plan.peer, self);
  Entry &entry = channel.entries[place.seq & 1];
  CLEAVE_RETURN_IF_ERROR(
      await(place, plan.peer, entry.arrived, place.seq, true));
  CLEAVE_RETURN_IF_ERROR(checkMatch(place, plan.peer, entry));
  bool eager = isEager(plan);
  copy(out, eager ? entry.data : area.at(entry.in), size_t(plan.outBytes),
       exceedsCache(plan));
  publish(channel.done, place.seq);
  return Status();
}

} // namespace cleave::rt

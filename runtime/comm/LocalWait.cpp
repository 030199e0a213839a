//===- LocalWait.cpp - Posting and waiting in shared memory ---------------===//
// The other half of LocalBackend: how a rank says that it has come, how it
// waits for others, and everything that can end a wait.
//===----------------------------------------------------------------------===//
#include "runtime/comm/LocalBackend.h"

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cleave::rt {

// A peer with a core of its own is caught by spinning for some microseconds:
// giving the core away would cost more. Where ranks share cores, spinning keeps
// the peer from running, so few pauses must do. Yielding lets 64 ranks make
// progress on two cores; after that, the kernel wakes us.
constexpr int kSpinsAlone = 2000;
constexpr int kSpinsShared = 20;
constexpr int kYields = 1000;
constexpr double kMaxYieldSeconds = 2e-3;
constexpr int64_t kSleepNanoseconds = 50'000'000;

static double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

static bool reached(const std::atomic<uint32_t> &word, uint32_t seq) {
  return int32_t(word.load(std::memory_order_acquire) - seq) >= 0;
}

static void futexWait(const std::atomic<uint32_t> &word, uint32_t value,
                      double seconds) {
  double nanoseconds = std::max(1e9 * seconds, 1e3);
  timespec limit{0, std::min(int64_t(nanoseconds), kSleepNanoseconds)};
  syscall(SYS_futex, &word, FUTEX_WAIT, value, &limit, nullptr, 0);
}

static void futexWake(const std::atomic<uint32_t> &word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

void LocalBackend::publish(std::atomic<uint32_t> &word, uint32_t seq) {
  // Sequentially consistent, as is the count of sleepers: either the sleeper
  // sees the new word, or we see the sleeper.
  word.store(seq, std::memory_order_seq_cst);
  if (area.rank(self).waiters.load(std::memory_order_seq_cst) != 0)
    futexWake(word);
}

void LocalBackend::post(Place &place, const char *in, char *out) {
  Entry &entry = area.cell(self, place.slot).entries[place.seq & 1];
  entry.comm = area.commId(place.plan.comm);
  entry.in = in ? area.offsetOf(in) : 0;
  entry.out = out ? area.offsetOf(out) : 0;
  publish(entry.arrived, place.seq);
}

Status LocalBackend::awaitArrivals(Place &place) {
  int64_t id = area.commId(place.plan.comm);
  for (const Member &member : place.plan.members) {
    if (member.rank == self)
      continue;
    const Entry &entry =
        area.cell(member.rank, place.slot).entries[place.seq & 1];
    CLEAVE_RETURN_IF_ERROR(
        await(place, member.rank, entry.arrived, place.seq, true));
    if (entry.comm != id)
      CLEAVE_RETURN_IF_ERROR(checkMatch(place, member.rank, entry));
  }
  return Status();
}

Status LocalBackend::awaitDone(Place &place) {
  const CommPlan &plan = place.plan;
  auto one = [&](int64_t member) {
    int64_t rank = plan.members[member].rank;
    if (rank == self)
      return Status();
    return await(place, rank, area.cell(rank, place.slot).done, place.seq,
                 false);
  };
  if (plan.comm->kind == CLEAVE_ALL_REDUCE) {
    for (size_t k = 0; k < plan.members.size(); ++k)
      CLEAVE_RETURN_IF_ERROR(one(int64_t(k)));
    return Status();
  }
  for (const Pull &push : plan.pushes)
    CLEAVE_RETURN_IF_ERROR(one(push.member));
  return Status();
}

Status LocalBackend::await(Place &place, int64_t peer,
                           const std::atomic<uint32_t> &word, uint32_t seq,
                           bool arrival) {
  for (int i = 0, spins = isCrowded ? kSpinsShared : kSpinsAlone; i < spins;
       ++i) {
    if (reached(word, seq))
      return Status();
    __builtin_ia32_pause();
  }
  double start = now();
  if (place.limit == 0) // one deadline for all waits of a communication
    place.limit = start + timeout;
  for (int i = 1; i <= kYields; ++i) {
    sched_yield();
    if (reached(word, seq))
      return Status();
    // On a busy machine each yield may take long: then sleeping is better.
    if (i % 64 == 0 && now() - start > kMaxYieldSeconds)
      break;
  }
  return awaitSlow(place, peer, word, seq, arrival);
}

Status LocalBackend::awaitSlow(Place &place, int64_t peer,
                               const std::atomic<uint32_t> &word, uint32_t seq,
                               bool arrival) {
  RankControl &mine = area.rank(self);
  mine.slot.store(place.slot);
  mine.seq.store(seq);
  mine.waitingFor.store(int32_t(peer));
  uint64_t lastCircle = 0;
  Status status;
  std::atomic<uint32_t> &sleepers = area.rank(peer).waiters;
  while (!reached(word, seq)) {
    sleepers.fetch_add(1, std::memory_order_seq_cst);
    uint32_t value = word.load(std::memory_order_seq_cst);
    if (int32_t(value - seq) < 0)
      futexWait(word, value, place.limit - now());
    sleepers.fetch_sub(1, std::memory_order_seq_cst);
    if (reached(word, seq))
      break;
    status = checkPeer(place, peer);
    if (!status.ok() && reached(word, seq) && !area.hasFailed())
      status = Status(); // it came, and only then went
    std::vector<int64_t> circle;
    uint64_t found = circleFrom(peer, &circle);
    if (status.ok() && found && found == lastCircle)
      status = circleError(place, circle);
    lastCircle = found;
    if (status.ok() && now() > place.limit && !reached(word, seq))
      status = deadlineError(place, peer, arrival);
    if (!status.ok())
      return status;
  }
  mine.waitingFor.store(-1);
  return status;
}

/// What ends a wait for `peer` besides its arrival and the deadline.
Status LocalBackend::checkPeer(const Place &place, int64_t peer) const {
  if (area.hasFailed())
    return Status(Code::aborted, "stopped because another rank failed");
  RankState state = area.rank(peer).state.load();
  if (state == RankState::finished)
    return failedPrecondition(
        "rank ", self, ": ", describe(place.comm()), " waits for rank ", peer,
        ", which has finished (its last: ", area.lastOf(peer),
        "); all ranks of a group must run the same communications in the "
        "same order");
  if (state == RankState::running && isAlive && !isAlive(peer))
    return unavailable("rank ", peer, " died (its last: ", area.lastOf(peer),
                       "); rank ", self, " waited for it in ",
                       describe(place.comm()));
  return Status();
}

//===----------------------------------------------------------------------===//
// Circles of ranks that wait for each other
//===----------------------------------------------------------------------===//

/// Whether `rank` has done its part in the communication `seq` in which
/// `waiter` waits for it.
bool LocalBackend::hasArrived(int64_t rank, int64_t waiter, uint32_t slot,
                              uint32_t seq) const {
  if (slot < kMaxGroups)
    return reached(area.cell(rank, slot).entries[seq & 1].arrived, seq);
  // A channel: the waiter receives from `rank`, or sends to it.
  int64_t id = area.rank(waiter).comm.load();
  if (id != kNoComm && area.commOf(id)->kind == CLEAVE_RECV)
    return reached(area.channel(rank, waiter).entries[seq & 1].arrived, seq);
  return reached(area.channel(waiter, rank).done, seq);
}

/// Follows who waits for whom, from `peer` on. Zero unless that leads back to
/// this rank; else a number that stays the same as long as nobody moves. Seen
/// twice, all of them were waiting in between: none will ever go on.
uint64_t LocalBackend::circleFrom(int64_t peer,
                                  std::vector<int64_t> *circle) const {
  uint64_t hash = 0xcbf29ce484222325ull;
  int64_t at = peer;
  for (int64_t steps = 0; steps < numRanks; ++steps) {
    RankControl &rc = area.rank(at);
    int64_t next = rc.waitingFor.load();
    uint32_t slot = rc.slot.load(), seq = rc.seq.load();
    if (next < 0 || !rc.inside.load() || hasArrived(next, at, slot, seq))
      return 0;
    circle->push_back(at);
    for (uint64_t value : {uint64_t(at), uint64_t(slot), uint64_t(seq)})
      hash = (hash ^ value) * 0x100000001b3ull;
    if (next == self)
      return hash | 1;
    at = next;
  }
  return 0;
}

Status LocalBackend::circleError(const Place &place,
                                 const std::vector<int64_t> &circle) const {
  std::string text = concat("rank ", self, ": ", describe(place.comm()),
                            " waits for rank ", circle.front());
  for (int64_t rank : circle) {
    int64_t id = area.rank(rank).comm.load();
    text += concat(", which waits in ", describe(*area.commOf(id)),
                   " for rank ", area.rank(rank).waitingFor.load());
  }
  return failedPrecondition(text, "; all ranks of a group must run the same "
                                  "communications in the same order");
}

//===----------------------------------------------------------------------===//
// Mismatch and deadline
//===----------------------------------------------------------------------===//

Status LocalBackend::checkMatch(const Place &place, int64_t peer,
                                const Entry &entry) const {
  const CleaveComm &mine = place.comm();
  const CleaveComm &other = *area.commOf(entry.comm);
  if (sameSignature(mine, other))
    return Status();
  return failedPrecondition(
      "rank ", self, ": ", describe(mine), " (", signatureText(mine),
      ") meets ", describe(other), " (", signatureText(other), ") of rank ",
      peer,
      "; all ranks of a group must run the same communications in the same "
      "order");
}

/// "ranks 0 1 2 arrived, rank 7 has not (its last: ...)".
static std::string whoCame(const std::vector<int64_t> &came,
                           const std::vector<std::string> &missing) {
  constexpr size_t kMaxShown = 4;
  std::string text;
  if (!came.empty()) {
    text = came.size() == 1 ? "rank" : "ranks";
    for (int64_t rank : came)
      text += concat(" ", rank);
    text += " arrived, ";
  }
  for (size_t i = 0; i < std::min(missing.size(), kMaxShown); ++i)
    text += concat(i ? ", " : "", missing[i]);
  if (missing.size() > kMaxShown)
    text += concat(" and ", missing.size() - kMaxShown, " more have not");
  return text;
}

Status LocalBackend::deadlineError(const Place &place, int64_t peer,
                                   bool arrival) const {
  char seconds[32];
  std::snprintf(seconds, sizeof(seconds), "%g", timeout);
  std::string text = concat("rank ", self, ": ", describe(place.comm()),
                            " gave up after ", seconds, " s; ");
  std::vector<int64_t> came;
  std::vector<std::string> missing;
  auto miss = [&](int64_t rank, const char *what) {
    missing.push_back(
        concat("rank ", rank, what, " (its last: ", area.lastOf(rank), ")"));
  };
  if (place.slot == kChannelSlot || !arrival) {
    miss(peer, arrival                      ? " has sent nothing"
               : place.slot == kChannelSlot ? " has not taken it"
                                            : " came but has not finished it");
    return Status(Code::deadlineExceeded, text + whoCame(came, missing));
  }
  for (const Member &member : place.plan.members) {
    if (member.rank == self)
      continue;
    if (hasArrived(member.rank, self, place.slot, place.seq))
      came.push_back(member.rank);
    else
      miss(member.rank, came.empty() ? " has not arrived" : " has not");
  }
  return Status(Code::deadlineExceeded, text + whoCame(came, missing));
}

} // namespace cleave::rt

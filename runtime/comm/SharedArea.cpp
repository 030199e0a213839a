//===- SharedArea.cpp - The memory that ranks of one machine share --------===//
#include "runtime/comm/SharedArea.h"
#include "runtime/comm/Plan.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

namespace cleave::rt {

static_assert(sizeof(Control) <= 16384, "the control block has its place");
static_assert(std::atomic<uint32_t>::is_always_lock_free);

constexpr int64_t kPage = 4096, kHugePage = 2 << 20;

static int64_t roundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

AreaLayout AreaLayout::of(const CleaveProgram &program) {
  AreaLayout l;
  l.numRanks = program.numRanks;
  l.arenaBytes = program.initArenaBytes;
  for (int64_t e = 0; e < program.numEntries; ++e)
    l.arenaBytes = std::max(l.arenaBytes, program.entries[e].arenaBytes);
  l.residentBytes = program.residentBytes;
  int64_t n = l.numRanks;
  l.cellsAt = roundUp(16384 + n * int64_t(sizeof(RankControl)), kPage);
  l.channelsAt = l.cellsAt + n * kMaxGroups * int64_t(sizeof(Cell));
  l.ranksAt = roundUp(l.channelsAt + n * n * int64_t(sizeof(Cell)), kHugePage);
  l.residentAt = roundUp(l.arenaBytes + kGuardBytes, kHugePage);
  l.bounceAt = l.residentAt + roundUp(l.residentBytes + kPage, kHugePage);
  // One page more than a multiple of 2 MiB: equal offsets in the arenas of two
  // ranks then do not compete for the same cache sets.
  l.rankBytes = l.bounceAt + 2 * kBounceBytes + kPage;
  l.totalBytes = l.ranksAt + n * l.rankBytes;
  return l;
}

Status SharedArea::mapMemory(int flags, int fd) {
  void *memory = mmap(nullptr, size_t(sizes.totalBytes), PROT_READ | PROT_WRITE,
                      flags | MAP_NORESERVE, fd, 0);
  if (memory == MAP_FAILED)
    return errnoStatus(concat("cannot map ", sizes.totalBytes,
                              " bytes for the ", sizes.numRanks, " ranks"),
                       errno);
  base = static_cast<char *>(memory);
  // Parents copy data in and out after a fork; a core file would hold it all.
  madvise(base, size_t(sizes.totalBytes), MADV_DONTDUMP);
  constexpr int64_t kWorthHugePages = 16 << 20;
  if (sizes.arenaBytes + sizes.residentBytes >= kWorthHugePages)
    madvise(base + sizes.ranksAt, size_t(sizes.totalBytes - sizes.ranksAt),
            MADV_HUGEPAGE);
  return Status();
}

static void initialise(const SharedArea &area) {
  for (int64_t r = 0; r < area.layout().numRanks; ++r) {
    area.rank(r).comm.store(kNoComm, std::memory_order_relaxed);
    area.rank(r).waitingFor.store(-1, std::memory_order_relaxed);
  }
  area.control().failedRank.store(-1);
  area.control().identity = programIdentity(area.program());
  area.control().totalBytes = area.layout().totalBytes;
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  bool known = sched_getaffinity(0, sizeof(cpus), &cpus) == 0;
  area.control().isCrowded =
      known && CPU_COUNT(&cpus) >= area.layout().numRanks ? 0 : 1;
}

Status SharedArea::create(const CleaveProgram &program, Kind kind,
                          std::unique_ptr<SharedArea> *area) {
  bool threads = kind == Kind::threads;
  area->reset(new SharedArea(program, threads));
  CLEAVE_RETURN_IF_ERROR((*area)->mapMemory(
      (threads ? MAP_PRIVATE : MAP_SHARED) | MAP_ANONYMOUS, -1));
  initialise(**area);
  return Status();
}

Status SharedArea::map(const CleaveProgram &program, int fd,
                       std::unique_ptr<SharedArea> *area) {
  area->reset(new SharedArea(program, false));
  CLEAVE_RETURN_IF_ERROR((*area)->mapMemory(MAP_SHARED, fd));
  uint64_t ready = (*area)->control().ready.load(std::memory_order_acquire);
  if (ready != kReady)
    initialise(**area);
  return Status();
}

Status SharedArea::ownResident(int64_t r) {
  size_t bytes = size_t(bounce(r) - resident(r));
  if (mmap(resident(r), bytes, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
           0) == MAP_FAILED)
    return errnoStatus(concat("cannot map ", bytes, " bytes for rank ", r),
                       errno);
  madvise(resident(r), bytes, MADV_DONTDUMP);
  if (sizes.residentBytes >= kHugePage)
    madvise(resident(r), bytes, MADV_HUGEPAGE);
  ownedRank = r;
  return Status();
}

SharedArea::~SharedArea() {
  if (base)
    munmap(base, size_t(sizes.totalBytes));
}

int64_t SharedArea::slotOf(uint64_t groupKey) const {
  for (int64_t i = 0; i < kMaxGroups; ++i) {
    std::atomic<uint64_t> &key = control().groupKeys[i];
    uint64_t found = 0;
    if (key.compare_exchange_strong(found, groupKey) || found == groupKey)
      return i;
  }
  return -1;
}

bool SharedArea::fail(int64_t rank, const Status &status) const {
  Control &c = control();
  uint32_t expected = 0;
  if (!c.failed.compare_exchange_strong(expected, 1))
    return false;
  c.failedRank.store(int32_t(rank));
  c.failedCode.store(int32_t(status.code()));
  size_t size = std::min(status.message().size(), sizeof(c.failedText) - 1);
  std::memcpy(c.failedText, status.message().data(), size);
  c.failedText[size] = 0;
  c.failed.store(2, std::memory_order_release);
  return true;
}

Status SharedArea::failure() const {
  Control &c = control();
  // The writer may have been killed in the middle: do not wait for ever.
  for (int i = 0; i < 1000; ++i) {
    uint32_t state = c.failed.load(std::memory_order_acquire);
    if (state == 0)
      return Status();
    if (state == 2)
      return Status(Code(c.failedCode.load()), c.failedText);
    usleep(1000);
  }
  return internalError("a rank failed and was killed while saying why");
}

std::string SharedArea::lastOf(int64_t r) const {
  constexpr int kMaxHops = 4;
  std::string text;
  for (int hop = 0; hop <= kMaxHops; ++hop) {
    RankControl &rc = rank(r);
    int64_t id = rc.comm.load(std::memory_order_acquire);
    if (rc.state.load() == RankState::absent)
      return text + "not started";
    if (id == kNoComm)
      return text + "no communication yet";
    text += describe(*commOf(id));
    if (!rc.inside.load())
      return text + ", passed";
    int32_t other = rc.waitingFor.load();
    if (other < 0)
      return text;
    text += concat(", waiting for rank ", other);
    r = other;
    if (hop < kMaxHops)
      text += ", whose last: ";
  }
  return text;
}

uint64_t programIdentity(const CleaveProgram &program) {
  uint64_t hash = 0xcbf29ce484222325ull;
  auto mix = [&](uint64_t value) { hash = (hash ^ value) * 0x100000001b3ull; };
  for (const char *c = program.manifest; c && *c; ++c)
    mix(uint64_t(*c));
  AreaLayout layout = AreaLayout::of(program);
  mix(uint64_t(layout.totalBytes));
  // Distances within the image: equal only for the same build. Ranks tell each
  // other communications as such distances.
  const char *start = reinterpret_cast<const char *>(&program);
  auto distance = [&](const void *other) {
    mix(uint64_t(static_cast<const char *>(other) - start));
  };
  distance(program.entries);
  distance(reinterpret_cast<const void *>(&cleave_rt_comm));
  for (int64_t e = 0; e < program.numEntries; ++e)
    distance(reinterpret_cast<const void *>(program.entries[e].run));
  return hash;
}

} // namespace cleave::rt

//===- SharedArea.h - The memory that ranks of one machine share -*- C++
//-*-===//
// One mapping: a control block, then for each rank its cells (where it posts
// its arrival at a collective, with a little room for small messages), then its
// arena and resident area, so that collectives read and write each other's
// buffers in place. Addresses that ranks tell each other are offsets from the
// base; between threads the base is 0, and any address will do.
//
// All of it starts as zeros and is mapped sparsely: what nobody touches costs
// nothing.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_RUNTIME_COMM_SHAREDAREA_H
#define CLEAVE_RUNTIME_COMM_SHAREDAREA_H

#include "cleave/runtime.h"
#include "runtime/support/Status.h"
#include <atomic>
#include <memory>

namespace cleave::rt {

constexpr int64_t kMaxGroups = 128;        // distinct sets of axes in a program
constexpr int64_t kEagerBytes = 8192;      // room in a cell for small messages
constexpr int64_t kBounceBytes = 64 << 20; // for operands outside the area

/// One arrival. `arrived` is the sequence number of the communication; the
/// rest is written before it.
struct Entry {
  alignas(64) std::atomic<uint32_t> arrived;
  int64_t comm;    // distance of the CleaveComm from the program
  int64_t in, out; // offsets of the operands
  alignas(64) char data[kEagerBytes];
};

/// What one rank shows the others of a group (or one other, for send). Two
/// entries: a rank may be one communication ahead of a slow reader.
struct Cell {
  Entry entries[2];
  alignas(64) std::atomic<uint32_t> done; // last one that needs no more reads
};

enum class RankState : uint32_t { absent, running, finished, failed };

/// What a rank is doing, for messages and for finding deadlocks. Written at
/// every communication, read only by those that wait too long.
struct RankControl {
  alignas(64) std::atomic<int64_t> comm; // distance, or kNoComm
  std::atomic<uint32_t> inside;          // 1 in, 0 after `comm`
  std::atomic<int32_t> waitingFor;       // a rank, or -1
  std::atomic<uint32_t> slot, seq;       // of the communication it waits in
  std::atomic<RankState> state;
  std::atomic<int32_t> pid;
  std::atomic<uint64_t> pidStart; // start time: tells reused pids apart
  alignas(64) std::atomic<uint32_t> waiters; // sleepers on this rank's cells
  alignas(64) std::atomic<uint32_t> served;  // last command that is done
  CleaveUsage usage; // written by the rank, read between its commands
};
constexpr int64_t kNoComm = INT64_MIN;
constexpr uint32_t kChannelSlot = ~0u; // `slot` of a send or recv

struct Control {
  std::atomic<uint64_t> ready; // kReady when initialised (env launch)
  uint64_t identity;           // of the program; see programIdentity()
  int64_t totalBytes;
  uint64_t isCrowded;                       // 1: fewer cores than ranks
  alignas(64) std::atomic<uint32_t> failed; // 0 no, 1 being written, 2 yes
  std::atomic<int32_t> failedRank;
  std::atomic<int32_t> failedCode;
  char failedText[4096];
  alignas(64) std::atomic<uint64_t> groupKeys[kMaxGroups];
  // Worlds: the number of the command, and what to do (an entry, or one of
  // the constants of World.cpp).
  alignas(64) std::atomic<uint32_t> command;
  std::atomic<int32_t> commandEntry;
};
constexpr uint64_t kReady = 0x6165726156454c43ull;

/// Sizes of the area; equal on all ranks.
struct AreaLayout {
  int64_t numRanks = 0;
  int64_t arenaBytes = 0;    // largest over the entries and init
  int64_t residentBytes = 0; // weights and state
  int64_t cellsAt = 0, channelsAt = 0, ranksAt = 0;
  int64_t rankBytes = 0, residentAt = 0, bounceAt = 0; // within a rank
  int64_t totalBytes = 0;

  static AreaLayout of(const CleaveProgram &program);
};

/// Bytes behind each arena that --memory-json fills and checks.
constexpr int64_t kGuardBytes = 4096;

class SharedArea {
public:
  enum class Kind { threads, processes };

  /// Maps a fresh area: private memory for threads, memory that children
  /// inherit for processes.
  static Status create(const CleaveProgram &program, Kind kind,
                       std::unique_ptr<SharedArea> *area);
  /// Maps an open file of the size of the layout (env launch).
  static Status map(const CleaveProgram &program, int fd,
                    std::unique_ptr<SharedArea> *area);
  ~SharedArea();

  /// Gives this process a resident area of its own for its rank, in which huge
  /// pages are to be had. The other ranks no longer reach it.
  Status ownResident(int64_t rank);

  const CleaveProgram &program() const { return *owner; }
  const AreaLayout &layout() const { return sizes; }
  Control &control() const { return *reinterpret_cast<Control *>(base); }
  RankControl &rank(int64_t r) const {
    return reinterpret_cast<RankControl *>(base + kRanksAt)[r];
  }
  Cell &cell(int64_t r, int64_t slot) const {
    return reinterpret_cast<Cell *>(base +
                                    sizes.cellsAt)[r * kMaxGroups + slot];
  }
  /// Where `from` posts its sends to `to`; `done` is written by `to`.
  Cell &channel(int64_t from, int64_t to) const {
    return reinterpret_cast<Cell *>(
        base + sizes.channelsAt)[from * sizes.numRanks + to];
  }
  char *arena(int64_t r) const { return rankBase(r); }
  char *resident(int64_t r) const { return rankBase(r) + sizes.residentAt; }
  char *bounce(int64_t r) const { return rankBase(r) + sizes.bounceAt; }

  /// True when all ranks can reach these bytes at the same offset.
  bool reachable(const void *at, int64_t bytes) const {
    const char *p = static_cast<const char *>(at);
    if (shareAll)
      return true;
    if (ownedRank >= 0 && p >= resident(ownedRank) && p < bounce(ownedRank))
      return false;
    return p >= base && p + bytes <= base + sizes.totalBytes;
  }
  int64_t offsetOf(const void *at) const {
    return shareAll ? reinterpret_cast<int64_t>(at)
                    : static_cast<const char *>(at) - base;
  }
  char *at(int64_t offset) const {
    return shareAll ? reinterpret_cast<char *>(offset) : base + offset;
  }
  int64_t commId(const CleaveComm *comm) const {
    return reinterpret_cast<const char *>(comm) -
           reinterpret_cast<const char *>(owner);
  }
  const CleaveComm *commOf(int64_t id) const {
    return reinterpret_cast<const CleaveComm *>(
        reinterpret_cast<const char *>(owner) + id);
  }

  /// The slot of a group key: the same on all ranks. -1 when all are taken.
  int64_t slotOf(uint64_t groupKey) const;

  /// Records the first failure; true when this was it. All waits then end.
  bool fail(int64_t rank, const Status &status) const;
  bool hasFailed() const {
    return control().failed.load(std::memory_order_acquire) != 0;
  }
  /// The recorded failure (waits for a writer in the middle of it).
  Status failure() const;

  /// What a rank did last: "all_reduce over 'tp' in '%y', passed". When it
  /// waits for another, also what that one did last.
  std::string lastOf(int64_t rank) const;

private:
  static constexpr int64_t kRanksAt = 16384;
  SharedArea(const CleaveProgram &program, bool shareAll)
      : owner(&program), shareAll(shareAll), sizes(AreaLayout::of(program)) {}
  Status mapMemory(int flags, int fd);
  char *rankBase(int64_t r) const {
    return base + sizes.ranksAt + r * sizes.rankBytes;
  }

  const CleaveProgram *owner;
  bool shareAll;
  int64_t ownedRank = -1;
  AreaLayout sizes;
  char *base = nullptr;
};

/// Differs between different programs, and between two builds of one.
uint64_t programIdentity(const CleaveProgram &program);

} // namespace cleave::rt

#endif // CLEAVE_RUNTIME_COMM_SHAREDAREA_H

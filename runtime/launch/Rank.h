//===- Rank.h - What one rank has and runs ----------------------*- C++ -*-===//
#ifndef CLEAVE_RUNTIME_LAUNCH_RANK_H
#define CLEAVE_RUNTIME_LAUNCH_RANK_H

#include "cleave/runtime.h"
#include "runtime/comm/Backend.h"
#include "runtime/launch/Trace.h"
#include <array>
#include <memory>
#include <unordered_map>
#include <vector>

namespace cleave::rt {

/// What compiled code hands back to the runtime.
class Rank : public CleaveContext {
public:
  /// `arena` and `resident` hold what the program needs and start as zeros.
  Rank(const CleaveProgram &program, const Mesh &mesh, int64_t rank,
       Backend &backend, char *arena, char *resident);

  const CleaveProgram &program;
  const Mesh &mesh;
  const int64_t index;
  Backend &backend;
  char *const arena;
  char *const resident;
  std::unique_ptr<Trace> trace; // null: off
  CleaveUsage *usage = nullptr; // where it is measured; null: nowhere
  /// The furthest end, in bytes from `arena`, of a block in the arena that a
  /// communication has filled. A block counts whole, also where no other rank
  /// sends to it.
  int64_t commEnd = 0;

  /// Says that a weight's block is there; null: in the resident area.
  void placeWeight(int64_t weight, const char *place) {
    weightPlaces[weight] =
        place ? place : resident + program.weights[weight].offset;
  }
  /// From now on, and from zero, if there is a place for it.
  void startMeasuring();
  /// Runs the program's init (packs weights), after they are in place.
  Status init();
  /// Runs an entry on what lies in the arena.
  Status call(const CleaveEntry &entry);

  /// Called by compiled code.
  Status communicate(const CleaveComm &comm, const void *in, void *out);

private:
  void count(const CommPlan &plan, double seconds);
  Status planOf(const CleaveComm &comm, const CommPlan **plan);
  Status finishCall(int32_t code, const char *what);

  /// Direct-mapped, in front of the map of all plans.
  static constexpr size_t kRecent = 64;
  std::array<const CommPlan *, kRecent> recent = {};
  std::unordered_map<const CleaveComm *, std::unique_ptr<CommPlan>> plans;
  std::vector<const char *> weightPlaces;
  Status lastError;
  bool measures = false;
};

} // namespace cleave::rt

#endif // CLEAVE_RUNTIME_LAUNCH_RANK_H

//===- World.h - All ranks of a model, called by one process ----*- C++ -*-===//
#ifndef CLEAVE_RUNTIME_LAUNCH_WORLD_H
#define CLEAVE_RUNTIME_LAUNCH_WORLD_H

#include "runtime/io/Weights.h"
#include "runtime/launch/Arrays.h"
#include "runtime/launch/Supervisor.h"
#include <thread>

namespace cleave::rt {

/// The ranks wait for commands; the caller reaches their memory and copies
/// inputs and outputs itself.
class World {
public:
  World(const CleaveProgram &program, double timeoutSeconds)
      : program(program), mesh(program), timeout(timeoutSeconds) {}
  ~World();

  Status start(SharedArea::Kind kind);
  /// `files` are what the arrays are mapped from; null for the caller's memory.
  /// Threads use blocks of files where they lie.
  Status load(const std::vector<BoundArray> &weights,
              std::shared_ptr<const Weights> files);
  /// Threads map the packs; processes, which were forked before, get copies.
  Status loadPacked(const std::string &folder);
  Status call(const CleaveEntry &entry, const std::vector<BoundArray> &inputs,
              const std::vector<BoundArray> &outputs);
  /// Begins to measure all ranks, from zero.
  void measure();
  CleaveUsage usage(int64_t rank) const { return area->rank(rank).usage; }
  Status setState(const BoundArray &state);
  void getState(const BoundArray &state);

  const CleaveProgram &program;

private:
  /// One rank: runs commands until it is told to quit or one fails.
  Status serve(int64_t rank);
  Status loadRank(int64_t rank, const std::vector<BoundArray> &weights,
                  bool mayStay);
  Status command(int32_t entry);
  void announce(int32_t entry);
  Status awaitServed();

  Mesh mesh;
  double timeout;
  bool isLoaded = false, isMapped = false;
  std::unique_ptr<SharedArea> area;
  std::unique_ptr<Supervisor> supervisor; // processes
  std::vector<std::thread> threads;       // threads
  std::shared_ptr<const Weights> files;   // that blocks are used in
  /// By rank and weight; null where the block is in the resident area.
  std::vector<std::vector<const char *>> inPlace;
};

} // namespace cleave::rt

#endif // CLEAVE_RUNTIME_LAUNCH_WORLD_H

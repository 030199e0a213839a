//===- World.h - All ranks of a model, called by one process ----*- C++ -*-===//
#ifndef CLEAVE_RUNTIME_LAUNCH_WORLD_H
#define CLEAVE_RUNTIME_LAUNCH_WORLD_H

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
  Status load(const std::vector<BoundArray> &weights);
  /// Threads map the packs; processes, which were forked before, get copies.
  Status loadPacked(const std::string &folder);
  Status call(const CleaveEntry &entry, const std::vector<BoundArray> &inputs,
              const std::vector<BoundArray> &outputs);
  Status setState(const BoundArray &state);
  void getState(const BoundArray &state);

  const CleaveProgram &program;

private:
  /// One rank: runs commands until it is told to quit or one fails.
  Status serve(int64_t rank);
  Status command(int32_t entry);
  void announce(int32_t entry);
  Status awaitServed();

  Mesh mesh;
  double timeout;
  bool isLoaded = false;
  std::unique_ptr<SharedArea> area;
  std::unique_ptr<Supervisor> supervisor; // processes
  std::vector<std::thread> threads;       // threads
};

} // namespace cleave::rt

#endif // CLEAVE_RUNTIME_LAUNCH_WORLD_H

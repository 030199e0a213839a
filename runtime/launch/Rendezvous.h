//===- Rendezvous.h - Unrelated processes find each other -------*- C++ -*-===//
// Ranks that a launcher has started on one machine know only a name for their
// run. Rank 0 makes the shared area and publishes where it is in a small named
// segment of shared memory; when all have come, the name is removed, so that
// nothing is left behind however the run ends.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_RUNTIME_LAUNCH_RENDEZVOUS_H
#define CLEAVE_RUNTIME_LAUNCH_RENDEZVOUS_H

#include "runtime/comm/SharedArea.h"
#include "runtime/launch/Environment.h"
#include <vector>

namespace cleave::rt {

class Rendezvous {
public:
  ~Rendezvous();

  /// Meets the other ranks of the run; at most for `timeoutSeconds`.
  Status meet(const CleaveProgram &program, const RankEnvironment &environment,
              double timeoutSeconds);

  SharedArea &area() const { return *shared; }
  /// Whether another rank's process still exists.
  bool isAlive(int64_t rank) const;

private:
  Status create(const CleaveProgram &program);
  Status open(const CleaveProgram &program);
  Status takePlace();
  Status waitForAll();

  RankEnvironment environment;
  std::string name; // of the segment; empty when it need not be removed
  double timeout = 0, limit = 0;
  int memoryFile = -1;
  std::unique_ptr<SharedArea> shared;
  std::vector<int> pidfds;
};

} // namespace cleave::rt

#endif // CLEAVE_RUNTIME_LAUNCH_RENDEZVOUS_H

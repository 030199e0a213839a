//===- Supervisor.h - Forks ranks and watches them --------------*- C++ -*-===//
#ifndef CLEAVE_RUNTIME_LAUNCH_SUPERVISOR_H
#define CLEAVE_RUNTIME_LAUNCH_SUPERVISOR_H

#include "runtime/comm/SharedArea.h"
#include <functional>
#include <vector>

namespace cleave::rt {

/// The ranks of a local launch: children of this process, one each. They die
/// with it, and it never leaves one behind.
class Supervisor {
public:
  Supervisor(SharedArea &area, double timeoutSeconds)
      : area(area), timeout(timeoutSeconds) {}
  ~Supervisor();

  /// Forks all ranks; each runs body(rank) and then exits.
  Status start(const std::function<Status(int64_t)> &body);

  /// Waits until all have ended. The error is the first failure of any: what
  /// the rank said, or how it died and what it was doing. After one, the
  /// others get half a second to stop by themselves.
  Status join();

  /// Looks once, without waiting: the first failure so far.
  Status poll();

  /// From now on SIGINT and SIGTERM end the ranks and make join() fail, so that
  /// the caller can clean up. For processes that do nothing else.
  static void handleSignals();

private:
  struct Child {
    int pid = -1; // -1 after its end
    int pidfd = -1;
    double stoppedSince = 0; // 0: runs
  };

  void look(int64_t rank);
  void ended(int64_t rank, int waitStatus);
  void checkStopped(int64_t rank);
  void waitForNews();
  void killAll();

  SharedArea &area;
  double timeout;
  std::vector<Child> children;
};

} // namespace cleave::rt

#endif // CLEAVE_RUNTIME_LAUNCH_SUPERVISOR_H

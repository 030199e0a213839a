//===- Workers.h - Cases in processes of their own -------------*- C++ -*-===//
// A compiler that crashes or never returns must not take the oracle with it:
// cases run in forked children, each under a deadline.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_TEST_ORACLE_WORKERS_H
#define CLEAVE_TEST_ORACLE_WORKERS_H

#include "test/oracle/Case.h"

namespace cleave::oracle {

struct WorkerOptions {
  uint64_t firstSeed = 1, count = 100;
  int jobs = 1;
  /// For one case.
  double deadlineSeconds = 20;
  /// Cases in one child, before a fresh one takes over.
  uint64_t batch = 400;
  /// Whether children keep this process' stderr.
  bool showStderr = false;
};

/// Runs the cases of all seeds in children. `onReport` gets each result, in no
/// order, and says whether to go on.
void runSeeds(const WorkerOptions &options,
              std::function<Report(uint64_t seed)> run,
              std::function<bool(uint64_t seed, const Report &)> onReport);

/// Runs one case in a child.
Report runIsolated(std::function<Report()> run, double deadlineSeconds);

} // namespace cleave::oracle

#endif // CLEAVE_TEST_ORACLE_WORKERS_H

//===- Conformance.h - What every backend must compute ----------*- C++ -*-===//
// Random communications of every kind, checked against a plain reference that
// is written from the text of abi.h and shares no code with the runtime. All
// ranks draw the same cases from the same seed, and every rank knows what the
// others put in, so each checks its own output.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_TEST_RUNTIME_CONFORMANCE_H
#define CLEAVE_TEST_RUNTIME_CONFORMANCE_H

#include "test/runtime/TestProgram.h"

namespace cleave::rt::test {

/// Arena that the cases need.
constexpr int64_t kConformanceArena = 1 << 21;

struct ConformanceCase {
  TestComm comm;
  bool inPlace; // in == out
};

/// Draws the cases. Ranks tell each other communications by address, so this
/// comes before they are forked, and threads share one list.
std::vector<ConformanceCase> drawCases(const CleaveProgram &program,
                                       uint64_t seed, int numCases);

/// Runs the cases on this rank; the error describes the case and the first
/// wrong element.
Status runConformance(const CleaveProgram &program, int64_t rank,
                      Backend &backend, char *arena,
                      const std::vector<ConformanceCase> &cases);

} // namespace cleave::rt::test

#endif // CLEAVE_TEST_RUNTIME_CONFORMANCE_H

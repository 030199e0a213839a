//===- Backend.h - How ranks reach each other -------------------*- C++ -*-===//
#ifndef CLEAVE_RUNTIME_COMM_BACKEND_H
#define CLEAVE_RUNTIME_COMM_BACKEND_H

#include "runtime/comm/Plan.h"

namespace cleave::rt {

/// One rank's side of the communication. Calls come from one thread.
class Backend {
public:
  virtual ~Backend() = default;

  /// Runs one communication; returns when this rank's output is complete and
  /// its input may be overwritten.
  virtual Status run(const CommPlan &plan, const char *in, char *out) = 0;

  /// Returns when all ranks have come here; `where` is one of the static
  /// places below.
  virtual Status barrier(const CleaveComm &where) = 0;

  /// Tells the other ranks that this one stops because of `status`. The first
  /// failure wins: true when this was it.
  virtual bool fail(const Status &status) = 0;

  /// The rank's program is over; nothing follows.
  virtual void finish() = 0;
};

// The places where all ranks meet outside of programs.
extern const CleaveComm kOutputsCreated, kOutputsWritten, kTraceWritten;

} // namespace cleave::rt

#endif // CLEAVE_RUNTIME_COMM_BACKEND_H

//===- Trace.h - Chrome traces ----------------------------------*- C++ -*-===//
#ifndef CLEAVE_RUNTIME_LAUNCH_TRACE_H
#define CLEAVE_RUNTIME_LAUNCH_TRACE_H

#include <cstdint>
#include <string>
#include <vector>

namespace cleave::rt {

/// What one rank did when. Events nest.
class Trace {
public:
  /// `name` and `cause` must stay alive. Zero bytes: not a communication.
  void begin(const char *name, const char *cause, int64_t bytes);
  void end();

  /// The events as elements of a JSON array, one row for this rank, times in
  /// microseconds of the machine's clock.
  std::string json(int64_t rank) const;

private:
  static constexpr size_t kMaxEvents = 1 << 20;
  struct Event {
    const char *name, *cause;
    int64_t bytes, begin, end;
  };
  std::vector<Event> events;
  std::vector<size_t> open;
  int64_t dropped = 0;
};

} // namespace cleave::rt

#endif // CLEAVE_RUNTIME_LAUNCH_TRACE_H

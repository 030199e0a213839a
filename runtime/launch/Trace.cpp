//===- Trace.cpp - Chrome traces ------------------------------------------===//
#include "runtime/launch/Trace.h"
#include "runtime/support/Names.h"

#include <cstdio>
#include <ctime>

namespace cleave::rt {

static int64_t nanoseconds() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

void Trace::begin(const char *name, const char *cause, int64_t bytes) {
  if (events.size() == kMaxEvents) {
    ++dropped;
    open.push_back(SIZE_MAX);
    return;
  }
  open.push_back(events.size());
  events.push_back({name, cause, bytes, nanoseconds(), 0});
}

void Trace::end() {
  if (open.empty())
    return;
  if (open.back() != SIZE_MAX)
    events[open.back()].end = nanoseconds();
  open.pop_back();
}

std::string Trace::json(int64_t rank) const {
  std::string row = std::to_string(rank);
  std::string out =
      "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":0,\"tid\":" + row +
      ",\"args\":{\"name\":\"rank " + row + "\"}}";
  for (const Event &event : events) {
    char times[96];
    std::snprintf(times, sizeof(times), "\"ts\":%.3f,\"dur\":%.3f",
                  double(event.begin) / 1e3,
                  double(event.end - event.begin) / 1e3);
    out += ",\n{\"name\":" + jsonString(event.name ? event.name : "") +
           ",\"ph\":\"X\",\"pid\":0,\"tid\":" + row + "," + times;
    if (event.bytes)
      out += ",\"cat\":\"communication\",\"args\":{\"bytes\":" +
             std::to_string(event.bytes) +
             ",\"cause\":" + jsonString(event.cause ? event.cause : "") + "}";
    else
      out += ",\"cat\":\"kernel\"";
    out += "}";
  }
  if (dropped)
    out += ",\n{\"name\":\"" + std::to_string(dropped) +
           " more events\",\"ph\":\"i\",\"s\":\"t\",\"pid\":0,\"tid\":" + row +
           ",\"ts\":" + std::to_string(nanoseconds() / 1000) + "}";
  return out;
}

} // namespace cleave::rt

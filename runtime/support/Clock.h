//===- Clock.h - Time of this machine ---------------------------*- C++ -*-===//
#ifndef CLEAVE_RUNTIME_SUPPORT_CLOCK_H
#define CLEAVE_RUNTIME_SUPPORT_CLOCK_H

#include <ctime>

namespace cleave::rt {

/// Seconds since some moment, never going back.
inline double monotonicSeconds() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

} // namespace cleave::rt

#endif // CLEAVE_RUNTIME_SUPPORT_CLOCK_H

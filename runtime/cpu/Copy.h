//===- Copy.h - Copies past the cache ---------------------------*- C++ -*-===//
#ifndef CLEAVE_RUNTIME_CPU_COPY_H
#define CLEAVE_RUNTIME_CPU_COPY_H

#include <cstddef>
#include <cstdint>

namespace cleave::rt {

/// memcpy that does not read the target's lines into the cache first. Where
/// source and target don't fit there anyway, that is a third of the traffic.
/// What it wrote is visible to others after the next release.
void copyStreaming(void *target, const void *source, size_t bytes);

/// Bytes of the last-level cache, which the ranks of a machine share.
int64_t lastLevelCacheBytes();

} // namespace cleave::rt

#endif // CLEAVE_RUNTIME_CPU_COPY_H

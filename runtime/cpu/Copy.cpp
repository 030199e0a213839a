//===- Copy.cpp - Copies past the cache -----------------------------------===//
#include "runtime/cpu/Copy.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace cleave::rt {

#ifdef __SSE2__

void copyStreaming(void *target, const void *source, size_t bytes) {
  constexpr size_t kLine = 64, kAhead = 16 * kLine;
  char *to = static_cast<char *>(target);
  const char *from = static_cast<const char *>(source);
  size_t head = std::min(bytes, -reinterpret_cast<uintptr_t>(to) % kLine);
  std::memcpy(to, from, head);
  size_t at = head;
  for (; at + kLine <= bytes; at += kLine) {
    _mm_prefetch(from + at + kAhead, _MM_HINT_T0);
    for (size_t i = 0; i < kLine; i += 16)
      _mm_stream_si128(
          reinterpret_cast<__m128i *>(to + at + i),
          _mm_loadu_si128(reinterpret_cast<const __m128i *>(from + at + i)));
  }
  std::memcpy(to + at, from + at, bytes - at);
  // Streamed stores are not ordered by a release of an atomic.
  _mm_sfence();
}

#else

void copyStreaming(void *target, const void *source, size_t bytes) {
  std::memcpy(target, source, bytes);
}

#endif

/// "32768K" in the file that Linux keeps for each cache; 0 if there is none.
static int64_t cacheBytes(int index) {
  std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" +
                     std::to_string(index) + "/size");
  int64_t number = 0;
  char unit = 0;
  if (!(file >> number))
    return 0;
  file >> unit;
  return number * (unit == 'K' ? 1 << 10 : unit == 'M' ? 1 << 20 : 1);
}

int64_t lastLevelCacheBytes() {
  // sysconf() is no help: virtual machines make it report other sizes.
  static const int64_t bytes = [] {
    constexpr int64_t kUsual = 32 << 20;
    int64_t known = std::max(cacheBytes(2), cacheBytes(3));
    return known > 0 ? known : kUsual;
  }();
  return bytes;
}

} // namespace cleave::rt

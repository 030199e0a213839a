//===- Dtype.h - Element types and conversions at the edge ------*- C++ -*-===//
#ifndef CLEAVE_RUNTIME_SUPPORT_DTYPE_H
#define CLEAVE_RUNTIME_SUPPORT_DTYPE_H

#include "cleave/abi.h"
#include <cstdint>
#include <cstring>

namespace cleave::rt {

constexpr uint32_t kNumDtypes = 9;

/// Bytes of one element.
constexpr int64_t dtypeBytes(uint32_t dtype) {
  constexpr int64_t bytes[kNumDtypes] = {4, 2, 2, 8, 4, 8, 2, 1, 1};
  return bytes[dtype];
}

/// "f32", "bf16", ...
const char *dtypeName(uint32_t dtype);

/// The dtype of that name, or -1.
int dtypeFromName(const char *name, size_t length);

inline float bf16ToFloat(uint16_t bits) {
  uint32_t wide = uint32_t(bits) << 16;
  float value;
  std::memcpy(&value, &wide, 4);
  return value;
}

/// Rounds to nearest, ties to even; NaN stays NaN.
inline uint16_t floatToBf16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return uint16_t((bits >> 16) | 0x40);
  return uint16_t((bits + 0x7fffu + ((bits >> 16) & 1)) >> 16);
}

float f16ToFloat(uint16_t bits);
/// Rounds to nearest, ties to even; NaN stays NaN.
uint16_t floatToF16(float value);

/// Elements of one type in memory; `step` is the distance in bytes.
struct Source {
  const char *data;
  uint32_t dtype;
  int64_t step;
  bool swapBytes = false; // of the other endianness
};
struct Target {
  char *data;
  uint32_t dtype;
  int64_t step;
};

/// True where convert() takes this pair: equal types, and any two of f32, bf16
/// and f16. Widening is exact; narrowing rounds to nearest, ties to even.
bool canConvert(uint32_t from, uint32_t to);

/// True where convert() of such a pair keeps every value.
constexpr bool isExact(uint32_t from, uint32_t to) {
  return from == to || to == CLEAVE_F32;
}

/// Copies `count` elements. i1 becomes 0 or 1. Returns how many finite values
/// became infinite (only narrowing can do that).
int64_t convert(Target to, Source from, int64_t count);

} // namespace cleave::rt

#endif // CLEAVE_RUNTIME_SUPPORT_DTYPE_H

//===- Dtype.cpp - Element types and conversions at the edge --------------===//
#include "runtime/support/Dtype.h"

#include <cmath>
#include <limits>
#include <string_view>

namespace cleave::rt {

static constexpr const char *kNames[kNumDtypes] = {
    "f32", "bf16", "f16", "f64", "i32", "i64", "i16", "i8", "i1"};

const char *dtypeName(uint32_t dtype) {
  return dtype < kNumDtypes ? kNames[dtype] : "unknown";
}

int dtypeFromName(const char *name, size_t length) {
  for (uint32_t i = 0; i < kNumDtypes; ++i)
    if (std::string_view(name, length) == kNames[i])
      return int(i);
  return -1;
}

float f16ToFloat(uint16_t bits) {
  uint32_t sign = uint32_t(bits & 0x8000) << 16;
  uint32_t exponent = (bits >> 10) & 31, mantissa = bits & 1023;
  float value;
  if (exponent == 0) { // zero and subnormals: mantissa * 2^-24
    value = float(mantissa) * 0x1p-24f;
    uint32_t wide;
    std::memcpy(&wide, &value, 4);
    wide |= sign;
    std::memcpy(&value, &wide, 4);
    return value;
  }
  uint32_t wideExponent = exponent == 31 ? 255 : exponent + 112;
  uint32_t wide = sign | (wideExponent << 23) | (mantissa << 13);
  std::memcpy(&value, &wide, 4);
  return value;
}

uint16_t floatToF16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  uint16_t sign = uint16_t((bits >> 16) & 0x8000);
  uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u)
    return uint16_t(sign | 0x7e00 | ((magnitude >> 13) & 0x1ff));
  if (magnitude >= 0x477ff000u) // 65520 and up round to infinity
    return uint16_t(sign | 0x7c00);
  if (magnitude < 0x38800000u) { // below 2^-14: a multiple of 2^-24
    float scaled;
    std::memcpy(&scaled, &magnitude, 4);
    return uint16_t(sign | uint16_t(std::nearbyint(scaled * 0x1p24f)));
  }
  uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1);
  return uint16_t(sign | uint16_t((rounded - 0x38000000u) >> 13));
}

bool canConvert(uint32_t from, uint32_t to) {
  auto isFloat = [](uint32_t d) {
    return d == CLEAVE_F32 || d == CLEAVE_BF16 || d == CLEAVE_F16;
  };
  return from == to || (isFloat(from) && isFloat(to));
}

template <typename T> static T load(const char *at, bool swapBytes) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  if constexpr (sizeof(T) == 2)
    return swapBytes ? __builtin_bswap16(value) : value;
  else if constexpr (sizeof(T) == 4)
    return swapBytes ? __builtin_bswap32(value) : value;
  else if constexpr (sizeof(T) == 8)
    return swapBytes ? __builtin_bswap64(value) : value;
  return value;
}

template <typename T>
static void copyElements(Target to, Source from, int64_t count) {
  if (to.step == int64_t(sizeof(T)) && from.step == to.step &&
      !from.swapBytes) {
    std::memcpy(to.data, from.data, size_t(count) * sizeof(T));
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    T value = load<T>(from.data + i * from.step, from.swapBytes);
    std::memcpy(to.data + i * to.step, &value, sizeof(T));
  }
}

static void copyBooleans(Target to, Source from, int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    to.data[i * to.step] = from.data[i * from.step] != 0;
}

/// Calls `loop` with the steps as constants where the elements lie densely, so
/// that it becomes a loop over vectors.
template <int64_t toBytes, int64_t fromBytes, typename Loop>
static int64_t withSteps(Target to, Source from, Loop loop) {
  if (to.step == toBytes && from.step == fromBytes && !from.swapBytes)
    return loop(toBytes, fromBytes, false);
  if (to.step == toBytes && !from.swapBytes)
    return loop(toBytes, from.step, false);
  return loop(to.step, from.step, from.swapBytes);
}

template <typename Widen>
static void widen(Target to, Source from, int64_t count, Widen toFloat) {
  withSteps<4, 2>(
      to, from, [&](int64_t toStep, int64_t fromStep, bool swap) -> int64_t {
        for (int64_t i = 0; i < count; ++i) {
          float value = toFloat(load<uint16_t>(from.data + i * fromStep, swap));
          std::memcpy(to.data + i * toStep, &value, 4);
        }
        return 0;
      });
}

/// To a half whose infinity is that, by way of f32. Returns the overflows.
template <int64_t fromBytes, typename Read, typename Narrow>
static int64_t narrow(Target to, Source from, int64_t count, Read read,
                      Narrow fromFloat, uint16_t infinity) {
  return withSteps<2, fromBytes>(
      to, from, [&](int64_t toStep, int64_t fromStep, bool swap) {
        int64_t overflows = 0;
        for (int64_t i = 0; i < count; ++i) {
          float value = read(from.data + i * fromStep, swap);
          uint16_t small = fromFloat(value);
          overflows +=
              (small & 0x7fff) == infinity &&
              std::fabs(value) < std::numeric_limits<float>::infinity();
          std::memcpy(to.data + i * toStep, &small, 2);
        }
        return overflows;
      });
}

static float readFloat(const char *at, bool swap) {
  uint32_t bits = load<uint32_t>(at, swap);
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

static int64_t convertFloats(Target to, Source from, int64_t count) {
  auto readBf16 = [](const char *at, bool swap) {
    return bf16ToFloat(load<uint16_t>(at, swap));
  };
  auto readF16 = [](const char *at, bool swap) {
    return f16ToFloat(load<uint16_t>(at, swap));
  };
  constexpr uint16_t kBf16Infinity = 0x7f80, kF16Infinity = 0x7c00;
  if (to.dtype == CLEAVE_F32 && from.dtype == CLEAVE_BF16)
    widen(to, from, count, bf16ToFloat);
  else if (to.dtype == CLEAVE_F32)
    widen(to, from, count, f16ToFloat);
  else if (to.dtype == CLEAVE_BF16 && from.dtype == CLEAVE_F32)
    return narrow<4>(to, from, count, readFloat, floatToBf16, kBf16Infinity);
  else if (to.dtype == CLEAVE_BF16)
    return narrow<2>(to, from, count, readF16, floatToBf16, kBf16Infinity);
  else if (from.dtype == CLEAVE_F32)
    return narrow<4>(to, from, count, readFloat, floatToF16, kF16Infinity);
  else
    return narrow<2>(to, from, count, readBf16, floatToF16, kF16Infinity);
  return 0;
}

int64_t convert(Target to, Source from, int64_t count) {
  if (to.dtype != from.dtype)
    return convertFloats(to, from, count);
  if (to.dtype == CLEAVE_I1)
    copyBooleans(to, from, count);
  else if (dtypeBytes(to.dtype) == 1)
    copyElements<uint8_t>(to, from, count);
  else if (dtypeBytes(to.dtype) == 2)
    copyElements<uint16_t>(to, from, count);
  else if (dtypeBytes(to.dtype) == 4)
    copyElements<uint32_t>(to, from, count);
  else
    copyElements<uint64_t>(to, from, count);
  return 0;
}

} // namespace cleave::rt

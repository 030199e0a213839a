//===- Scalar.cpp - Values of one element ---------------------------------===//
#include "test/oracle/Scalar.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include <bit>
#include <cmath>
#include <limits>

namespace cleave::oracle {

std::optional<Kind> Kind::of(mlir::Type type) {
  if (type.isIndex())
    return Kind{Int, 64};
  if (auto integer = mlir::dyn_cast<mlir::IntegerType>(type)) {
    if (integer.getWidth() < 1 || integer.getWidth() > 64)
      return std::nullopt;
    return Kind{Int, static_cast<uint8_t>(integer.getWidth())};
  }
  if (type.isBF16())
    return Kind{BF16, 16};
  if (type.isF16())
    return Kind{F16, 16};
  if (type.isF32())
    return Kind{F32, 32};
  if (type.isF64())
    return Kind{F64, 64};
  return std::nullopt;
}

/// Rounds to `precision` significant bits by the bits of the double; below
/// 2^minExponent the spacing stays that of the subnormals.
static double roundNarrow(double value, int precision, int minExponent,
                          double largest) {
  if (!std::isfinite(value) || value == 0)
    return value;
  if (std::fabs(value) < std::ldexp(1.0, minExponent)) {
    int shift = precision - 1 - minExponent;
    double scaled = std::nearbyint(std::ldexp(value, shift));
    return std::copysign(std::ldexp(scaled, -shift), value);
  }
  int drop = 53 - precision;
  uint64_t bits = std::bit_cast<uint64_t>(value);
  bits += (1ull << (drop - 1)) - 1 + ((bits >> drop) & 1);
  bits &= ~((1ull << drop) - 1);
  double rounded = std::bit_cast<double>(bits);
  if (std::fabs(rounded) > largest)
    return std::copysign(std::numeric_limits<double>::infinity(), value);
  return rounded;
}

double roundTo(Kind kind, double value) {
  switch (kind.cls) {
  case Kind::F32:
    return static_cast<float>(value);
  case Kind::BF16:
    return roundNarrow(value, 8, -126, 0x1.FEp127);
  case Kind::F16:
    return roundNarrow(value, 11, -14, 65504.0);
  default:
    return value;
  }
}

bool sameScalar(Kind kind, Scalar a, Scalar b, bool bitwise) {
  if (!kind.isFloat())
    return a.i == b.i;
  if (std::isnan(a.f) || std::isnan(b.f))
    return std::isnan(a.f) && std::isnan(b.f);
  return a.f == b.f && (!bitwise || std::signbit(a.f) == std::signbit(b.f));
}

std::string toString(Kind kind, Scalar value) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (kind.isFloat())
    os << llvm::format("%.9g", value.f);
  else
    os << value.i;
  return text;
}

Scalar poison(Kind kind, Random &random) {
  uint64_t draw = random.next();
  if (kind.isFloat()) {
    if (draw & 1)
      return Scalar::ofFloat(std::numeric_limits<double>::quiet_NaN());
    double big = static_cast<double>(draw >> 40) + 7919.0;
    return Scalar::ofFloat(roundTo(kind, draw & 2 ? big : -big));
  }
  if (draw % 4 == 0)
    return Scalar::ofInt(0);
  if (draw % 4 == 1)
    return Scalar::ofInt(wrap(1ll << (kind.bits - 1), kind.bits));
  return Scalar::ofInt(wrap(static_cast<int64_t>(draw >> 2), kind.bits));
}

} // namespace cleave::oracle

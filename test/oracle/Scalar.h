//===- Scalar.h - Values of one element ------------------------*- C++ -*-===//
// The element types of models and what arithmetic on them gives: integers wrap
// around, floats are computed in double and rounded once after each op.
// Nothing here is shared with the compiler: that is the point of an oracle.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_TEST_ORACLE_SCALAR_H
#define CLEAVE_TEST_ORACLE_SCALAR_H

#include "mlir/IR/BuiltinTypes.h"
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>

namespace cleave::oracle {

/// An element type. Integers have 1 to 64 bits; `index` counts as 64.
struct Kind {
  enum Class : uint8_t { Int, BF16, F16, F32, F64 };
  Class cls = Int;
  uint8_t bits = 64;

  bool isFloat() const { return cls != Int; }
  bool operator==(const Kind &) const = default;
  /// None for types the oracle does not know.
  static std::optional<Kind> of(mlir::Type type);
};

/// One element. Integers are kept sign-extended (a true i1 is -1); floats of
/// all widths as the double of the same value.
union Scalar {
  int64_t i;
  double f;

  static Scalar ofInt(int64_t value) {
    Scalar s;
    s.i = value;
    return s;
  }
  static Scalar ofFloat(double value) {
    Scalar s;
    s.f = value;
    return s;
  }
};

/// Sign-extends the low bits: what an integer of this width keeps.
inline int64_t wrap(int64_t value, unsigned bits) {
  unsigned drop = 64 - bits;
  return static_cast<int64_t>(static_cast<uint64_t>(value) << drop) >> drop;
}
/// The low bits as an unsigned number.
inline uint64_t zeroExtend(int64_t value, unsigned bits) {
  return bits == 64 ? static_cast<uint64_t>(value)
                    : static_cast<uint64_t>(value) & ((1ull << bits) - 1);
}
/// Nearest value of the type, ties to even.
double roundTo(Kind kind, double value);

/// Same number, or both NaN. The sign of zero counts only if `bitwise`.
bool sameScalar(Kind kind, Scalar a, Scalar b, bool bitwise);
std::string toString(Kind kind, Scalar value);

/// Small generator of random numbers (splitmix64): the same on every machine.
class Random {
public:
  explicit Random(uint64_t seed) : state(seed) {}
  uint64_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  /// 0 to n - 1.
  uint64_t below(uint64_t n) { return n == 0 ? 0 : next() % n; }
  /// low to high, both included.
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(below(high - low + 1));
  }
  bool chance(unsigned percent) { return below(100) < percent; }
  template <typename Range> auto &pick(Range &&range) {
    return range[below(std::size(range))];
  }

private:
  uint64_t state;
};

/// A value no program may depend on: what stands in `tensor.empty` and in the
/// padding of blocks. NaN or a large number; integers at random, among them 0
/// and the least, which trap as divisors.
Scalar poison(Kind kind, Random &random);

} // namespace cleave::oracle

#endif // CLEAVE_TEST_ORACLE_SCALAR_H

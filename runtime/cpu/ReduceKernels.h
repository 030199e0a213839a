//===- ReduceKernels.h - The reductions, compiled once per ISA --*- C++ -*-===//
// Included by ReduceX86.cpp, ReduceAvx2.cpp and ReduceAvx512.cpp, which differ
// in their compiler flags only. The loops are written so that the compiler
// vectorises them; everything is in an anonymous namespace, because the linker
// must never share an inline function between two of these files. For the same
// reason no header with inline functions is used here.
//===----------------------------------------------------------------------===//
#include "runtime/cpu/Reduce.h"

#include <cstring>

#if defined(__clang__)
#define CLEAVE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define CLEAVE_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace {

/// Elements whose partial results stay in the first-level cache.
constexpr size_t kBlock = 1024;

// How a type lies in memory (Stored) and what it is combined as (Wide).
template <typename T> struct Plain {
  using Stored = T;
  using Wide = T;
  static Wide widen(Stored x) { return x; }
  static Stored narrow(Wide x) { return x; }
};
struct Bf16 {
  using Stored = uint16_t;
  using Wide = float;
  static Wide widen(Stored x) {
    uint32_t bits = uint32_t(x) << 16;
    float value;
    memcpy(&value, &bits, 4);
    return value;
  }
  static Stored narrow(Wide x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1)) >> 16;
    uint32_t quiet = (bits >> 16) | 0x40;
    return uint16_t(x == x ? rounded : quiet);
  }
};
struct F16 {
  using Stored = uint16_t;
  using Wide = float;
  static Wide widen(Stored x) {
    _Float16 half;
    memcpy(&half, &x, 2);
    return Wide(half);
  }
  static Stored narrow(Wide x) {
    _Float16 half = _Float16(x);
    Stored bits;
    memcpy(&bits, &half, 2);
    return bits;
  }
};

// Integers wrap; the unsigned twin avoids undefined overflow.
template <typename T> struct UnsignedOf {
  using Type = T;
};
template <> struct UnsignedOf<int8_t> {
  using Type = uint8_t;
};
template <> struct UnsignedOf<int16_t> {
  using Type = uint16_t;
};
template <> struct UnsignedOf<int32_t> {
  using Type = uint32_t;
};
template <> struct UnsignedOf<int64_t> {
  using Type = uint64_t;
};
template <typename T> constexpr bool kIsFloat = T(0.5) != T(0);

struct Sum {
  template <typename T> static T of(T a, T b) {
    using U = typename UnsignedOf<T>::Type;
    return T(U(a) + U(b));
  }
};
struct Prod {
  template <typename T> static T of(T a, T b) {
    using U = typename UnsignedOf<T>::Type;
    if constexpr (sizeof(T) == 2) // uint16_t would be promoted to int
      return T(uint16_t(uint32_t(U(a)) * uint32_t(U(b))));
    else
      return T(U(a) * U(b));
  }
};
struct Max { // NaN wins; +0 is larger than -0
  template <typename T> static T of(T a, T b) {
    if constexpr (!kIsFloat<T>) {
      return a > b ? a : b;
    } else {
      T larger = a > b ? a : b;
      T equal = a + b; // of +0 and -0: +0; of equal values: not used
      larger = (a == T(0) && b == T(0)) ? equal : larger;
      return a != a ? a : b != b ? b : larger;
    }
  }
};
struct Min {
  template <typename T> static T of(T a, T b) {
    if constexpr (!kIsFloat<T>) {
      return a < b ? a : b;
    } else {
      T smaller = a < b ? a : b;
      T equal = -((-a) + (-b)); // of +0 and -0: -0
      smaller = (a == T(0) && b == T(0)) ? equal : smaller;
      return a != a ? a : b != b ? b : smaller;
    }
  }
};
struct MaxNum { // a number wins over NaN
  template <typename T> static T of(T a, T b) {
    if constexpr (!kIsFloat<T>)
      return a > b ? a : b;
    else
      return a != a ? b : b != b ? a : Max::of(a, b);
  }
};
struct MinNum {
  template <typename T> static T of(T a, T b) {
    if constexpr (!kIsFloat<T>)
      return a < b ? a : b;
    else
      return a != a ? b : b != b ? a : Min::of(a, b);
  }
};
struct UMax {
  template <typename T> static T of(T a, T b) {
    using U = typename UnsignedOf<T>::Type;
    return U(a) > U(b) ? a : b;
  }
};
struct UMin {
  template <typename T> static T of(T a, T b) {
    using U = typename UnsignedOf<T>::Type;
    return U(a) < U(b) ? a : b;
  }
};
struct And {
  template <typename T> static T of(T a, T b) { return T(a & b); }
};
struct Or {
  template <typename T> static T of(T a, T b) { return T(a | b); }
};
struct Xor {
  template <typename T> static T of(T a, T b) { return T(a ^ b); }
};

/// Few inputs: all in registers, one pass.
template <typename Type, typename Op, size_t n>
void reduceFew(typename Type::Stored *out,
               const typename Type::Stored *const *in, size_t count) {
  const typename Type::Stored *a = in[0], *b = in[1];
  const typename Type::Stored *c = n > 2 ? in[2] : nullptr;
  const typename Type::Stored *d = n > 3 ? in[3] : nullptr;
  CLEAVE_INDEPENDENT
  for (size_t i = 0; i < count; ++i) {
    auto value = Op::of(Type::widen(a[i]), Type::widen(b[i]));
    if constexpr (n > 2)
      value = Op::of(value, Type::widen(c[i]));
    if constexpr (n > 3)
      value = Op::of(value, Type::widen(d[i]));
    out[i] = Type::narrow(value);
  }
}

/// Many inputs: partial results of one block in the first-level cache.
template <typename Type, typename Op>
void reduceBlock(typename Type::Stored *out,
                 const typename Type::Stored *const *in, size_t numInputs,
                 size_t begin, size_t size) {
  typename Type::Wide partial[kBlock];
  const typename Type::Stored *first = in[0] + begin;
  for (size_t i = 0; i < size; ++i)
    partial[i] = Type::widen(first[i]);
  for (size_t k = 1; k < numInputs; ++k) {
    const typename Type::Stored *next = in[k] + begin;
    for (size_t i = 0; i < size; ++i)
      partial[i] = Op::of(partial[i], Type::widen(next[i]));
  }
  for (size_t i = 0; i < size; ++i)
    out[begin + i] = Type::narrow(partial[i]);
}

template <typename Type, typename Op>
void reduce(void *outBytes, const void *const *inBytes, size_t numInputs,
            size_t count) {
  using Stored = typename Type::Stored;
  Stored *out = static_cast<Stored *>(outBytes);
  const Stored *const *in = reinterpret_cast<const Stored *const *>(inBytes);
  switch (numInputs) {
  case 2:
    return reduceFew<Type, Op, 2>(out, in, count);
  case 3:
    return reduceFew<Type, Op, 3>(out, in, count);
  case 4:
    return reduceFew<Type, Op, 4>(out, in, count);
  default:
    for (size_t begin = 0; begin < count; begin += kBlock)
      reduceBlock<Type, Op>(out, in, numInputs, begin,
                            count - begin < kBlock ? count - begin : kBlock);
  }
}

template <typename Type> cleave::rt::ReduceFn pickFloat(uint32_t reduction) {
  switch (reduction) {
  case CLEAVE_SUM:
    return reduce<Type, Sum>;
  case CLEAVE_PROD:
    return reduce<Type, Prod>;
  case CLEAVE_MAX:
  case CLEAVE_UMAX:
    return reduce<Type, Max>;
  case CLEAVE_MIN:
  case CLEAVE_UMIN:
    return reduce<Type, Min>;
  case CLEAVE_MAXNUM:
    return reduce<Type, MaxNum>;
  case CLEAVE_MINNUM:
    return reduce<Type, MinNum>;
  default:
    return nullptr;
  }
}

template <typename T> cleave::rt::ReduceFn pickInteger(uint32_t reduction) {
  switch (reduction) {
  case CLEAVE_SUM:
    return reduce<Plain<T>, Sum>;
  case CLEAVE_PROD:
    return reduce<Plain<T>, Prod>;
  case CLEAVE_MAX:
  case CLEAVE_MAXNUM:
    return reduce<Plain<T>, Max>;
  case CLEAVE_MIN:
  case CLEAVE_MINNUM:
    return reduce<Plain<T>, Min>;
  case CLEAVE_UMAX:
    return reduce<Plain<T>, UMax>;
  case CLEAVE_UMIN:
    return reduce<Plain<T>, UMin>;
  case CLEAVE_AND:
    return reduce<Plain<T>, And>;
  case CLEAVE_OR:
    return reduce<Plain<T>, Or>;
  case CLEAVE_XOR:
    return reduce<Plain<T>, Xor>;
  default:
    return nullptr;
  }
}

cleave::rt::ReduceFn pickBoolean(uint32_t reduction) {
  switch (reduction) {
  case CLEAVE_SUM:
  case CLEAVE_XOR:
    return reduce<Plain<uint8_t>, Xor>;
  case CLEAVE_PROD:
  case CLEAVE_AND:
  case CLEAVE_MAX:
  case CLEAVE_MAXNUM:
  case CLEAVE_UMIN:
    return reduce<Plain<uint8_t>, And>;
  case CLEAVE_OR:
  case CLEAVE_MIN:
  case CLEAVE_MINNUM:
  case CLEAVE_UMAX:
    return reduce<Plain<uint8_t>, Or>;
  default:
    return nullptr;
  }
}

cleave::rt::ReduceFn pick(uint32_t dtype, uint32_t reduction) {
  switch (dtype) {
  case CLEAVE_F32:
    return pickFloat<Plain<float>>(reduction);
  case CLEAVE_F64:
    return pickFloat<Plain<double>>(reduction);
  case CLEAVE_BF16:
    return pickFloat<Bf16>(reduction);
  case CLEAVE_F16:
    return pickFloat<F16>(reduction);
  case CLEAVE_I8:
    return pickInteger<int8_t>(reduction);
  case CLEAVE_I16:
    return pickInteger<int16_t>(reduction);
  case CLEAVE_I32:
    return pickInteger<int32_t>(reduction);
  case CLEAVE_I64:
    return pickInteger<int64_t>(reduction);
  case CLEAVE_I1:
    return pickBoolean(reduction);
  default:
    return nullptr;
  }
}

} // namespace

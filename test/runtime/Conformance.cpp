//===- Conformance.cpp - What every backend must compute ------------------===//
#include "test/runtime/Conformance.h"
#include "runtime/support/Dtype.h"

#include <algorithm>
#include <cstring>
#include <random>

namespace cleave::rt::test {

namespace {

using Random = std::mt19937_64;

int64_t draw(Random &random, int64_t low, int64_t high) {
  return low + int64_t(random() % uint64_t(high - low + 1));
}

//===----------------------------------------------------------------------===//
// Elements: small whole numbers, exact in every type
//===----------------------------------------------------------------------===//

void storeNumber(char *at, uint32_t dtype, int64_t value) {
  auto put = [&](auto typed) { std::memcpy(at, &typed, sizeof(typed)); };
  switch (dtype) {
  case CLEAVE_F32:
    return put(float(value));
  case CLEAVE_BF16:
    return put(floatToBf16(float(value)));
  case CLEAVE_F16:
    return put(floatToF16(float(value)));
  case CLEAVE_F64:
    return put(double(value));
  case CLEAVE_I32:
    return put(int32_t(value));
  case CLEAVE_I64:
    return put(value);
  case CLEAVE_I16:
    return put(int16_t(value));
  case CLEAVE_I8:
    return put(int8_t(value));
  default:
    return put(uint8_t(value & 1));
  }
}

/// What rank `rank` puts at element `i`.
int64_t valueAt(int64_t rank, int64_t i, int64_t limit) {
  uint64_t x = uint64_t(rank + 1) * 0x9e3779b97f4a7c15ull + uint64_t(i);
  x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9ull;
  return int64_t((x >> 33) % uint64_t(limit));
}

int64_t combine(uint32_t reduction, uint32_t dtype, int64_t a, int64_t b) {
  bool isBit = dtype == CLEAVE_I1;
  switch (reduction) {
  case CLEAVE_SUM:
    return isBit ? (a ^ b) : a + b;
  case CLEAVE_PROD:
    return a * b;
  case CLEAVE_MAX:
  case CLEAVE_MAXNUM:
    return isBit ? (a & b) : std::max(a, b);
  case CLEAVE_MIN:
  case CLEAVE_MINNUM:
    return isBit ? (a | b) : std::min(a, b);
  case CLEAVE_UMAX:
    return std::max(a, b);
  case CLEAVE_UMIN:
    return std::min(a, b);
  case CLEAVE_AND:
    return a & b;
  case CLEAVE_OR:
    return a | b;
  default:
    return a ^ b;
  }
}

//===----------------------------------------------------------------------===//
// Groups, from the text of abi.h
//===----------------------------------------------------------------------===//

struct Geometry {
  const CleaveProgram &program;

  int64_t coordinate(int64_t rank, int64_t axis) const {
    int64_t position = 0;
    while (program.ranks[position] != rank)
      ++position;
    for (int64_t a = program.numAxes - 1; a > axis; --a)
      position /= program.axisSizes[a];
    return position % program.axisSizes[axis];
  }
  int64_t digit(int64_t rank, const CleaveAxisRef &ref) const {
    int64_t size = program.axisSizes[ref.axis];
    return coordinate(rank, ref.axis) / (size / (ref.pre * ref.size)) %
           ref.size;
  }
  int64_t index(int64_t rank, const CleaveAxes &axes) const {
    int64_t result = 0;
    for (int64_t i = 0; i < axes.count; ++i)
      result = result * axes.refs[i].size + digit(rank, axes.refs[i]);
    return result;
  }
  /// True when the ranks differ only in digits of axes and source. Digits are
  /// compared on the finest grid: each prime factor of each axis.
  bool sameGroup(int64_t a, int64_t b, const CleaveComm &comm) const {
    for (int64_t axis = 0; axis < program.numAxes; ++axis) {
      int64_t size = program.axisSizes[axis];
      int64_t ca = coordinate(a, axis), cb = coordinate(b, axis);
      // The test's axes have sizes whose digits are powers of one prime, or
      // are whole: walk the digits from major to minor.
      int64_t prime = size % 2 == 0 ? 2 : size % 3 == 0 ? 3 : size;
      for (int64_t pre = 1; pre < size; pre *= prime) {
        int64_t stride = size / (pre * prime);
        bool differs = ca / stride % prime != cb / stride % prime;
        if (differs && !covered(axis, pre, prime, comm.axes) &&
            !covered(axis, pre, prime, comm.source))
          return false;
      }
    }
    return true;
  }
  static bool covered(int64_t axis, int64_t pre, int64_t prime,
                      const CleaveAxes &axes) {
    for (int64_t i = 0; i < axes.count; ++i) {
      const CleaveAxisRef &ref = axes.refs[i];
      if (ref.axis == axis && ref.pre <= pre &&
          pre * prime <= ref.pre * ref.size)
        return true;
    }
    return false;
  }
  /// The group of `rank`, by index over axes, then source.
  std::vector<int64_t> group(int64_t rank, const CleaveComm &comm) const {
    std::vector<int64_t> result;
    for (int64_t r = 0; r < program.numRanks; ++r)
      if (sameGroup(rank, r, comm))
        result.push_back(r);
    std::sort(result.begin(), result.end(), [&](int64_t a, int64_t b) {
      return std::pair(index(a, comm.axes), index(a, comm.source)) <
             std::pair(index(b, comm.axes), index(b, comm.source));
    });
    return result;
  }
};

int64_t numBlocksOf(const std::vector<CleaveAxisRef> &refs) {
  int64_t product = 1;
  for (const CleaveAxisRef &ref : refs)
    product *= ref.size;
  return product;
}

//===----------------------------------------------------------------------===//
// Drawing cases
//===----------------------------------------------------------------------===//

/// All digits of the mesh, shuffled; some of them as whole axes.
std::vector<CleaveAxisRef>
drawAxes(Random &random, const CleaveProgram &program, size_t maxRefs) {
  std::vector<CleaveAxisRef> refs;
  for (int64_t a = 0; a < program.numAxes; ++a) {
    int64_t size = program.axisSizes[a];
    if ((size == 4 || size == 8) && random() % 2) {
      refs.push_back({a, 1, 2});
      refs.push_back({a, 2, size / 2});
    } else {
      refs.push_back({a, 1, size});
    }
  }
  std::shuffle(refs.begin(), refs.end(), random);
  refs.resize(std::min(refs.size(), size_t(draw(random, 1, int64_t(maxRefs)))));
  return refs;
}

TestComm drawCase(Random &random, const CleaveProgram &program) {
  TestComm c;
  CleaveComm &m = c.comm;
  m.kind = uint32_t(draw(random, CLEAVE_ALL_REDUCE, CLEAVE_REALIGN));
  m.dtype = uint32_t(draw(random, 0, 8));
  bool isFloat = m.dtype <= CLEAVE_F64;
  m.reduction = uint32_t(isFloat ? draw(random, CLEAVE_SUM, CLEAVE_MINNUM)
                                 : draw(random, CLEAVE_SUM, CLEAVE_XOR));
  c.axes = drawAxes(random, program, 3);
  int64_t n = numBlocksOf(c.axes);
  m.outer = draw(random, 1, 4);
  m.inner = random() % 3 ? draw(random, 1, 5) : draw(random, 100, 400);
  m.middle = draw(random, 1, 3);
  if (m.kind == CLEAVE_ALL_TO_ALL)
    m.inner = std::min<int64_t>(m.inner, 40);
  m.dim0 = draw(random, 0, 9);
  m.dim1 = draw(random, 1, 5);
  m.swapped = random() % 2;
  if (m.kind == CLEAVE_ALL_REDUCE || m.kind == CLEAVE_PERMUTE)
    m.dim0 = random() % 2 ? draw(random, 0, 300) : draw(random, 5000, 20000);
  if (m.kind == CLEAVE_REDUCE_SCATTER || m.kind == CLEAVE_ALL_TO_ALL)
    m.dim0 = n * draw(random, 0, 4);
  if (m.kind == CLEAVE_PERMUTE) {
    c.source = c.axes;
    std::shuffle(c.source.begin(), c.source.end(), random);
  }
  if (m.kind == CLEAVE_REALIGN) {
    c.source = random() % 2 ? c.axes : drawAxes(random, program, 3);
    m.inSize = draw(random, 1, 40);
    m.outSize = draw(random, 1, 40);
    int64_t sources = numBlocksOf(c.source);
    m.dim0 = (m.inSize + sources - 1) / sources;
    m.dim1 = (m.outSize + n - 1) / n;
    m.offset = draw(random, -8, 8);
    static constexpr int64_t strides[] = {1, 1, 1, 2, 3, -1, -2};
    m.stride = strides[random() % 7];
    if (m.stride < 0)
      m.offset += m.inSize - 1;
  }
  c.name = concat("case of kind ", m.kind, " dtype ", m.dtype, " reduction ",
                  m.reduction);
  c.cause = concat("outer ", m.outer, " dim0 ", m.dim0, " middle ", m.middle,
                   " dim1 ", m.dim1, " inner ", m.inner, " swapped ", m.swapped,
                   " in ", m.inSize, " out ", m.outSize, " offset ", m.offset,
                   " stride ", m.stride, " group of ", n);
  return c.fix();
}

//===----------------------------------------------------------------------===//
// The reference
//===----------------------------------------------------------------------===//

constexpr int64_t kKept = 1; // what `out` holds before

struct Reference {
  const CleaveComm &m;
  const Geometry &geometry;
  int64_t rank;
  std::vector<int64_t> group;
  int64_t limit; // inputs are below this

  int64_t input(int64_t member, int64_t i) const {
    return valueAt(group[size_t(member)], i, limit);
  }
  int64_t reduced(int64_t i) const {
    int64_t value = input(0, i);
    for (size_t k = 1; k < group.size(); ++k)
      value = combine(m.reduction, m.dtype, value, input(int64_t(k), i));
    return value;
  }
  int64_t inCount() const {
    switch (m.kind) {
    case CLEAVE_ALL_REDUCE:
    case CLEAVE_PERMUTE:
      return m.dim0;
    case CLEAVE_ALL_TO_ALL:
      return m.outer * m.dim0 * m.middle * m.dim1 * m.inner;
    default:
      return m.outer * m.dim0 * m.inner;
    }
  }
  int64_t outCount() const {
    int64_t n = int64_t(group.size());
    switch (m.kind) {
    case CLEAVE_ALL_GATHER:
      return inCount() * n;
    case CLEAVE_REDUCE_SCATTER:
      return inCount() / n;
    case CLEAVE_REALIGN:
      return m.outer * m.dim1 * m.inner;
    default:
      return inCount();
    }
  }
  /// Splits a flat index into indices of the given sizes.
  static std::vector<int64_t> split(int64_t flat, std::vector<int64_t> sizes) {
    std::vector<int64_t> result(sizes.size());
    for (size_t d = sizes.size(); d-- > 0;) {
      result[d] = flat % sizes[d];
      flat /= sizes[d];
    }
    return result;
  }
  int64_t me() const { return geometry.index(rank, m.axes); }

  int64_t gathered(int64_t i) const {
    int64_t n = int64_t(group.size());
    auto x = split(i, {m.outer, n, m.dim0, m.inner});
    return input(x[1], (x[0] * m.dim0 + x[2]) * m.inner + x[3]);
  }
  int64_t scattered(int64_t i) const {
    int64_t piece = m.dim0 / int64_t(group.size());
    auto x = split(i, {m.outer, piece, m.inner});
    return reduced((x[0] * m.dim0 + me() * piece + x[1]) * m.inner + x[2]);
  }
  int64_t exchanged(int64_t i) const {
    int64_t n = int64_t(group.size()), piece = m.dim0 / n;
    if (m.swapped) {
      auto x = split(i, {m.outer, n, m.dim1, m.middle, piece, m.inner});
      int64_t at = ((x[0] * m.dim1 + x[2]) * m.middle + x[3]) * m.dim0 +
                   me() * piece + x[4];
      return input(x[1], at * m.inner + x[5]);
    }
    auto x = split(i, {m.outer, piece, m.middle, n, m.dim1, m.inner});
    int64_t at =
        ((x[0] * m.dim0 + me() * piece + x[1]) * m.middle + x[2]) * m.dim1 +
        x[4];
    return input(x[3], at * m.inner + x[5]);
  }
  int64_t permuted(int64_t i) const {
    for (size_t k = 0; k < group.size(); ++k)
      if (geometry.index(group[k], m.source) == me())
        return input(int64_t(k), i);
    return -1;
  }
  /// Inputs of a realign are a global array, so that replicas agree.
  int64_t realigned(int64_t i) const {
    auto x = split(i, {m.outer, m.dim1, m.inner});
    int64_t j = me() * m.dim1 + x[1];
    int64_t g = m.offset + j * m.stride;
    if (j >= m.outSize || g < 0 || g >= m.inSize)
      return kKept;
    return globalAt(x[0], g, x[2]);
  }
  int64_t globalAt(int64_t outer, int64_t g, int64_t inner) const {
    return valueAt(-1, (outer * m.inSize + g) * m.inner + inner, limit);
  }
  int64_t ownInput(int64_t i) const {
    if (m.kind != CLEAVE_REALIGN)
      return valueAt(rank, i, limit);
    auto x = split(i, {m.outer, m.dim0, m.inner});
    int64_t g = geometry.index(rank, m.source) * m.dim0 + x[1];
    return g < m.inSize ? globalAt(x[0], g, x[2]) : 0;
  }
  int64_t output(int64_t i) const {
    switch (m.kind) {
    case CLEAVE_ALL_REDUCE:
      return reduced(i);
    case CLEAVE_ALL_GATHER:
      return gathered(i);
    case CLEAVE_REDUCE_SCATTER:
      return scattered(i);
    case CLEAVE_ALL_TO_ALL:
      return exchanged(i);
    case CLEAVE_PERMUTE:
      return permuted(i);
    default:
      return realigned(i);
    }
  }
};

/// Inputs so small that sums and products of the group stay exact in every
/// type (bf16 holds whole numbers up to 256, i8 up to 127).
int64_t limitFor(const CleaveComm &m, size_t n) {
  if (m.reduction == CLEAVE_PROD)
    return n <= 4 ? 4 : 2;
  return m.dtype == CLEAVE_I1 ? 2 : 127 / int64_t(n) + 1;
}

Status runCase(const TestComm &test, const Geometry &geometry, int64_t rank,
               Backend &backend, char *arena, bool inPlace) {
  const CleaveComm &m = test.comm;
  Reference reference{m, geometry, rank, geometry.group(rank, m), 0};
  reference.limit = limitFor(m, reference.group.size());
  int64_t e = dtypeBytes(m.dtype);
  int64_t inCount = reference.inCount(), outCount = reference.outCount();
  char *in = arena, *out = inPlace ? arena : arena + kConformanceArena / 2;
  std::vector<char> expected(size_t(outCount * e));
  for (int64_t i = 0; i < outCount; ++i) {
    storeNumber(out + i * e, m.dtype, kKept);
    storeNumber(expected.data() + i * e, m.dtype, reference.output(i));
  }
  for (int64_t i = 0; i < inCount; ++i)
    storeNumber(in + i * e, m.dtype, reference.ownInput(i));
  Mesh mesh(geometry.program);
  CommPlan plan;
  CLEAVE_RETURN_IF_ERROR(planComm(mesh, rank, m, &plan));
  if (plan.inBytes != inCount * e || plan.outBytes != outCount * e)
    return internalError(describe(m), ": wrong sizes");
  CLEAVE_RETURN_IF_ERROR(backend.run(plan, in, out));
  for (int64_t i = 0; i < outCount; ++i)
    if (std::memcmp(out + i * e, expected.data() + i * e, size_t(e)) != 0)
      return internalError("rank ", rank, ": ", describe(m), ": element ", i,
                           " of ", outCount, " is wrong");
  return Status();
}

} // namespace

std::vector<ConformanceCase> drawCases(const CleaveProgram &program,
                                       uint64_t seed, int numCases) {
  Random random(seed);
  std::vector<ConformanceCase> cases;
  cases.resize(size_t(numCases));
  for (int i = 0; i < numCases; ++i) {
    cases[i].comm = drawCase(random, program);
    cases[i].comm.cause += concat(", seed ", seed, ", number ", i);
    cases[i].comm.fix();
    cases[i].inPlace =
        cases[i].comm.comm.kind == CLEAVE_ALL_REDUCE && random() % 2;
  }
  return cases;
}

Status runConformance(const CleaveProgram &program, int64_t rank,
                      Backend &backend, char *arena,
                      const std::vector<ConformanceCase> &cases) {
  Geometry geometry{program};
  for (const ConformanceCase &each : cases)
    CLEAVE_RETURN_IF_ERROR(
        runCase(each.comm, geometry, rank, backend, arena, each.inPlace));
  return Status();
}

} // namespace cleave::rt::test

//===- Tensor.cpp - Tensors of the oracle ---------------------------------===//
#include "test/oracle/Tensor.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>

namespace cleave::oracle {

int64_t numElements(llvm::ArrayRef<int64_t> shape) {
  int64_t n = 1;
  for (int64_t size : shape)
    n *= size;
  return n;
}

Tensor::Tensor(Kind kind, llvm::ArrayRef<int64_t> shape, Scalar fill)
    : kind(kind), shape(shape), data(numElements(shape), fill) {}

Shape Tensor::strides() const {
  Shape result(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    result[i] = stride;
    stride *= shape[i];
  }
  return result;
}

Tensor tensorOf(Kind kind, llvm::ArrayRef<int64_t> shape,
                llvm::ArrayRef<double> numbers) {
  Tensor result(kind, shape);
  assert(numbers.size() == result.data.size() && "as many numbers as elements");
  for (auto [element, number] : llvm::zip(result.data, numbers))
    element =
        kind.isFloat()
            ? Scalar::ofFloat(roundTo(kind, number))
            : Scalar::ofInt(wrap(static_cast<int64_t>(number), kind.bits));
  return result;
}

bool nextIndex(Shape &index, llvm::ArrayRef<int64_t> shape) {
  for (size_t i = index.size(); i-- > 0;) {
    if (++index[i] < shape[i])
      return true;
    index[i] = 0;
  }
  return false;
}

/// First index of a rank's block in each dim.
static Shape blockStart(const Mesh &mesh, const Sharding &sharding,
                        llvm::ArrayRef<int64_t> shape, int64_t rank) {
  auto coordinates = mesh.coordinates(rank);
  Shape start;
  for (auto [size, dim] : llvm::zip_equal(shape, sharding.dims))
    start.push_back(mesh.linearIndex(dim.axes, coordinates) *
                    blockSize(size, dim));
  return start;
}

/// Calls visit(element of the whole, element of the block); -1 for the whole
/// where the block is padding.
template <typename Visit>
static void forBlock(llvm::ArrayRef<int64_t> shape,
                     llvm::ArrayRef<int64_t> start,
                     llvm::ArrayRef<int64_t> block, Visit visit) {
  if (numElements(block) == 0)
    return;
  Shape index(shape.size(), 0);
  int64_t element = 0;
  do {
    int64_t whole = 0;
    for (size_t d = 0; d < shape.size() && whole >= 0; ++d) {
      int64_t at = start[d] + index[d];
      whole = at < shape[d] ? whole * shape[d] + at : -1;
    }
    visit(whole, element++);
  } while (nextIndex(index, block));
}

std::vector<Tensor> scatter(const Mesh &mesh, const Sharding &sharding,
                            const Tensor &whole, Random &random) {
  std::vector<Tensor> result;
  Shape block = localShape(whole.shape, sharding);
  for (int64_t rank = 0; rank < mesh.numRanks(); ++rank) {
    Tensor &local = result.emplace_back(whole.kind, block);
    forBlock(whole.shape, blockStart(mesh, sharding, whole.shape, rank), block,
             [&](int64_t from, int64_t to) {
               local.data[to] =
                   from < 0 ? poison(whole.kind, random) : whole.data[from];
             });
  }
  return result;
}

static std::string indexText(llvm::ArrayRef<int64_t> shape, int64_t element) {
  Shape index(shape.size());
  for (size_t i = shape.size(); i-- > 0;) {
    index[i] = element % shape[i];
    element /= shape[i];
  }
  std::string text;
  llvm::raw_string_ostream os(text);
  os << '[';
  llvm::interleaveComma(index, os);
  os << ']';
  return text;
}

llvm::Expected<Tensor> gather(const Mesh &mesh, const Sharding &sharding,
                              llvm::ArrayRef<int64_t> shape,
                              llvm::ArrayRef<Tensor> blocks,
                              llvm::StringRef name) {
  Kind kind = blocks.front().kind;
  Tensor result(kind, shape);
  std::vector<int64_t> owner(result.data.size(), -1);
  Shape block = localShape(shape, sharding);
  std::string problem;
  for (int64_t rank = 0; rank < mesh.numRanks() && problem.empty(); ++rank) {
    const Tensor &local = blocks[rank];
    if (local.shape != block)
      return llvm::createStringError(
          "'%s' is no block of its global type as its sharding cuts it",
          name.str().c_str());
    auto visit = [&](int64_t to, int64_t from) {
      if (to < 0 || !problem.empty())
        return;
      Scalar value = local.data[from];
      if (owner[to] < 0) {
        owner[to] = rank;
        result.data[to] = value;
      } else if (!sameScalar(kind, result.data[to], value, true)) {
        llvm::raw_string_ostream(problem)
            << "copies of '" << name << "' differ at " << indexText(shape, to)
            << ": rank " << owner[to] << " has "
            << toString(kind, result.data[to]) << ", rank " << rank << " has "
            << toString(kind, value);
      }
    };
    forBlock(shape, blockStart(mesh, sharding, shape, rank), block, visit);
  }
  if (!problem.empty())
    return llvm::createStringError(problem);
  return result;
}

static bool isClose(Kind kind, Scalar a, Scalar b, double tolerance) {
  if (sameScalar(kind, a, b, false))
    return true;
  if (tolerance == 0 || !kind.isFloat())
    return false;
  return std::fabs(a.f - b.f) <= tolerance * std::fmax(1.0, std::fabs(a.f));
}

std::string compare(const Tensor &expected, const Tensor &actual,
                    double tolerance) {
  if (expected.shape != actual.shape || !(expected.kind == actual.kind))
    return "types differ";
  int64_t differing = 0, first = -1;
  for (int64_t i = 0; i < expected.size(); ++i)
    if (!isClose(expected.kind, expected.data[i], actual.data[i], tolerance)) {
      ++differing;
      first = first < 0 ? i : first;
    }
  if (differing == 0)
    return "";
  std::string text;
  llvm::raw_string_ostream(text)
      << differing << " of " << expected.size() << " elements differ, first at "
      << indexText(expected.shape, first) << ": expected "
      << toString(expected.kind, expected.data[first]) << ", got "
      << toString(expected.kind, actual.data[first]);
  return text;
}

} // namespace cleave::oracle

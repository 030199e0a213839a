//===- Tensor.h - Tensors of the oracle ------------------------*- C++ -*-===//
#ifndef CLEAVE_TEST_ORACLE_TENSOR_H
#define CLEAVE_TEST_ORACLE_TENSOR_H

#include "dialects/sharding/Sharding.h"
#include "test/oracle/Scalar.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <vector>

namespace cleave::oracle {

using Shape = llvm::SmallVector<int64_t, 4>;

/// A row-major tensor.
struct Tensor {
  Kind kind;
  Shape shape;
  std::vector<Scalar> data;

  Tensor() = default;
  Tensor(Kind kind, llvm::ArrayRef<int64_t> shape, Scalar fill = {0});
  int64_t rank() const { return shape.size(); }
  int64_t size() const { return data.size(); }
  Shape strides() const;
  int64_t dim(unsigned i) const { return shape[i]; }
};

/// For tests: a tensor of these numbers.
Tensor tensorOf(Kind kind, llvm::ArrayRef<int64_t> shape,
                llvm::ArrayRef<double> numbers);
inline constexpr Kind kF32{Kind::F32, 32};
inline constexpr Kind kI32{Kind::Int, 32};
inline constexpr Kind kI64{Kind::Int, 64};
inline constexpr Kind kI1{Kind::Int, 1};

int64_t numElements(llvm::ArrayRef<int64_t> shape);
/// Steps to the next index in row-major order; false after the last.
bool nextIndex(Shape &index, llvm::ArrayRef<int64_t> shape);

/// The block of each rank. Padding is poison, different on each rank.
std::vector<Tensor> scatter(const Mesh &mesh, const Sharding &sharding,
                            const Tensor &whole, Random &random);
/// The whole tensor from the ranks' blocks. An error if ranks that should hold
/// the same element hold different bits.
llvm::Expected<Tensor> gather(const Mesh &mesh, const Sharding &sharding,
                              llvm::ArrayRef<int64_t> shape,
                              llvm::ArrayRef<Tensor> blocks,
                              llvm::StringRef name);

/// What differs between two tensors, in words; empty if nothing does. Numbers
/// may differ by `tolerance` * max(1, |expected|).
std::string compare(const Tensor &expected, const Tensor &actual,
                    double tolerance);

} // namespace cleave::oracle

#endif // CLEAVE_TEST_ORACLE_TENSOR_H

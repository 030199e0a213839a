//===- Evaluator.h - What a kernel means, slowly ----------------*- C++ -*-===//
// Interprets a kernel function op by op, each element in the precision of its
// type. The reference of every kernel test; shares no code with the compiler.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_TEST_PASSES_LOWER_KERNELS_EVALUATOR_H
#define CLEAVE_TEST_PASSES_LOWER_KERNELS_EVALUATOR_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <cstdint>
#include <string>
#include <vector>

namespace cleave::kernels::test {

/// One element: `d` where the type is a float, else `i`.
struct Scalar {
  double d = 0;
  int64_t i = 0;
};

/// A tensor, row-major, or a scalar (rank 0, `isScalar`).
struct Datum {
  mlir::Type element;
  std::vector<int64_t> shape;
  std::vector<Scalar> data;
  bool isScalar = false;
};

/// A value of `type` with all elements zero.
Datum makeDatum(mlir::Type type);

/// Rounds to the precision of `type`, or wraps to its width.
Scalar roundTo(mlir::Type type, Scalar value);

/// Results of `kernel` on `arguments`. Returns the message of what it cannot
/// interpret in `error`.
std::vector<Datum> evaluate(mlir::func::FuncOp kernel,
                            std::vector<Datum> arguments, std::string &error);

} // namespace cleave::kernels::test

#endif // CLEAVE_TEST_PASSES_LOWER_KERNELS_EVALUATOR_H

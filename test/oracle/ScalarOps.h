//===- ScalarOps.h - What arith and math ops compute -----------*- C++ -*-===//
#ifndef CLEAVE_TEST_ORACLE_SCALAROPS_H
#define CLEAVE_TEST_ORACLE_SCALAROPS_H

#include "mlir/IR/Operation.h"
#include "test/oracle/Scalar.h"
#include "llvm/ADT/StringRef.h"

namespace cleave::oracle {

struct ScalarOp;
/// Computes one op. A result is wrapped or rounded by the caller. Writes to
/// `error` what would trap on a CPU.
using ScalarFunction = Scalar (*)(const ScalarOp &op, const Scalar *args,
                                  std::string &error);

/// An arith or math op with the types it works on.
struct ScalarOp {
  ScalarFunction function = nullptr;
  Kind in, out;
  int64_t predicate = 0;

  Scalar operator()(const Scalar *args, std::string &error) const {
    Scalar result = function(*this, args, error);
    if (out.isFloat())
      return Scalar::ofFloat(roundTo(out, result.f));
    return Scalar::ofInt(wrap(result.i, out.bits));
  }
};

/// None for ops the oracle does not know. Tensors count as their elements.
std::optional<ScalarOp> scalarOp(mlir::Operation *op);

} // namespace cleave::oracle

#endif // CLEAVE_TEST_ORACLE_SCALAROPS_H

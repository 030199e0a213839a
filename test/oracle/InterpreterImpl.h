//===- InterpreterImpl.h - Shared by the interpreter's files ---*- C++ -*-===//
#ifndef CLEAVE_TEST_ORACLE_INTERPRETERIMPL_H
#define CLEAVE_TEST_ORACLE_INTERPRETERIMPL_H

#include "test/oracle/Interpreter.h"

namespace cleave::oracle {

/// Where an operand's element lies, as a function of the loop indices.
struct Access {
  /// offset = base + sum of coefficients * loop index, if all is linear.
  bool isLinear = true;
  int64_t base = 0;
  Shape coefficients;
  mlir::AffineMap map;
};

struct Interpreter::LinalgPlan {
  Shape ranges;
  llvm::SmallVector<Access, 4> accesses;
  Body *body = nullptr;
};

} // namespace cleave::oracle

#endif // CLEAVE_TEST_ORACLE_INTERPRETERIMPL_H

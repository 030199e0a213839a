//===- Programs.h - Programs as text, run in tests -------------*- C++ -*-===//
#ifndef CLEAVE_TEST_ORACLE_PROGRAMS_H
#define CLEAVE_TEST_ORACLE_PROGRAMS_H

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Parser/Parser.h"
#include "test/oracle/Case.h"
#include "test/oracle/Generator.h"
#include "test/oracle/Interpreter.h"
#include "gtest/gtest.h"

namespace cleave::oracle {

/// A context with the dialects of programs.
class ProgramTest : public ::testing::Test {
protected:
  ProgramTest() {
    mlir::DialectRegistry registry;
    registerOracleDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }
  mlir::OwningOpRef<mlir::ModuleOp> parse(llvm::StringRef text) {
    mlir::ParserConfig config(&context);
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, config);
    EXPECT_TRUE(module);
    return module;
  }
  /// Results of @f on whole tensors; empty after an error, which is in `error`.
  std::vector<Tensor> run(llvm::StringRef text, llvm::ArrayRef<Tensor> inputs) {
    auto module = parse(text);
    return unwrap(Interpreter(*module).run("f", inputs));
  }
  std::vector<Tensor> runPartitioned(llvm::StringRef text,
                                     llvm::ArrayRef<Tensor> inputs) {
    auto module = parse(text);
    return unwrap(Interpreter(*module).runPartitioned("f", inputs));
  }
  std::vector<Blocks> runBlocks(llvm::StringRef text,
                                llvm::ArrayRef<Blocks> inputs) {
    auto module = parse(text);
    return unwrap(Interpreter(*module).runBlocks("f", inputs));
  }
  template <typename T> T unwrap(llvm::Expected<T> value) {
    error.clear();
    if (value)
      return std::move(*value);
    error = llvm::toString(value.takeError());
    return {};
  }

  mlir::MLIRContext context;
  std::string error;
};

/// The elements as doubles; integers of width 1 as 0 and 1.
inline std::vector<double> numbers(const Tensor &tensor) {
  std::vector<double> result;
  for (Scalar element : tensor.data)
    result.push_back(tensor.kind.isFloat()   ? element.f
                     : tensor.kind.bits == 1 ? double(element.i & 1)
                                             : double(element.i));
  return result;
}
using Numbers = std::vector<double>;

} // namespace cleave::oracle

#endif // CLEAVE_TEST_ORACLE_PROGRAMS_H

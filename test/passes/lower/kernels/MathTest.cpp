//===- MathTest.cpp - Accuracy of math without calls ----------------------===//
#include "test/passes/lower/kernels/Harness.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace cleave::kernels;
using namespace cleave::kernels::test;

namespace {
mlir::MLIRContext &context() {
  static std::unique_ptr<mlir::MLIRContext> context = makeContext();
  return *context;
}

std::string unary(const std::string &op, const std::string &type) {
  std::string t = "tensor<1003x" + type + ">";
  return "func.func private @k(%x: " + t + ", %o: " + t + ") -> " + t +
         " {\n  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>,"
         " affine_map<(i) -> (i)>], iterator_types = [\"parallel\"]} ins(%x "
         ": " +
         t + ") outs(%o : " + t + ") {\n  ^bb0(%a: " + type + ", %b: " + type +
         "):\n    %y = " + op + " %a : " + type +
         "\n    linalg.yield %y : " + type + "\n  } -> " + t +
         "\n  return %r : " + t + "\n}\n";
}

struct Function {
  std::string op;
  double low, high, relative, absolute;
};

/// Bounds are what docs may promise: a few units in the last place of f32,
/// but where a function is near a zero or a pole.
const Function functions[] = {
    {"math.exp", -86, 88, 3e-7, 0},
    {"math.exp2", -120, 120, 1e-5, 0},
    {"math.expm1", -10, 10, 3e-6, 1e-7},
    {"math.log", 1e-6, 1e6, 1e-6, 1e-6},
    {"math.log2", 1e-6, 1e6, 2e-6, 1e-6},
    {"math.log10", 1e-6, 1e6, 2e-6, 1e-6},
    {"math.log1p", -0.9, 1e3, 2e-6, 1e-6},
    {"math.tanh", -12, 12, 2e-6, 1e-7},
    {"math.sinh", -10, 10, 1e-5, 1e-6},
    {"math.cosh", -10, 10, 1e-5, 1e-6},
    {"math.asinh", 0, 100, 1e-5, 1e-5},
    {"math.acosh", 1, 100, 1e-4, 1e-3},
    {"math.atanh", -0.9, 0.9, 1e-5, 1e-6},
    {"math.sin", -10, 10, 1e-5, 2e-6},
    {"math.cos", -10, 10, 1e-5, 2e-6},
    {"math.tan", -1.4, 1.4, 1e-5, 2e-6},
    {"math.asin", -1, 1, 1e-4, 1e-5},
    {"math.acos", -1, 1, 1e-4, 1e-5},
    {"math.atan", -50, 50, 1e-5, 1e-6},
    {"math.erf", -5, 5, 1e-5, 1e-6},
    {"math.erfc", -3, 3, 1e-4, 1e-6},
    {"math.cbrt", 0.001, 1000, 1e-5, 1e-6},
    {"math.sqrt", 0, 1000, 1e-7, 0},
    {"math.rsqrt", 1e-3, 1e3, 1e-6, 0},
    {"math.floor", -100, 100, 0, 0},
    {"math.ceil", -100, 100, 0, 0},
    {"math.round", -100, 100, 0, 0},
    {"math.roundeven", -100, 100, 0, 0},
    {"math.trunc", -100, 100, 0, 0},
    {"math.absf", -100, 100, 0, 0},
};

std::string check(const Function &f, const std::string &type, double relative,
                  double absolute, bool allowCalls) {
  auto module = parse(context(), unary(f.op, type));
  auto kernel = firstKernel(*module);
  std::vector<Datum> arguments;
  for (mlir::Type t : kernel.getArgumentTypes())
    arguments.push_back(makeDatum(t));
  auto &data = arguments[0].data;
  for (size_t i = 0; i < data.size(); ++i) {
    data[i].d = f.low + (f.high - f.low) * double(i) / (data.size() - 1);
    data[i] = roundTo(arguments[0].element, data[i]);
  }
  CheckOptions options;
  options.tolerance = {absolute, relative};
  options.allowCalls = allowCalls;
  return checkKernelOn(kernel, arguments, options);
}

TEST(Math, SinglePrecisionNeedsNoCalls) {
  for (const Function &f : functions)
    EXPECT_EQ(check(f, "f32", f.relative, f.absolute, false), "") << f.op;
}

TEST(Math, HalfPrecisionNeedsNoCalls) {
  for (const Function &f : functions) {
    Function narrow = f;
    narrow.low = std::max(f.low, -8.0);
    narrow.high = std::min(f.high, 8.0);
    EXPECT_EQ(check(narrow, "bf16", 0.01, 0.01, false), "") << f.op;
    EXPECT_EQ(check(narrow, "f16", 0.002, 0.002, false), "") << f.op;
  }
}

TEST(Math, DoublePrecisionMayCall) {
  for (const Function &f : functions)
    EXPECT_EQ(check(f, "f64", 1e-13, 1e-13, true), "") << f.op;
}

/// NaN stays NaN, infinities give limits, and a masked score gives exactly 0.
TEST(Math, ExpAtItsEdges) {
  auto module = parse(context(), unary("math.exp", "f32"));
  auto kernel = firstKernel(*module);
  std::vector<Datum> arguments;
  for (mlir::Type t : kernel.getArgumentTypes())
    arguments.push_back(makeDatum(t));
  const double edges[] = {NAN, INFINITY, -INFINITY, -200, 200, 0, -0.0, 88.7};
  for (size_t i = 0; i < arguments[0].data.size(); ++i)
    arguments[0].data[i].d = edges[i % 8];
  CheckOptions options;
  options.tolerance = {1e-37, 3e-7};
  EXPECT_EQ(checkKernelOn(kernel, arguments, options), "");
}

/// maximumf gives NaN for NaN; maxnumf gives the other operand.
TEST(Math, ExtremaKeepNaN) {
  for (const char *op : {"maximumf", "minimumf", "maxnumf", "minnumf"}) {
    std::string text =
        "func.func private @k(%x: tensor<3x37xf32>, %o: tensor<3xf32>) -> "
        "tensor<3xf32> {\n  %i = arith.constant -1.0 : f32\n  %f = "
        "linalg.fill ins(%i : f32) outs(%o : tensor<3xf32>) -> tensor<3xf32>"
        "\n  %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, "
        "j)>, affine_map<(i, j) -> (i)>], iterator_types = [\"parallel\", "
        "\"reduction\"]} ins(%x : tensor<3x37xf32>) outs(%f : tensor<3xf32>) "
        "{\n  ^bb0(%a: f32, %b: f32):\n    %m = arith." +
        std::string(op) +
        " %a, %b : f32\n    linalg.yield %m : f32\n  } -> tensor<3xf32>\n  "
        "return %r : tensor<3xf32>\n}\n";
    auto module = parse(context(), text);
    auto kernel = firstKernel(*module);
    for (size_t at : {0, 7, 31, 36}) {
      std::vector<Datum> arguments;
      for (mlir::Type t : kernel.getArgumentTypes())
        arguments.push_back(makeDatum(t));
      for (size_t i = 0; i < arguments[0].data.size(); ++i)
        arguments[0].data[i].d = double(i % 11) - 5;
      arguments[0].data[at].d = NAN;
      for (size_t i = 37; i < 74; ++i)
        arguments[0].data[i].d = NAN;
      EXPECT_EQ(checkKernelOn(kernel, arguments, {}), "") << op << " " << at;
    }
  }
}
} // namespace

//===- KernelsTest.cpp - Compiled kernels against the evaluator -----------===//
#include "test/passes/lower/kernels/Harness.h"
#include "test/passes/lower/kernels/RandomKernel.h"
#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>

using namespace cleave::kernels;
using namespace cleave::kernels::test;

namespace {
class Kernels : public ::testing::Test {
protected:
  static mlir::MLIRContext &context() {
    static std::unique_ptr<mlir::MLIRContext> context = makeContext();
    return *context;
  }
  static void expectRight(llvm::StringRef text, CheckOptions options = {}) {
    for (IsaLevel level : CpuIsa::all()) {
      options.isa = level;
      EXPECT_EQ(checkKernel(context(), text, options), "")
          << text.str() << "\nfor " << CpuIsa::get(level).name().str();
    }
  }
};

TEST_F(Kernels, AddsTwoTensors) {
  expectRight(R"(
    func.func private @k(%a: tensor<7x13xf32>, %b: tensor<7x13xf32>,
                         %o: tensor<7x13xf32>) -> tensor<7x13xf32> {
      %e = tensor.empty() : tensor<7x13xf32>
      %r = linalg.add ins(%a, %b : tensor<7x13xf32>, tensor<7x13xf32>)
                      outs(%e : tensor<7x13xf32>) -> tensor<7x13xf32>
      return %r : tensor<7x13xf32>
    })");
}

TEST_F(Kernels, MultipliesMatrices) {
  expectRight(R"(
    func.func private @k(%a: tensor<7x5xf32>, %b: tensor<5x13xf32>,
                         %o: tensor<7x13xf32>) -> tensor<7x13xf32> {
      %z = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<7x13xf32>
      %f = linalg.fill ins(%z : f32) outs(%e : tensor<7x13xf32>)
          -> tensor<7x13xf32>
      %r = linalg.matmul ins(%a, %b : tensor<7x5xf32>, tensor<5x13xf32>)
                         outs(%f : tensor<7x13xf32>) -> tensor<7x13xf32>
      return %r : tensor<7x13xf32>
    })");
}

/// CLEAVE_KERNEL_SEEDS=first:count draws others than these.
TEST_F(Kernels, RandomKernelsAreRight) {
  uint64_t first = 1, count = 200;
  if (const char *text = std::getenv("CLEAVE_KERNEL_SEEDS"))
    std::sscanf(text, "%lu:%lu", &first, &count);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    std::string text = randomKernel(seed);
    CheckOptions options;
    options.seed = seed;
    // Sums of bf16 and f16 are kept in f32 by the compiler only.
    if (text.find("f16") != std::string::npos)
      options.tolerance = {0.5, 0.05};
    ASSERT_EQ(checkKernel(context(), text, options), "")
        << "seed " << seed << "\n"
        << text;
  }
}
} // namespace

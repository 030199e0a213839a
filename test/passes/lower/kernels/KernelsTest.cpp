//===- KernelsTest.cpp - Compiled kernels against the evaluator -----------===//
#include "mlir/IR/Diagnostics.h"
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
  uint64_t first = 1, count = 120;
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

constexpr const char *kScale = R"(
  func.func private @NAME(%a: tensor<8xf32>, %o: tensor<8xf32>)
      -> tensor<8xf32> {
    %c = arith.constant VALUE : f32
    %r = linalg.generic {
        indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
        iterator_types = ["parallel"]}
        ins(%a : tensor<8xf32>) outs(%o : tensor<8xf32>) {
      ^bb0(%x: f32, %y: f32):
        %p = arith.mulf %x, %c : f32
        linalg.yield %p : f32
    } -> tensor<8xf32>
    return %r : tensor<8xf32>
  })";

std::string scale(const std::string &name, const std::string &value) {
  std::string text = kScale;
  text.replace(text.find("NAME"), 4, name);
  text.replace(text.find("VALUE"), 5, value);
  return text;
}

/// Names do not count, constants do.
TEST_F(Kernels, HashesStructure) {
  auto hash = [&](const std::string &text) {
    auto module = parse(context(), text);
    return hashKernel(firstKernel(*module));
  };
  EXPECT_EQ(hash(scale("k", "2.0")), hash(scale("other", "2.0")));
  EXPECT_NE(hash(scale("k", "2.0")), hash(scale("k", "3.0")));
  EXPECT_EQ(hash(scale("k", "2.0")).size(), 32u);
}

TEST_F(Kernels, CacheKeysTellInstructionSetsApart) {
  auto module = parse(context(), scale("k", "2.0"));
  auto kernel = firstKernel(*module);
  EXPECT_NE(cacheKey(kernel, CpuIsa::get(IsaLevel::avx2)),
            cacheKey(kernel, CpuIsa::get(IsaLevel::avx512)));
}

TEST_F(Kernels, ElementwiseMayReuseItsInput) {
  auto module = parse(context(), scale("k", "2.0"));
  EXPECT_TRUE(
      mayReuseInput(firstKernel(*module), 0, 0, CpuIsa::get(IsaLevel::avx2)));
}

TEST_F(Kernels, TransposeMayNotReuseItsInput) {
  auto module = parse(context(), R"(
    func.func private @k(%a: tensor<5x5xf32>, %o: tensor<5x5xf32>)
        -> tensor<5x5xf32> {
      %r = linalg.transpose ins(%a : tensor<5x5xf32>)
                            outs(%o : tensor<5x5xf32>) permutation = [1, 0]
      return %r : tensor<5x5xf32>
    })");
  EXPECT_FALSE(
      mayReuseInput(firstKernel(*module), 0, 0, CpuIsa::get(IsaLevel::avx2)));
}

/// Several kernels of one module keep their constants apart.
TEST_F(Kernels, LowersIntoItsModule) {
  auto module = parse(context(), scale("k", "2.0") + scale("l", "3.0"));
  CpuIsa isa = CpuIsa::get(IsaLevel::avx2);
  while (!module->getOps<mlir::func::FuncOp>().empty())
    ASSERT_TRUE(succeeded(lowerKernel(firstKernel(*module), isa)));
  llvm::SmallVector<char, 0> object;
  ASSERT_TRUE(succeeded(compileModule(*module, isa, object)));
  EXPECT_FALSE(object.empty());
}

/// A full-size temporary that cannot be fused away is asked for.
TEST_F(Kernels, LargeTemporariesAreDeclared) {
  auto module = parse(context(), R"(
    func.func private @k(%a: tensor<300x300xf32>, %o: tensor<300x300xf32>)
        -> tensor<300x300xf32> {
      %e = tensor.empty() : tensor<300x300xf32>
      %t = linalg.exp ins(%a : tensor<300x300xf32>)
                      outs(%e : tensor<300x300xf32>) -> tensor<300x300xf32>
      %p = tensor.empty() : tensor<300x300xf32>
      %s = linalg.matmul ins(%t, %t : tensor<300x300xf32>,
                                      tensor<300x300xf32>)
                         outs(%p : tensor<300x300xf32>) -> tensor<300x300xf32>
      return %s : tensor<300x300xf32>
    })");
  auto bytes = planScratch(firstKernel(*module), CpuIsa::get(IsaLevel::avx2));
  ASSERT_TRUE(succeeded(bytes));
  EXPECT_GE(*bytes, 300 * 300 * 4);
}

std::string messageOf(mlir::MLIRContext &context, const std::string &text) {
  std::string message;
  mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &d) {
    message += d.str();
    return mlir::success();
  });
  auto module = parse(context, text);
  if (succeeded(compileKernel(firstKernel(*module), "k",
                              CpuIsa::get(IsaLevel::avx2))))
    return "compiles";
  return message;
}

TEST_F(Kernels, RejectsDynamicShapes) {
  EXPECT_EQ(messageOf(context(), "func.func private @k(%a: tensor<?xf32>, %o: "
                                 "tensor<?xf32>) -> tensor<?xf32> {\n return "
                                 "%a : tensor<?xf32>\n}"),
            "'func.func' op has an argument of type 'tensor<?xf32>'; kernels "
            "take static tensors and scalars");
}

TEST_F(Kernels, RejectsMissingDestinations) {
  EXPECT_EQ(messageOf(context(), "func.func private @k(%a: tensor<4xf32>) -> "
                                 "(tensor<4xf32>, tensor<4xf32>) {\n return "
                                 "%a, %a : tensor<4xf32>, tensor<4xf32>\n}"),
            "'func.func' op has 2 results but only 1 arguments; each result "
            "needs a destination");
}

/// The sum is computed beside the carried buffer and copied into it.
TEST_F(Kernels, LoopsCarryTensors) {
  expectRight(R"(
    func.func private @k(%a: tensor<4x33xf32>, %o: tensor<33xf32>) -> tensor<33xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<33xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<33xf32>) -> tensor<33xf32>
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%acc = %f) -> tensor<33xf32> {
    %s = tensor.extract_slice %a[%i, 0] [1, 33] [1, 1] : tensor<4x33xf32> to tensor<33xf32>
    %e2 = tensor.empty() : tensor<33xf32>
    %n = linalg.add ins(%s, %acc : tensor<33xf32>, tensor<33xf32>) outs(%e2 : tensor<33xf32>) -> tensor<33xf32>
    scf.yield %n : tensor<33xf32>
  }
  return %r : tensor<33xf32>
})");
}

TEST_F(Kernels, LoopsExchangeTensors) {
  expectRight(R"(
    func.func private @k(%a: tensor<33xf32>, %b: tensor<33xf32>, %o: tensor<33xf32>, %p: tensor<33xf32>) -> (tensor<33xf32>, tensor<33xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r:2 = scf.for %i = %c0 to %c3 step %c1
      iter_args(%x = %a, %y = %b) -> (tensor<33xf32>, tensor<33xf32>) {
    scf.yield %y, %x : tensor<33xf32>, tensor<33xf32>
  }
  return %r#0, %r#1 : tensor<33xf32>, tensor<33xf32>
})");
}

/// The destination is also what the product starts from.
TEST_F(Kernels, AccumulatesIntoItsDestination) {
  expectRight(R"(
func.func private @k(%a: tensor<7x40xf32>, %b: tensor<40x33xf32>, %o: tensor<7x33xf32>) -> tensor<7x33xf32> {
  %r = linalg.matmul ins(%a, %b : tensor<7x40xf32>, tensor<40x33xf32>) outs(%o : tensor<7x33xf32>) -> tensor<7x33xf32>
  return %r : tensor<7x33xf32>
})");
}

/// A row of a cache, at a place known when the kernel runs.
TEST_F(Kernels, UpdatesOneRow) {
  expectRight(R"(
func.func private @k(%a: tensor<1x33xf32>, %row: index, %o: tensor<7x33xf32>) -> tensor<7x33xf32> {
  %r = tensor.insert_slice %a into %o[%row, 0] [1, 33] [1, 1] : tensor<1x33xf32> into tensor<7x33xf32>
  return %r : tensor<7x33xf32>
})");
}

TEST_F(Kernels, BranchesAndDividesIntegers) {
  expectRight(R"(
func.func private @k(%a: tensor<7x33xi32>, %row: index, %o: tensor<33xi32>) -> tensor<33xi32> {
  %s = tensor.extract_slice %a[%row, 0] [1, 33] [1, 1] : tensor<7x33xi32> to tensor<33xi32>
  %c3 = arith.constant 3 : i32
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%s : tensor<33xi32>) outs(%o : tensor<33xi32>) {
  ^bb0(%x: i32, %y: i32):
    %d = arith.divsi %x, %c3 : i32
    %c = arith.cmpi slt, %x, %c3 : i32
    %z = scf.if %c -> (i32) { %t = arith.addi %d, %x : i32
      scf.yield %t : i32 } else { scf.yield %d : i32 }
    linalg.yield %z : i32
  } -> tensor<33xi32>
  return %r : tensor<33xi32>
})");
}
} // namespace

//===- StreamsTest.cpp - Kernels whose data no cache holds ----------------===//
// They give the numbers that kernels of small tensors give, and the code that
// memory wants: stores around the caches, reads ahead, a fence at the end.
//===----------------------------------------------------------------------===//
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

std::string replaced(std::string text, const std::string &from,
                     const std::string &to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos;
       at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

/// y = x / sum of a row of |x|.
std::string normalise(int64_t rows, int64_t columns) {
  std::string text = R"(
    #xy = affine_map<(i, j) -> (i, j)>
    #x = affine_map<(i, j) -> (i)>
    func.func private @k(%x: FULL, %o: FULL) -> FULL {
      %z = arith.constant 0.0 : f32
      %e = tensor.empty() : ROW
      %ef = tensor.empty() : FULL
      %f = linalg.fill ins(%z : f32) outs(%e : ROW) -> ROW
      %s = linalg.generic {indexing_maps = [#xy, #x],
          iterator_types = ["parallel", "reduction"]}
          ins(%x : FULL) outs(%f : ROW) {
      ^bb0(%a: f32, %b: f32):
        %p = math.absf %a : f32
        %q = arith.addf %b, %p : f32
        linalg.yield %q : f32
      } -> ROW
      %y = linalg.generic {indexing_maps = [#xy, #x, #xy],
          iterator_types = ["parallel", "parallel"]}
          ins(%x, %s : FULL, ROW) outs(%ef : FULL) {
      ^bb0(%a: f32, %b: f32, %c: f32):
        %q = arith.divf %a, %b : f32
        linalg.yield %q : f32
      } -> FULL
      return %y : FULL
    })";
  std::string n = std::to_string(rows), m = std::to_string(columns);
  text = replaced(text, "FULL", "tensor<" + n + "x" + m + "xf32>");
  return replaced(text, "ROW", "tensor<" + n + "xf32>");
}

/// y = 2 x + 1.
std::string scale(int64_t rows, int64_t columns) {
  std::string text = R"(
    #xy = affine_map<(i, j) -> (i, j)>
    func.func private @k(%x: FULL, %o: FULL) -> FULL {
      %two = arith.constant 2.0 : f32
      %one = arith.constant 1.0 : f32
      %e = tensor.empty() : FULL
      %y = linalg.generic {indexing_maps = [#xy, #xy],
          iterator_types = ["parallel", "parallel"]}
          ins(%x : FULL) outs(%e : FULL) {
      ^bb0(%a: f32, %b: f32):
        %p = arith.mulf %a, %two : f32
        %q = arith.addf %p, %one : f32
        linalg.yield %q : f32
      } -> FULL
      return %y : FULL
    })";
  return replaced(text, "FULL",
                  "tensor<" + std::to_string(rows) + "x" +
                      std::to_string(columns) + "xf32>");
}

struct Counts {
  size_t bypasses = 0, prefetches = 0, fences = 0;
};

size_t countOf(const std::string &text, const std::string &word) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at)
    ++count;
  return count;
}

Counts codeOf(const std::string &kernel, IsaLevel level) {
  CpuIsa isa = CpuIsa::get(level);
  auto module = parse(context(), kernel);
  llvm::SmallVector<char, 0> text;
  if (failed(lowerKernel(firstKernel(*module), isa)) ||
      failed(emitAssembly(*module, isa, text)))
    return {};
  std::string assembly(text.data(), text.size());
  return {countOf(assembly, "vmovntp"), countOf(assembly, "prefetcht0"),
          countOf(assembly, "sfence")};
}

/// Runs a kernel on x[i] = the last digits of i, and compares each row.
template <typename Expected>
void expectRows(const std::string &text, int64_t rows, int64_t columns,
                Expected expected) {
  Buffer x(rows * columns * 4), y(rows * columns * 4);
  auto *from = static_cast<float *>(x.data());
  auto *to = static_cast<float *>(y.data());
  for (int64_t i = 0; i < rows * columns; ++i)
    from[i] = float(i % 509) - 254;
  for (IsaLevel level : CpuIsa::all()) {
    CpuIsa isa = CpuIsa::get(level);
    if (!runsHere(isa))
      continue;
    auto module = parse(context(), text);
    auto compiled = compileKernel(firstKernel(*module), "k", isa);
    ASSERT_TRUE(succeeded(compiled));
    auto loaded = Loaded::load(compiled->object);
    Buffer scratch(compiled->info.scratchBytes);
    std::fill(to, to + rows * columns, -7.0f);
    call(loaded->lookup("k"),
         {reinterpret_cast<int64_t>(from), reinterpret_cast<int64_t>(to),
          reinterpret_cast<int64_t>(scratch.data())});
    EXPECT_TRUE(x.guardsIntact() && y.guardsIntact());
    for (int64_t r = 0; r < rows; ++r)
      ASSERT_TRUE(expected(from + r * columns, to + r * columns))
          << "row " << r << " for " << isa.name().str();
  }
}

TEST(Streams, RowsAreRight) {
  // 1999 is odd: no row but the first starts at a cache line.
  for (int64_t columns : {2048, 1999}) {
    int64_t rows = 4500;
    expectRows(normalise(rows, columns), rows, columns,
               [&](const float *x, const float *y) {
                 float sum = 0; // of integers: exact
                 for (int64_t i = 0; i < columns; ++i)
                   sum += std::fabs(x[i]);
                 for (int64_t i = 0; i < columns; ++i)
                   if (y[i] != x[i] / sum)
                     return false;
                 return true;
               });
  }
}

TEST(Streams, SingleLoopsAreRight) {
  int64_t rows = 9001, columns = 1024;
  expectRows(scale(rows, columns), rows, columns,
             [&](const float *x, const float *y) {
               for (int64_t i = 0; i < columns; ++i)
                 if (y[i] != 2 * x[i] + 1)
                   return false;
               return true;
             });
}

TEST(Streams, LargeKernelsGoAroundTheCaches) {
  for (IsaLevel level : {IsaLevel::avx2, IsaLevel::avx512})
    for (const std::string &text : {normalise(4500, 2048), scale(9001, 1024)}) {
      Counts counts = codeOf(text, level);
      EXPECT_GT(counts.bypasses, 0u);
      EXPECT_GT(counts.prefetches, 0u);
      EXPECT_EQ(counts.fences, 1u);
    }
}

TEST(Streams, SmallKernelsUseTheCaches) {
  for (const std::string &text : {normalise(450, 2048), scale(901, 1024)}) {
    Counts counts = codeOf(text, IsaLevel::avx2);
    EXPECT_EQ(counts.bypasses, 0u);
    EXPECT_EQ(counts.prefetches, 0u);
    EXPECT_EQ(counts.fences, 0u);
  }
}

/// A store around the caches must be aligned: rows of an odd length are not.
TEST(Streams, UnalignedRowsUseTheCaches) {
  Counts counts = codeOf(normalise(4500, 1999), IsaLevel::avx2);
  EXPECT_EQ(counts.bypasses, 0u);
  EXPECT_GT(counts.prefetches, 0u);
}

/// A row that fills the second-level cache would push out what is computed on.
TEST(Streams, LongRowsAreNotReadAhead) {
  Counts counts = codeOf(normalise(100, 100000), IsaLevel::avx2);
  EXPECT_GT(counts.bypasses, 0u);
  EXPECT_EQ(counts.prefetches, 0u);
}
} // namespace

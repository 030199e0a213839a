//===- Models.h - The kernels that are timed, as MLIR text ------*- C++ -*-===//
#ifndef CLEAVE_BENCH_KERNELS_MODELS_H
#define CLEAVE_BENCH_KERNELS_MODELS_H

#include <cstdint>
#include <string>

namespace cleave::bench {
std::string softmax(int64_t rows, int64_t n);
std::string rmsNorm(int64_t rows, int64_t n);
std::string layerNorm(int64_t rows, int64_t n);
/// gelu(x + bias), tanh form.
std::string gelu(int64_t rows, int64_t n);
/// C = A B, `type` f32 or bf16, sums in f32.
std::string product(int64_t m, int64_t n, int64_t k, const std::string &type);
} // namespace cleave::bench

#endif // CLEAVE_BENCH_KERNELS_MODELS_H

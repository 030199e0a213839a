//===- Contenders.h - Libraries that the kernels are timed against -*- C++ -*-//
#ifndef CLEAVE_BENCH_KERNELS_CONTENDERS_H
#define CLEAVE_BENCH_KERNELS_CONTENDERS_H

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace cleave::bench {

/// A name and what to run.
using Contender = std::pair<std::string, std::function<void()>>;

/// What the libraries chose for this CPU, one line each.
std::vector<std::string> describeLibraries();

std::vector<Contender> softmaxContenders(const float *x, float *y, int64_t rows,
                                         int64_t n);
std::vector<Contender> rmsNormContenders(const float *x, const float *g,
                                         float *y, int64_t rows, int64_t n);
std::vector<Contender> layerNormContenders(const float *x, const float *g,
                                           const float *b, float *y,
                                           int64_t rows, int64_t n);
std::vector<Contender> geluContenders(const float *x, const float *b, float *y,
                                      int64_t rows, int64_t n);
/// C = A B. `a` and `b` are f32 or bf16, C is f32.
std::vector<Contender> productContenders(const void *a, const void *b, float *c,
                                         int64_t m, int64_t n, int64_t k,
                                         bool bf16);

} // namespace cleave::bench

#endif // CLEAVE_BENCH_KERNELS_CONTENDERS_H

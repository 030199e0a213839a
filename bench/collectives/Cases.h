//===- Cases.h - What both sides of the comparison measure ------*- C++ -*-===//
#ifndef CLEAVE_BENCH_COLLECTIVES_CASES_H
#define CLEAVE_BENCH_COLLECTIVES_CASES_H

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

namespace cleave::bench {

inline const char *const kKinds[] = {"all_reduce", "reduce_scatter",
                                     "all_gather", "all_to_all", "send_recv"};
inline const char *const kDtypes[] = {"f32", "bf16"};

/// What to run: the arguments of both programs.
struct Selection {
  std::vector<int64_t> sizes;
  double batchSeconds = 0.02;

  Selection(int argc, char **argv) {
    int64_t low = 1 << 10, high = 64 << 20;
    for (int i = 1; i < argc; ++i) {
      std::string argument = argv[i];
      if (argument.rfind("--min=", 0) == 0)
        low = std::atoll(argv[i] + 6);
      if (argument.rfind("--max=", 0) == 0)
        high = std::atoll(argv[i] + 6);
      if (argument.rfind("--batch=", 0) == 0)
        batchSeconds = std::atof(argv[i] + 8);
    }
    for (int64_t size = low; size <= high; size *= 4)
      sizes.push_back(size);
  }
};

inline double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

/// The best of five batches; a batch is long enough for the clock and short
/// enough to fall between disturbances. `agree` makes all ranks use the count
/// of rank 0.
inline double measure(double batchSeconds, const std::function<void()> &once,
                      const std::function<int64_t(int64_t)> &agree,
                      const std::function<void()> &barrier) {
  constexpr int kBatches = 5;
  auto batch = [&](int64_t count) {
    barrier();
    double start = now();
    for (int64_t i = 0; i < count; ++i)
      once();
    return (now() - start) / double(count);
  };
  batch(3);
  double guess = batch(3);
  int64_t count =
      agree(std::clamp<int64_t>(int64_t(batchSeconds / guess), 3, 20000));
  std::vector<double> seconds;
  for (int i = 0; i < kBatches; ++i)
    seconds.push_back(batch(count));
  return *std::min_element(seconds.begin(), seconds.end());
}

/// One line for the script.
inline void report(const char *kind, const char *dtype, int64_t ranks,
                   int64_t bytes, double seconds) {
  std::printf("%s %s %lld %lld %.9f\n", kind, dtype,
              static_cast<long long>(ranks), static_cast<long long>(bytes),
              seconds);
  std::fflush(stdout);
}

} // namespace cleave::bench

#endif // CLEAVE_BENCH_COLLECTIVES_CASES_H

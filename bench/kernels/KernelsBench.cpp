//===- KernelsBench.cpp - Kernels against libraries, one run --------------===//
// Every line: the time of our kernel, of each contender, and the ratio of the
// best contender to ours (above 1: ours is faster). All contenders of a line
// are timed in turns, so that drifts of the machine hit them alike; the least
// time of all turns counts. One thread.
//===----------------------------------------------------------------------===//
#include "bench/kernels/Contenders.h"
#include "bench/kernels/Models.h"
#include "test/passes/lower/kernels/Harness.h"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <unistd.h>

using namespace cleave::kernels;
using namespace cleave::kernels::test;
using namespace cleave::bench;

namespace {
/// A compiled kernel with its B packed where it wants that.
class Kernel {
public:
  Kernel(mlir::MLIRContext &context, const std::string &text, const CpuIsa &isa,
         const void *b = nullptr) {
    auto module = parse(context, text);
    auto kernel = firstKernel(*module);
    if (b)
      if (auto plan = planPacking(kernel, 1, isa)) {
        auto pack = buildPackKernel(*module, *plan, "pack");
        auto compiled = compileKernel(pack, "pack", isa);
        auto loadedPack = Loaded::load(compiled->object);
        int64_t width = plan->packed.getElementTypeBitWidth() / 8;
        packed.emplace_back(plan->packed.getNumElements() * width);
        Buffer scratch(compiled->info.scratchBytes);
        call(loadedPack->lookup("pack"),
             {word(b), word(packed.back().data()), word(scratch.data())});
        applyPacking(kernel, *plan);
      }
    auto compiled = compileKernel(kernel, "k", isa);
    if (failed(compiled))
      std::exit(1);
    loaded = Loaded::load(compiled->object);
    function = loaded->lookup("k");
    scratch.emplace_back(compiled->info.scratchBytes);
  }
  void operator()(std::vector<const void *> arguments) {
    std::vector<int64_t> words;
    for (const void *p : arguments)
      words.push_back(word(p));
    if (!packed.empty())
      words[1] = word(packed.back().data());
    words.push_back(word(scratch.back().data()));
    call(function, words);
  }

private:
  static int64_t word(const void *p) { return reinterpret_cast<int64_t>(p); }
  std::unique_ptr<Loaded> loaded;
  void *function = nullptr;
  std::vector<Buffer> packed, scratch;
};

struct Options {
  double seconds = 0.6; // a line, all contenders together
  std::string filter;
  IsaLevel level = IsaLevel::avx2;
};
} // namespace

/// Seconds that this thread has run: other programs on the machine disturb
/// this less than the time of day.
static double now() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

/// Least seconds of one call of each.
static std::vector<double> measure(const std::vector<Contender> &contenders,
                                   double budget) {
  std::vector<double> best(contenders.size(), 1e30);
  std::vector<int> repeats(contenders.size(), 1);
  for (size_t i = 0; i < contenders.size(); ++i) {
    contenders[i].second();
    double start = now();
    contenders[i].second();
    double once = std::max(now() - start, 1e-7);
    repeats[i] = std::max(1, int(0.002 / once));
  }
  double end = now() + budget;
  for (int round = 0; round < 5 || now() < end; ++round)
    for (size_t i = 0; i < contenders.size(); ++i) {
      double start = now();
      for (int r = 0; r < repeats[i]; ++r)
        contenders[i].second();
      best[i] = std::min(best[i], (now() - start) / repeats[i]);
    }
  return best;
}

static void report(const std::string &name, double work, const char *unit,
                   std::vector<Contender> contenders, const Options &options) {
  if (name.find(options.filter) == std::string::npos)
    return;
  std::vector<double> seconds = measure(contenders, options.seconds);
  double best = 1e30;
  for (size_t i = 1; i < seconds.size(); ++i)
    best = std::min(best, seconds[i]);
  std::printf("%-24s %9.1f us %7.1f %s", name.c_str(), seconds[0] * 1e6,
              work / seconds[0] * 1e-9, unit);
  if (seconds.size() > 1)
    std::printf("  ratio %5.2f ", best / seconds[0]);
  for (size_t i = 1; i < seconds.size(); ++i)
    std::printf(" | %s %.1f", contenders[i].first.c_str(), seconds[i] * 1e6);
  std::printf("\n");
  std::fflush(stdout);
}

static std::vector<Contender> join(Contender first,
                                   std::vector<Contender> rest) {
  rest.insert(rest.begin(), std::move(first));
  return rest;
}

static void fill(void *data, int64_t count) {
  auto *p = static_cast<float *>(data);
  for (int64_t i = 0; i < count; ++i)
    p[i] = float((i * 7919) % 1013) / 1013 - 0.5f;
}

static void rowBenches(mlir::MLIRContext &context, const Options &options,
                       int64_t rows, int64_t n) {
  CpuIsa isa = CpuIsa::get(options.level);
  Buffer x(rows * n * 4), y(rows * n * 4), g(n * 4), b(n * 4);
  fill(x.data(), rows * n);
  fill(g.data(), n);
  fill(b.data(), n);
  std::memset(y.data(), 0, rows * n * 4);
  auto *fx = static_cast<float *>(x.data()),
       *fy = static_cast<float *>(y.data()),
       *fg = static_cast<float *>(g.data()),
       *fb = static_cast<float *>(b.data());
  std::string shape = " " + std::to_string(rows) + "x" + std::to_string(n);
  double bytes = 8.0 * rows * n;
  Contender copy = {"copy", [=] { std::memcpy(fy, fx, rows * n * 4); }};
  Kernel soft(context, softmax(rows, n), isa);
  report("softmax" + shape, bytes, "GB/s",
         join({"ours", [&] { soft({fx, fy}); }},
              softmaxContenders(fx, fy, rows, n)),
         options);
  Kernel rms(context, rmsNorm(rows, n), isa);
  report("rmsnorm" + shape, bytes, "GB/s",
         join({"ours", [&] { rms({fx, fg, fy}); }},
              rmsNormContenders(fx, fg, fy, rows, n)),
         options);
  Kernel layer(context, layerNorm(rows, n), isa);
  report("layernorm" + shape, bytes, "GB/s",
         join({"ours", [&] { layer({fx, fg, fb, fy}); }},
              layerNormContenders(fx, fg, fb, fy, rows, n)),
         options);
  Kernel act(context, gelu(rows, n), isa);
  report("gelu" + shape, bytes, "GB/s",
         join({"ours", [&] { act({fx, fb, fy}); }},
              geluContenders(fx, fb, fy, rows, n)),
         options);
  report("copy" + shape, bytes, "GB/s", {copy}, options);
}

static void productBench(mlir::MLIRContext &context, const Options &options,
                         int64_t m, int64_t n, int64_t k, bool bf16) {
  std::string name = std::string(bf16 ? "bf16 " : "f32 ") + std::to_string(m) +
                     "x" + std::to_string(n) + "x" + std::to_string(k);
  if (name.find(options.filter) == std::string::npos)
    return;
  CpuIsa isa = CpuIsa::get(options.level);
  int64_t width = bf16 ? 2 : 4;
  Buffer a(m * k * width), b(k * n * width), c(m * n * 4);
  if (bf16) {
    for (auto [buffer, count] : {std::pair(&a, m * k), std::pair(&b, k * n)}) {
      auto *p = static_cast<uint16_t *>(buffer->data());
      for (int64_t i = 0; i < count; ++i)
        p[i] = uint16_t(0x3f00 + (i * 7919) % 127);
    }
  } else {
    fill(a.data(), m * k);
    fill(b.data(), k * n);
  }
  Kernel ours(context, product(m, n, k, bf16 ? "bf16" : "f32"), isa, b.data());
  report(name, 2.0 * m * n * k, "GF/s",
         join({"ours", [&] { ours({a.data(), b.data(), c.data()}); }},
              productContenders(a.data(), b.data(),
                                static_cast<float *>(c.data()), m, n, k, bf16)),
         options);
}

int main(int argc, char **argv) {
  // The libraries read these once, when they are loaded.
  if (!std::getenv("CLEAVE_BENCH_CHILD") || std::getenv("OPENBLAS_CORETYPE")) {
    setenv("CLEAVE_BENCH_CHILD", "1", 1);
    setenv("OMP_NUM_THREADS", "1", 1);
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    setenv("BLIS_NUM_THREADS", "1", 1);
    unsetenv("OPENBLAS_CORETYPE");
    execv("/proc/self/exe", argv);
  }
  Options options;
  if (argc > 1)
    options.filter = argv[1];
  if (argc > 2)
    options.seconds = std::atof(argv[2]);
  for (IsaLevel level : CpuIsa::all())
    if (runsHere(CpuIsa::get(level)))
      options.level = level;
  std::printf("our kernels: %s\n",
              CpuIsa::get(options.level).name().str().c_str());
  for (const std::string &line : describeLibraries())
    std::printf("%s\n", line.c_str());
  auto context = makeContext();
  rowBenches(*context, options, 64, 1024);
  rowBenches(*context, options, 8192, 4096);
  for (bool bf16 : {false, true}) {
    for (int64_t size : {512, 1024})
      productBench(*context, options, size, size, size, bf16);
    for (int64_t m : {1, 8, 32, 128})
      productBench(*context, options, m, 4096, 4096, bf16);
  }
  return 0;
}

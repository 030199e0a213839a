//===- Contenders.cpp - oneDNN, OpenBLAS, BLIS, plain C++ -----------------===//
// OpenBLAS and BLIS export the same names, so each is loaded by itself.
//===----------------------------------------------------------------------===//
#include "bench/kernels/Contenders.h"
#include <cstdlib>
#include <dlfcn.h>
#include <dnnl.hpp>
#include <memory>

using namespace cleave::bench;
using dnnl::memory;

extern "C" {
#define DECLARE(suffix)                                                        \
  void plain_softmax##suffix(const float *, float *, int64_t, int64_t);        \
  void plain_rmsnorm##suffix(const float *, const float *, float *, int64_t,   \
                             int64_t);                                         \
  void plain_layernorm##suffix(const float *, const float *, const float *,    \
                               float *, int64_t, int64_t);                     \
  void plain_gelu##suffix(const float *, const float *, float *, int64_t,      \
                          int64_t);
DECLARE(_gcc)
DECLARE(_clang)
#undef DECLARE
}

using Sgemm = void (*)(int, int, int, int, int, int, float, const float *, int,
                       const float *, int, float, float *, int);
using Sgemv = void (*)(int, int, int, int, float, const float *, int,
                       const float *, int, float, float *, int);

namespace {
struct Blas {
  void *handle = nullptr;
  Sgemm gemm = nullptr;
  Sgemv gemv = nullptr;
  explicit Blas(const char *file) {
    handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
      return;
    gemm = reinterpret_cast<Sgemm>(dlsym(handle, "cblas_sgemm"));
    gemv = reinterpret_cast<Sgemv>(dlsym(handle, "cblas_sgemv"));
  }
};
} // namespace

static Blas &openBlas() {
  static Blas blas("libopenblas.so.0");
  return blas;
}

static Blas &blis() {
  static Blas blas("libblis.so.4");
  return blas;
}

static dnnl::engine &engine() {
  static dnnl::engine e(dnnl::engine::kind::cpu, 0);
  return e;
}

static dnnl::stream &stream() {
  static dnnl::stream s(engine());
  return s;
}

std::vector<std::string> cleave::bench::describeLibraries() {
  std::vector<std::string> lines;
  using Name = char *(*)();
  if (void *h = openBlas().handle)
    if (auto name = reinterpret_cast<Name>(dlsym(h, "openblas_get_corename")))
      lines.push_back(std::string("OpenBLAS kernels: ") + name());
  if (void *h = blis().handle) {
    using Id = int (*)();
    using Text = const char *(*)(int);
    auto id = reinterpret_cast<Id>(dlsym(h, "bli_arch_query_id"));
    auto text = reinterpret_cast<Text>(dlsym(h, "bli_arch_string"));
    if (id && text)
      lines.push_back(std::string("BLIS kernels: ") + text(id()));
  }
  const char *isa = "other";
  switch (dnnl::get_effective_cpu_isa()) {
  case dnnl::cpu_isa::avx2:
    isa = "avx2";
    break;
  case dnnl::cpu_isa::avx512_core:
    isa = "avx512_core";
    break;
  case dnnl::cpu_isa::avx512_core_amx:
    isa = "avx512_core_amx";
    break;
  default:
    break;
  }
  lines.push_back(std::string("oneDNN kernels: ") + isa);
  return lines;
}

using Arguments = std::unordered_map<int, memory>;

/// A primitive with its arguments bound.
static Contender bind(std::string name, dnnl::primitive primitive,
                      Arguments arguments) {
  return {std::move(name), [primitive, arguments] {
            primitive.execute(stream(), arguments);
            stream().wait();
          }};
}

static memory plainMemory(memory::dims dims, memory::data_type type,
                          memory::format_tag tag, const void *data) {
  return memory({dims, type, tag}, engine(), const_cast<void *>(data));
}

static constexpr auto kF32 = memory::data_type::f32;
static constexpr auto kAB = memory::format_tag::ab;

std::vector<Contender> cleave::bench::softmaxContenders(const float *x,
                                                        float *y, int64_t rows,
                                                        int64_t n) {
  memory in = plainMemory({rows, n}, kF32, kAB, x);
  memory out = plainMemory({rows, n}, kF32, kAB, y);
  dnnl::softmax_forward::desc desc(dnnl::prop_kind::forward_inference,
                                   in.get_desc(), 1);
  dnnl::softmax_forward p(
      dnnl::softmax_forward::primitive_desc(desc, engine()));
  return {bind("onednn", p, {{DNNL_ARG_SRC, in}, {DNNL_ARG_DST, out}}),
          {"g++", [=] { plain_softmax_gcc(x, y, rows, n); }},
          {"clang", [=] { plain_softmax_clang(x, y, rows, n); }}};
}

std::vector<Contender> cleave::bench::rmsNormContenders(const float *x,
                                                        const float *g,
                                                        float *y, int64_t rows,
                                                        int64_t n) {
  return {{"g++", [=] { plain_rmsnorm_gcc(x, g, y, rows, n); }},
          {"clang", [=] { plain_rmsnorm_clang(x, g, y, rows, n); }}};
}

std::vector<Contender>
cleave::bench::layerNormContenders(const float *x, const float *g,
                                   const float *b, float *y, int64_t rows,
                                   int64_t n) {
  using Flags = dnnl::normalization_flags;
  memory in = plainMemory({rows, n}, kF32, kAB, x);
  memory out = plainMemory({rows, n}, kF32, kAB, y);
  memory scale = plainMemory({n}, kF32, memory::format_tag::a, g);
  memory shift = plainMemory({n}, kF32, memory::format_tag::a, b);
  dnnl::layer_normalization_forward::desc desc(
      dnnl::prop_kind::forward_inference, in.get_desc(), 1e-5f,
      Flags::use_scale | Flags::use_shift);
  dnnl::layer_normalization_forward p(
      dnnl::layer_normalization_forward::primitive_desc(desc, engine()));
  return {bind("onednn", p,
               {{DNNL_ARG_SRC, in},
                {DNNL_ARG_DST, out},
                {DNNL_ARG_SCALE, scale},
                {DNNL_ARG_SHIFT, shift}}),
          {"g++", [=] { plain_layernorm_gcc(x, g, b, y, rows, n); }},
          {"clang", [=] { plain_layernorm_clang(x, g, b, y, rows, n); }}};
}

std::vector<Contender> cleave::bench::geluContenders(const float *x,
                                                     const float *b, float *y,
                                                     int64_t rows, int64_t n) {
  memory in = plainMemory({rows, n}, kF32, kAB, x);
  memory out = plainMemory({rows, n}, kF32, kAB, y);
  memory bias = plainMemory({1, n}, kF32, kAB, b);
  dnnl::post_ops after;
  after.append_eltwise(1, dnnl::algorithm::eltwise_gelu_tanh, 0, 0);
  dnnl::primitive_attr attr;
  attr.set_post_ops(after);
  dnnl::binary::desc desc(dnnl::algorithm::binary_add, in.get_desc(),
                          bias.get_desc(), out.get_desc());
  dnnl::binary p(dnnl::binary::primitive_desc(desc, attr, engine()));
  return {
      bind("onednn", p,
           {{DNNL_ARG_SRC_0, in}, {DNNL_ARG_SRC_1, bias}, {DNNL_ARG_DST, out}}),
      {"g++", [=] { plain_gelu_gcc(x, b, y, rows, n); }},
      {"clang", [=] { plain_gelu_clang(x, b, y, rows, n); }}};
}

/// oneDNN with B in the layout that it likes best, packed beforehand.
static void addDnnl(std::vector<Contender> &contenders, const void *a,
                    const void *b, float *c, int64_t m, int64_t n, int64_t k,
                    bool bf16) {
  auto type = bf16 ? memory::data_type::bf16 : kF32;
  memory::desc out({m, n}, kF32, kAB), in({m, k}, type, kAB);
  memory::desc plain({k, n}, type, kAB);
  memory::desc any({k, n}, type, memory::format_tag::any);
  memory ma(in, engine(), const_cast<void *>(a));
  memory mb(plain, engine(), const_cast<void *>(b));
  memory mc(out, engine(), c);
  dnnl_status_t status;
  dnnl_primitive_desc_t test = nullptr;
  dnnl::matmul::desc packedDesc(in, any, out);
  // oneDNN has no bf16 products below AVX-512.
  status = dnnl_primitive_desc_create(&test, &packedDesc.data, nullptr,
                                      engine().get(), nullptr);
  if (status != dnnl_success)
    return;
  dnnl_primitive_desc_destroy(test);
  dnnl::matmul::primitive_desc packed(packedDesc, engine());
  memory pb(packed.weights_desc(), engine());
  dnnl::reorder(mb, pb).execute(stream(), mb, pb);
  stream().wait();
  contenders.push_back(
      bind("onednn packed", dnnl::matmul(packed),
           {{DNNL_ARG_SRC, ma}, {DNNL_ARG_WEIGHTS, pb}, {DNNL_ARG_DST, mc}}));
  dnnl::matmul::primitive_desc direct(dnnl::matmul::desc(in, plain, out),
                                      engine());
  contenders.push_back(
      bind("onednn", dnnl::matmul(direct),
           {{DNNL_ARG_SRC, ma}, {DNNL_ARG_WEIGHTS, mb}, {DNNL_ARG_DST, mc}}));
}

std::vector<Contender> cleave::bench::productContenders(const void *a,
                                                        const void *b, float *c,
                                                        int64_t m, int64_t n,
                                                        int64_t k, bool bf16) {
  std::vector<Contender> contenders;
  addDnnl(contenders, a, b, c, m, n, k, bf16);
  if (bf16)
    return contenders;
  auto fa = static_cast<const float *>(a), fb = static_cast<const float *>(b);
  constexpr int row = 101, noTrans = 111, trans = 112;
  std::pair<const char *, Blas *> libraries[] = {{"openblas", &openBlas()},
                                                 {"blis", &blis()}};
  for (auto [name, blas] : libraries) {
    if (!blas->gemm)
      continue;
    contenders.push_back({name, [=, gemm = blas->gemm] {
                            gemm(row, noTrans, noTrans, m, n, k, 1, fa, k, fb,
                                 n, 0, c, n);
                          }});
    if (m == 1)
      contenders.push_back(
          {std::string(name) + " gemv", [=, gemv = blas->gemv] {
             gemv(row, trans, k, n, 1, fb, n, fa, 1, 0, c, 1);
           }});
  }
  return contenders;
}

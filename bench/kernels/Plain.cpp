//===- Plain.cpp - The kernels as a careful C++ programmer writes them ----===//
// Compiled twice, by g++ and by clang, at -Ofast -march=native.
//===----------------------------------------------------------------------===//
#include <cmath>
#include <cstdint>

#define JOIN2(a, b) a##b
#define JOIN(a, b) JOIN2(a, b)
#define NAME(name) JOIN(name, SUFFIX)

extern "C" {
void NAME(plain_softmax)(const float *__restrict x, float *__restrict y,
                         int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r, x += n, y += n) {
    float m = x[0];
    for (int64_t i = 0; i < n; ++i)
      m = x[i] > m ? x[i] : m;
    float sum = 0;
    for (int64_t i = 0; i < n; ++i)
      sum += y[i] = expf(x[i] - m);
    float scale = 1 / sum;
    for (int64_t i = 0; i < n; ++i)
      y[i] *= scale;
  }
}

void NAME(plain_rmsnorm)(const float *__restrict x, const float *__restrict g,
                         float *__restrict y, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r, x += n, y += n) {
    float sum = 0;
    for (int64_t i = 0; i < n; ++i)
      sum += x[i] * x[i];
    float scale = 1 / sqrtf(sum / n + 1e-5f);
    for (int64_t i = 0; i < n; ++i)
      y[i] = x[i] * scale * g[i];
  }
}

void NAME(plain_layernorm)(const float *__restrict x, const float *__restrict g,
                           const float *__restrict b, float *__restrict y,
                           int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r, x += n, y += n) {
    float sum = 0;
    for (int64_t i = 0; i < n; ++i)
      sum += x[i];
    float mean = sum / n, square = 0;
    for (int64_t i = 0; i < n; ++i)
      square += (x[i] - mean) * (x[i] - mean);
    float scale = 1 / sqrtf(square / n + 1e-5f);
    for (int64_t i = 0; i < n; ++i)
      y[i] = (x[i] - mean) * scale * g[i] + b[i];
  }
}

void NAME(plain_gelu)(const float *__restrict x, const float *__restrict b,
                      float *__restrict y, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r, x += n, y += n)
    for (int64_t i = 0; i < n; ++i) {
      float v = x[i] + b[i];
      y[i] =
          0.5f * v * (1 + tanhf(0.7978845608f * (v + 0.044715f * v * v * v)));
    }
}
}

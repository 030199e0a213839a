//===- ReduceTest.cpp - The arithmetic of the collectives -----------------===//
#include "runtime/cpu/Reduce.h"
#include "runtime/cpu/Isa.h"
#include "runtime/support/Dtype.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace cleave::rt {
ReduceFn reduceKernelX86(uint32_t dtype, uint32_t reduction);
ReduceFn reduceKernelAvx2(uint32_t dtype, uint32_t reduction);
ReduceFn reduceKernelAvx512(uint32_t dtype, uint32_t reduction);
} // namespace cleave::rt

using namespace cleave::rt;

namespace {

template <typename T>
std::vector<T> run(ReduceFn fn, const std::vector<std::vector<T>> &inputs) {
  std::vector<T> out(inputs[0].size());
  std::vector<const void *> pointers;
  for (const std::vector<T> &input : inputs)
    pointers.push_back(input.data());
  fn(out.data(), pointers.data(), pointers.size(), out.size());
  return out;
}

template <typename T>
std::vector<T> run(uint32_t dtype, uint32_t reduction,
                   const std::vector<std::vector<T>> &inputs) {
  return run(reduceKernel(dtype, reduction), inputs);
}

TEST(Reduce, NanAndSignedZero) {
  const float nan = NAN;
  std::vector<std::vector<float>> in = {{nan, 1, -0.0f, 0.0f},
                                        {1, nan, 0.0f, -0.0f}};
  auto max = run<float>(CLEAVE_F32, CLEAVE_MAX, in);
  EXPECT_TRUE(std::isnan(max[0]) && std::isnan(max[1]));
  EXPECT_TRUE(!std::signbit(max[2]) && !std::signbit(max[3]));
  auto min = run<float>(CLEAVE_F32, CLEAVE_MIN, in);
  EXPECT_TRUE(std::isnan(min[0]) && std::isnan(min[1]));
  EXPECT_TRUE(std::signbit(min[2]) && std::signbit(min[3]));
  for (uint32_t kind : {CLEAVE_MAXNUM, CLEAVE_MINNUM}) {
    auto number = run<float>(CLEAVE_F32, kind, in);
    EXPECT_EQ(number[0], 1);
    EXPECT_EQ(number[1], 1);
  }
}

TEST(Reduce, InfinitiesAreOrdinary) {
  const float inf = INFINITY;
  std::vector<std::vector<float>> in = {{inf, -inf, 3}, {-inf, -inf, inf}};
  EXPECT_EQ(run<float>(CLEAVE_F32, CLEAVE_MAX, in),
            (std::vector<float>{inf, -inf, inf}));
  EXPECT_EQ(run<float>(CLEAVE_F32, CLEAVE_MIN, in),
            (std::vector<float>{-inf, -inf, 3}));
}

TEST(Reduce, HalvesAreRoundedOnce) {
  // 256 + 1 is no bf16, 256 + 1 + 1 is: a sum that is rounded in between would
  // stay at 256.
  uint16_t big = floatToBf16(256), one = floatToBf16(1);
  EXPECT_EQ(run<uint16_t>(CLEAVE_BF16, CLEAVE_SUM, {{big}, {one}, {one}})[0],
            floatToBf16(258));
  uint16_t big16 = floatToF16(2048), one16 = floatToF16(1);
  EXPECT_EQ(
      run<uint16_t>(CLEAVE_F16, CLEAVE_SUM, {{big16}, {one16}, {one16}})[0],
      floatToF16(2050));
}

TEST(Reduce, OrderIsThatOfTheInputs) {
  std::vector<std::vector<float>> in = {{1e8f}, {-1e8f}, {1}, {1}, {1}};
  EXPECT_EQ(run<float>(CLEAVE_F32, CLEAVE_SUM, in)[0], 3);
  std::swap(in[1], in[4]);
  EXPECT_EQ(run<float>(CLEAVE_F32, CLEAVE_SUM, in)[0],
            ((((1e8f + 1) + 1) + 1) + -1e8f));
}

TEST(Reduce, IntegersWrap) {
  EXPECT_EQ(run<int8_t>(CLEAVE_I8, CLEAVE_SUM, {{127}, {1}})[0], -128);
  EXPECT_EQ(run<int16_t>(CLEAVE_I16, CLEAVE_PROD, {{-1}, {-1}})[0], 1);
  EXPECT_EQ(run<int16_t>(CLEAVE_I16, CLEAVE_PROD, {{300}, {300}})[0],
            int16_t(90000));
  EXPECT_EQ(run<int32_t>(CLEAVE_I32, CLEAVE_SUM, {{INT32_MAX}, {1}})[0],
            INT32_MIN);
  EXPECT_EQ(run<int64_t>(CLEAVE_I64, CLEAVE_UMAX, {{-1}, {5}})[0], -1);
  EXPECT_EQ(run<int64_t>(CLEAVE_I64, CLEAVE_MAX, {{-1}, {5}})[0], 5);
}

TEST(Reduce, BitsOfFloatsHaveNoMeaning) {
  for (uint32_t kind : {CLEAVE_AND, CLEAVE_OR, CLEAVE_XOR})
    for (uint32_t dtype : {CLEAVE_F32, CLEAVE_BF16, CLEAVE_F16, CLEAVE_F64})
      EXPECT_EQ(reduceKernel(dtype, kind), nullptr);
}

/// All instruction sets give the same bits as the plain one, for any bits in,
/// also in place.
TEST(Reduce, AllInstructionSetsAgree) {
  std::mt19937_64 random(7);
  using Pick = ReduceFn (*)(uint32_t, uint32_t);
  std::vector<Pick> picks;
  if (bestIsa() >= CLEAVE_ISA_AVX2)
    picks.push_back(reduceKernelAvx2);
  if (bestIsa() >= CLEAVE_ISA_AVX512)
    picks.push_back(reduceKernelAvx512);
  for (uint32_t dtype = 0; dtype < kNumDtypes; ++dtype)
    for (uint32_t kind = 0; kind <= CLEAVE_XOR; ++kind)
      for (size_t n : {2, 3, 4, 5, 9}) {
        ReduceFn plain = reduceKernelX86(dtype, kind);
        if (!plain)
          continue;
        size_t count = 1500 + random() % 99;
        size_t bytes = count * size_t(dtypeBytes(dtype));
        std::vector<std::vector<uint8_t>> in(n);
        std::vector<const void *> pointers;
        for (auto &each : in) {
          each.resize(bytes);
          for (uint8_t &byte : each)
            byte = dtype == CLEAVE_I1 ? random() & 1 : uint8_t(random());
          pointers.push_back(each.data());
        }
        std::vector<uint8_t> expected(bytes);
        plain(expected.data(), pointers.data(), n, count);
        for (Pick pick : picks) {
          std::vector<uint8_t> got = in[n - 1];
          pointers[n - 1] = got.data(); // in place
          pick(dtype, kind)(got.data(), pointers.data(), n, count);
          pointers[n - 1] = in[n - 1].data();
          auto isNan = [&](const std::vector<uint8_t> &v, size_t i) {
            if (dtype == CLEAVE_F32) {
              float x;
              memcpy(&x, &v[i * 4], 4);
              return x != x;
            }
            if (dtype == CLEAVE_F64) {
              double x;
              memcpy(&x, &v[i * 8], 8);
              return x != x;
            }
            uint16_t half = 0;
            if (dtype == CLEAVE_BF16 || dtype == CLEAVE_F16)
              memcpy(&half, &v[i * 2], 2);
            return (half & 0x7fff) > (dtype == CLEAVE_F16 ? 0x7c00 : 0x7f80);
          };
          size_t e = size_t(dtypeBytes(dtype));
          for (size_t i = 0; i < count; ++i) {
            bool same = memcmp(&got[i * e], &expected[i * e], e) == 0;
            // The payload of a NaN may differ.
            ASSERT_TRUE(same || (isNan(got, i) && isNan(expected, i)))
                << "dtype " << dtype << " kind " << kind << " n " << n;
          }
        }
      }
}

} // namespace

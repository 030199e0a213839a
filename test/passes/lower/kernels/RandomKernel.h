//===- RandomKernel.h - Random kernels as text ------------------*- C++ -*-===//
#ifndef CLEAVE_TEST_PASSES_LOWER_KERNELS_RANDOMKERNEL_H
#define CLEAVE_TEST_PASSES_LOWER_KERNELS_RANDOMKERNEL_H

#include <cstdint>
#include <string>

namespace cleave::kernels::test {

/// A kernel of one to six ops over random types, shapes and indexing maps.
/// Data flow, broadcasts, transposes, reductions, windows, masks, gathers and
/// slices all occur. The same seed gives the same text.
std::string randomKernel(uint64_t seed);

} // namespace cleave::kernels::test

#endif // CLEAVE_TEST_PASSES_LOWER_KERNELS_RANDOMKERNEL_H

//===- ReduceAvx512.cpp - The reductions for AVX-512 ---------------------===//
#include "runtime/cpu/ReduceKernels.h"

namespace cleave::rt {
ReduceFn reduceKernelAvx512(uint32_t dtype, uint32_t reduction) {
  return pick(dtype, reduction);
}
} // namespace cleave::rt

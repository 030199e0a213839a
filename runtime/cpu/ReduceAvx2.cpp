//===- ReduceAvx2.cpp - The reductions for AVX2 ---------------------===//
#include "runtime/cpu/ReduceKernels.h"

namespace cleave::rt {
ReduceFn reduceKernelAvx2(uint32_t dtype, uint32_t reduction) {
  return pick(dtype, reduction);
}
} // namespace cleave::rt

//===- ReduceX86.cpp - The reductions for x86-64 ---------------------===//
#include "runtime/cpu/ReduceKernels.h"

namespace cleave::rt {
ReduceFn reduceKernelX86(uint32_t dtype, uint32_t reduction) {
  return pick(dtype, reduction);
}
} // namespace cleave::rt

//===- Reduce.cpp - Picks the reductions for this CPU ---------------------===//
#include "runtime/cpu/Reduce.h"
#include "runtime/cpu/Isa.h"

namespace cleave::rt {

ReduceFn reduceKernelX86(uint32_t dtype, uint32_t reduction);
ReduceFn reduceKernelAvx2(uint32_t dtype, uint32_t reduction);
ReduceFn reduceKernelAvx512(uint32_t dtype, uint32_t reduction);

ReduceFn reduceKernel(uint32_t dtype, uint32_t reduction) {
  if (bestIsa() >= CLEAVE_ISA_AVX512)
    return reduceKernelAvx512(dtype, reduction);
  if (bestIsa() >= CLEAVE_ISA_AVX2)
    return reduceKernelAvx2(dtype, reduction);
  return reduceKernelX86(dtype, reduction);
}

const char *reductionName(uint32_t reduction) {
  static constexpr const char *names[] = {"sum",  "prod", "max",    "min",
                                          "umax", "umin", "maxnum", "minnum",
                                          "and",  "or",   "xor"};
  return reduction < 11 ? names[reduction] : "unknown";
}

} // namespace cleave::rt

//===- Reduce.h - Element-wise reductions of several buffers ----*- C++ -*-===//
// The arithmetic of the collectives. Deterministic: buffer 0 first, then 1, 2,
// ... whatever the CPU; bf16 and f16 are combined in f32 and rounded once.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_RUNTIME_CPU_REDUCE_H
#define CLEAVE_RUNTIME_CPU_REDUCE_H

#include "cleave/abi.h"
#include <cstddef>
#include <cstdint>

namespace cleave::rt {

/// out[i] = in[0][i] op in[1][i] op ... for `count` elements. `out` may be one
/// of the inputs, but may not overlap one in any other way.
using ReduceFn = void (*)(void *out, const void *const *in, size_t numInputs,
                          size_t count);

/// The kernel for this pair, or null where it has no meaning (and, or, xor of
/// floats). i1 is arithmetic modulo 2, as in MLIR: sum is xor, prod is and,
/// the signed maximum is and (true is -1), the unsigned one is or.
ReduceFn reduceKernel(uint32_t dtype, uint32_t reduction);

/// "sum", "prod", ...
const char *reductionName(uint32_t reduction);

} // namespace cleave::rt

#endif // CLEAVE_RUNTIME_CPU_REDUCE_H

//===- Isa.h - What this CPU can run ----------------------------*- C++ -*-===//
#ifndef CLEAVE_RUNTIME_CPU_ISA_H
#define CLEAVE_RUNTIME_CPU_ISA_H

#include "cleave/abi.h"
#include "runtime/support/Status.h"

namespace cleave::rt {

/// "x86-64", "avx2", "avx512", "avx512bf16", "amx".
const char *isaName(uint32_t isa);

/// The best level that the CPU and the operating system offer. The environment
/// variable CLEAVE_ISA (one of the names above) may lower it.
uint32_t bestIsa();

/// Picks the best variant that runs here (and asks Linux for the AMX tiles when
/// that variant uses them). Checks magic and version of the table first.
Status pickVariant(const CleaveProgram *const *programs, int64_t numPrograms,
                   const CleaveProgram **picked);

} // namespace cleave::rt

#endif // CLEAVE_RUNTIME_CPU_ISA_H

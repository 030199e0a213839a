//===- Isa.cpp - What this CPU can run ------------------------------------===//
#include "runtime/cpu/Isa.h"

#include <algorithm>
#include <cpuid.h>
#include <cstdlib>
#include <iterator>
#include <string_view>
#include <sys/syscall.h>
#include <unistd.h>

namespace cleave::rt {

static constexpr const char *kIsaNames[] = {"x86-64", "avx2", "avx512",
                                            "avx512bf16", "amx"};

const char *isaName(uint32_t isa) {
  return isa < std::size(kIsaNames) ? kIsaNames[isa] : "unknown";
}

/// Linux gives a process the 8 KiB of tile state only on request.
static bool requestAmx() {
  constexpr long kArchReqXcompPerm = 0x1023;
  constexpr long kXfeatureTileData = 18;
  return syscall(SYS_arch_prctl, kArchReqXcompPerm, kXfeatureTileData) == 0;
}

/// Register state that the operating system saves (XCR0).
static uint64_t enabledState() {
  uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t(high) << 32) | low;
}

static uint32_t detectIsa() {
  unsigned a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE))
    return CLEAVE_ISA_X86_64;
  constexpr uint64_t kYmm = 0x6, kZmm = 0xe6, kTiles = 0x60000;
  uint64_t state = enabledState();
  auto hasAll = [](unsigned word, unsigned bits) {
    return (word & bits) == bits;
  };
  constexpr unsigned kBase = bit_FMA | bit_F16C | bit_MOVBE | bit_POPCNT;
  if (!hasAll(c, kBase) || (state & kYmm) != kYmm ||
      !__get_cpuid(0x80000001, &a, &b, &c, &d) || !hasAll(c, bit_LZCNT) ||
      !__get_cpuid_count(7, 0, &a, &b, &c, &d) ||
      !hasAll(b, bit_AVX2 | bit_BMI | bit_BMI2))
    return CLEAVE_ISA_X86_64;
  constexpr unsigned kAvx512 =
      bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL | bit_AVX512CD;
  if (!hasAll(b, kAvx512) || (state & kZmm) != kZmm)
    return CLEAVE_ISA_AVX2;
  // Hypervisors hide some of these: the level needs every one.
  constexpr unsigned kVbmiVbmi2Gfni = 1u << 1 | 1u << 6 | 1u << 8;
  constexpr unsigned kFp16AmxBf16AmxTile = 1u << 23 | 1u << 22 | 1u << 24;
  constexpr unsigned kAvx512Bf16 = 1u << 5;
  bool amx = hasAll(c, kVbmiVbmi2Gfni) && hasAll(d, kFp16AmxBf16AmxTile) &&
             (state & kTiles) == kTiles;
  if (!__get_cpuid_count(7, 1, &a, &b, &c, &d) || !hasAll(a, kAvx512Bf16))
    return CLEAVE_ISA_AVX512;
  return amx && requestAmx() ? CLEAVE_ISA_AMX : CLEAVE_ISA_AVX512_BF16;
}

uint32_t bestIsa() {
  static const uint32_t detected = [] {
    uint32_t best = detectIsa();
    const char *limit = std::getenv("CLEAVE_ISA");
    for (uint32_t isa = 0; limit && isa < std::size(kIsaNames); ++isa)
      if (std::string_view(limit) == kIsaNames[isa])
        best = std::min(best, isa);
    return best;
  }();
  return detected;
}

Status pickVariant(const CleaveProgram *const *programs, int64_t numPrograms,
                   const CleaveProgram **picked) {
  std::string needs;
  for (int64_t i = 0; i < numPrograms; ++i) {
    const CleaveProgram *program = programs[i];
    if (program->magic != CLEAVE_ABI_MAGIC)
      return invalidArgument("program ", i,
                             " of the table does not start with the magic "
                             "number of Cleave; the object is damaged");
    if (program->version != CLEAVE_ABI_VERSION)
      return invalidArgument(
          "the program was compiled for version ", program->version,
          " of the runtime interface, this runtime has version ",
          CLEAVE_ABI_VERSION, "; build both with the same Cleave");
    if (program->isa <= bestIsa()) {
      *picked = program;
      return Status();
    }
    needs += concat(needs.empty() ? "" : ", ", isaName(program->isa));
  }
  if (numPrograms == 0)
    return invalidArgument("the executable holds no program");
  return failedPrecondition("this CPU offers '", isaName(bestIsa()),
                            "', the program was compiled for ", needs,
                            "; build it for this CPU too");
}

} // namespace cleave::rt

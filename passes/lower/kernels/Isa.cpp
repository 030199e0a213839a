//===- Isa.cpp - Instruction sets that kernels are built for --------------===//
#include "passes/lower/kernels/Kernels.h"
#include "llvm/TargetParser/Host.h"

using namespace cleave::kernels;

llvm::ArrayRef<IsaLevel> CpuIsa::all() {
  static constexpr IsaLevel levels[] = {IsaLevel::avx2, IsaLevel::avx512,
                                        IsaLevel::avx512bf16, IsaLevel::amx};
  return levels;
}

llvm::StringRef CpuIsa::name() const {
  switch (level) {
  case IsaLevel::avx2:
    return "avx2";
  case IsaLevel::avx512:
    return "avx512";
  case IsaLevel::avx512bf16:
    return "avx512bf16";
  case IsaLevel::amx:
    return "amx";
  }
  llvm_unreachable("a level without a name");
}

llvm::StringRef CpuIsa::cpu() const {
  switch (level) {
  case IsaLevel::avx2:
    return "haswell";
  case IsaLevel::avx512:
  case IsaLevel::avx512bf16:
    return "skylake-avx512";
  case IsaLevel::amx:
    return "sapphirerapids";
  }
  llvm_unreachable("a level without a CPU");
}

llvm::StringRef CpuIsa::features() const {
  // LLVM prefers 256-bit vectors on these; kernels are written for 512.
  switch (level) {
  case IsaLevel::avx2:
    return "";
  case IsaLevel::avx512:
  case IsaLevel::amx:
    return "-prefer-256-bit";
  case IsaLevel::avx512bf16:
    return "-prefer-256-bit,+avx512bf16";
  }
  llvm_unreachable("a level without features");
}

bool cleave::kernels::hostHas(const CpuIsa &isa) {
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  auto has = [&](std::initializer_list<llvm::StringRef> names) {
    return llvm::all_of(names,
                        [&](llvm::StringRef n) { return features.lookup(n); });
  };
  bool avx2 = has({"avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt", "movbe"});
  bool avx512 =
      avx2 && has({"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512cd"});
  switch (isa.level) {
  case IsaLevel::avx2:
    return avx2;
  case IsaLevel::avx512:
    return avx512;
  case IsaLevel::avx512bf16:
    return avx512 && has({"avx512bf16"});
  case IsaLevel::amx:
    return avx512 && has({"avx512bf16", "avx512fp16", "amx-tile", "amx-bf16"});
  }
  llvm_unreachable("a level without a test");
}

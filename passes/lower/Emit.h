//===- Emit.h - From kernels and calls to a file that runs -----*- C++ -*-===//
// The last phase. Kernels are compiled one by one, several at a time, and taken
// from the cache where they were compiled before; what is left is compiled
// together; a linker joins it with the runtime. The file appears under its name
// only when it is complete.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PASSES_LOWER_EMIT_H
#define CLEAVE_PASSES_LOWER_EMIT_H

#include "mlir/IR/BuiltinOps.h"
#include "passes/lower/ObjectCache.h"
#include "passes/memory/Passes.h"

namespace cleave {

struct EmitOptions {
  enum class Kind { Object, Executable, Library };
  Kind kind = Kind::Executable;
  std::string output;
  /// Variants to carry. Empty: avx2 and avx512, and avx512bf16 and amx if a
  /// product of bf16 is in the model.
  std::vector<kernels::IsaLevel> isas;
  /// Empty: no cache.
  std::string cacheDirectory = ObjectCache::defaultDirectory();
  /// Kernels compiled at a time.
  unsigned threads = 2;
  /// Where libcleave_rt.a and libcleave_main.a lie. Empty: `../lib` of this
  /// program, the folder of libcleave.so, or where the build put them.
  std::string runtimeDirectory;
};

struct EmitResult {
  /// The best variant's memory.
  MemorySummary memory;
  std::vector<kernels::IsaLevel> isas;
  unsigned numKernels = 0;
  /// Of them, taken from the cache.
  unsigned numCached = 0;
};

/// From a module after the phase `dispatch` to a file. A library comes with a
/// C header beside it.
mlir::FailureOr<EmitResult> emitProgram(mlir::ModuleOp dispatched,
                                        const EmitOptions &options);

/// Memory of one rank without making code. For `cleave plan`.
mlir::FailureOr<MemorySummary> planMemoryOf(mlir::ModuleOp dispatched,
                                            kernels::IsaLevel isa);

/// Reads a list of variants: "native", "all", "avx2,avx512". Nothing: `text`
/// names no instruction set, or "native" found none.
std::optional<std::vector<kernels::IsaLevel>> parseIsas(llvm::StringRef text);

/// Links objects with the runtime; writes `options.output`. Emits a diagnostic
/// on failure and leaves an old file alone.
mlir::LogicalResult linkProgram(mlir::Location loc,
                                llvm::ArrayRef<llvm::ArrayRef<char>> objects,
                                const EmitOptions &options);

/// Writes a file whole or not at all, after a diagnostic.
mlir::LogicalResult writeFile(mlir::Location loc, llvm::StringRef path,
                              llvm::StringRef content);

} // namespace cleave

#endif // CLEAVE_PASSES_LOWER_EMIT_H

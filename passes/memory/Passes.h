//===- Passes.h - Where everything lies ------------------------*- C++ -*-===//
#ifndef CLEAVE_PASSES_MEMORY_PASSES_H
#define CLEAVE_PASSES_MEMORY_PASSES_H

#include "mlir/Pass/Pass.h"
#include "passes/lower/kernels/Kernels.h"

namespace cleave {

#define GEN_PASS_DECL
#include "passes/memory/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/memory/Passes.h.inc"

/// The phase `memory`, for one instruction set: packed weights differ.
void buildMemoryPipeline(mlir::OpPassManager &pm,
                         kernels::IsaLevel isa = kernels::IsaLevel::avx512);

/// The instruction set of this name ("avx2"), or nothing.
std::optional<kernels::IsaLevel> parseIsa(llvm::StringRef name);

/// Memory that one rank needs, by what it is for. Bytes.
struct MemorySummary {
  struct Entry {
    std::string name;
    int64_t arena = 0;
    /// Of the arena: inputs and outputs, and the temporaries of kernels.
    int64_t inputs = 0, outputs = 0, workspace = 0;
  };
  /// A weight that is stored in several forms, because its readers want it laid
  /// out differently.
  struct Repeated {
    struct Form {
      std::string layout; // of packed ones; empty for the plain one
      int64_t bytes = 0;
    };
    std::string name;
    std::vector<Form> forms;
  };
  std::vector<Entry> entries;
  std::vector<Repeated> repeated;
  int64_t weights = 0, states = 0, resident = 0;
  /// The arena while weights are packed after loading.
  int64_t initArena = 0;
  /// The largest arena of all.
  int64_t arena = 0;
  int64_t total() const { return resident + arena; }
};
/// Reads the summary off a module after the phase `memory`.
MemorySummary summarizeMemory(mlir::ModuleOp planned);

} // namespace cleave

#endif // CLEAVE_PASSES_MEMORY_PASSES_H

//===- ProgramData.h - What a program says about itself --------*- C++ -*-===//
// The CleaveProgram of one instruction set: entries, tensors at the edge and
// how they lie on the mesh, and the manifest.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PASSES_LOWER_PROGRAMDATA_H
#define CLEAVE_PASSES_LOWER_PROGRAMDATA_H

#include "dialects/cleave/Cleave.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/lower/StaticData.h"
#include "passes/memory/Passes.h"
#include "llvm/ADT/StringMap.h"

namespace cleave {

/// A tensor that the runtime reads or writes.
struct EdgeTensor {
  std::string name, source, storeName;
  mlir::RankedTensorType type, block;
  ShardingAttr sharding;
  int64_t offset = 0;
  int64_t role = 0; // CleaveRole
};

struct EdgeEntry {
  std::string name;
  std::vector<EdgeTensor> inputs, outputs;
  std::vector<std::string> weights, states;
  int64_t arenaBytes = 0;
};

/// What the planned functions of a module say about the edge of the program.
struct ProgramEdge {
  Mesh mesh;
  std::vector<EdgeEntry> entries;
  std::vector<EdgeTensor> weights, states;
  /// Position in `weights` by `residentName`.
  llvm::StringMap<int64_t> weightIndices;
  /// All that lies in the resident area, one line each.
  std::string layout;
  /// Of CleaveProgram.
  int64_t flags = 0;
  int64_t residentBytes = 0;
  /// Name and arena of the function that packs weights; empty for none.
  std::string init;
  int64_t initArenaBytes = 0;

  /// The mesh of the module; one rank if it has none. Fails after a diagnostic
  /// for two.
  static mlir::FailureOr<ProgramEdge> read(mlir::ModuleOp planned);
};

/// The JSON object that --describe prints.
std::string manifestOf(const ProgramEdge &edge, const MemorySummary &memory);

/// Defines the symbol `cleave_program_<isa>`.
mlir::LogicalResult defineProgram(mlir::ModuleOp module,
                                  const ProgramEdge &edge,
                                  llvm::StringRef manifest,
                                  kernels::IsaLevel isa, StaticData &data);

} // namespace cleave

#endif // CLEAVE_PASSES_LOWER_PROGRAMDATA_H

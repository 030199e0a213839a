//===- CommReport.h - The communication of a program -----------*- C++ -*-===//
#ifndef CLEAVE_PASSES_COST_COMMREPORT_H
#define CLEAVE_PASSES_COST_COMMREPORT_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/cost/Machine.h"

namespace cleave {

/// One collective of a partitioned program, as a step of an entry runs it.
struct CommEntry {
  std::string entry;
  std::string kind;
  std::vector<std::string> axes;
  int64_t groupSize = 1;
  std::string dtype;
  /// Of the logical value: what is reduced; of all_gather the gathered one.
  int64_t bytes = 0;
  /// What the busiest rank sends each time, by the ring conventions.
  int64_t wireBytes = 0;
  /// How often a step runs it: loops and calls multiply.
  int64_t count = 0;
  std::string tier;
  std::string loc;
  std::string op, value, why, remedy;
  double seconds = 0;
};

/// The collectives of all entries in program order. `module` is at the level
/// after partitioning.
std::vector<CommEntry> reportCommunication(mlir::ModuleOp module,
                                           const Machine &machine);

/// The numbers of a realign; see comm.realign.
struct RealignShape {
  int64_t inSize, outSize, inBlock, outBlock, offset, stride;
};
/// What the busiest rank sends: indices of the dim, and to how many ranks.
struct RealignTraffic {
  int64_t elements = 0, peers = 0;
};
RealignTraffic realignTraffic(const Mesh &mesh, llvm::ArrayRef<AxisRef> source,
                              llvm::ArrayRef<AxisRef> axes,
                              const RealignShape &shape);

/// "model.mlir:12:8", or "" if unknown.
std::string locText(mlir::Location loc);

} // namespace cleave

#endif // CLEAVE_PASSES_COST_COMMREPORT_H

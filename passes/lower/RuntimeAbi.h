//===- RuntimeAbi.h - The runtime's functions in IR ------------*- C++ -*-===//
// Declared from abi.def by the compiler's own knowledge of the C types, so that
// lowering and runtime cannot drift apart.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PASSES_LOWER_RUNTIMEABI_H
#define CLEAVE_PASSES_LOWER_RUNTIMEABI_H

#include "cleave/abi.h"
#include "dialects/comm/Comm.h"
#include "passes/lower/StaticData.h"

namespace cleave {

/// Adds the declaration of each function of abi.def.
void declareRuntime(mlir::ModuleOp module);

/// Names of those functions: "cleave_rt_comm".
inline constexpr llvm::StringLiteral kRuntimeComm = "cleave_rt_comm";
inline constexpr llvm::StringLiteral kRuntimeCoordinate =
    "cleave_rt_coordinate";
inline constexpr llvm::StringLiteral kRuntimeTraceBegin =
    "cleave_rt_trace_begin";
inline constexpr llvm::StringLiteral kRuntimeTraceEnd = "cleave_rt_trace_end";

/// The CleaveDtype of an element type, or nothing.
std::optional<CleaveDtype> dtypeOf(mlir::Type element);

/// The CleaveComm of a communication, or failure after a diagnostic.
mlir::FailureOr<Datum> commDatum(mlir::Operation *op, const Mesh &mesh,
                                 StaticData &data);

/// "model.mlir:12:8", or "".
std::string sourceOf(mlir::Location loc);

} // namespace cleave

#endif // CLEAVE_PASSES_LOWER_RUNTIMEABI_H

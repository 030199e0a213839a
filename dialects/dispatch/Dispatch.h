//===- Dispatch.h - The dispatch dialect -----------------------*- C++ -*-===//
#ifndef CLEAVE_DIALECTS_DISPATCH_DISPATCH_H
#define CLEAVE_DIALECTS_DISPATCH_DISPATCH_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/dispatch/DispatchDialect.h.inc"
#include "dialects/dispatch/DispatchEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/dispatch/DispatchAttrs.h.inc"
#define GET_OP_CLASSES
#include "dialects/dispatch/DispatchOps.h.inc"

namespace cleave::dispatch {

/// Names of the discardable attributes; the dialect says what they mean.
inline constexpr llvm::StringLiteral kKernelAttr = "dispatch.kernel";
inline constexpr llvm::StringLiteral kAtAttr = "dispatch.at";
inline constexpr llvm::StringLiteral kFrameBytesAttr = "dispatch.frame_bytes";
inline constexpr llvm::StringLiteral kFrameAttr = "dispatch.frame";
inline constexpr llvm::StringLiteral kScratchAttr = "dispatch.scratch";
inline constexpr llvm::StringLiteral kScratchBytesAttr =
    "dispatch.scratch_bytes";
/// On kernels: the symbol in the object; equal kernels have the same.
inline constexpr llvm::StringLiteral kSymbolAttr = "dispatch.symbol";
inline constexpr llvm::StringLiteral kTiesAttr = "dispatch.ties";
/// On arguments and results of entries: what users call them.
inline constexpr llvm::StringLiteral kNameAttr = "dispatch.name";
/// On arguments that hold a weight in another layout: the key of the layout.
inline constexpr llvm::StringLiteral kPackedAttr = "dispatch.packed";
/// On results of the function below: which packed weight they are.
inline constexpr llvm::StringLiteral kResidentAttr = "dispatch.resident";
/// On the function that packs the weights.
inline constexpr llvm::StringLiteral kInitAttr = "dispatch.init";
/// On the module: bytes of weights and states.
inline constexpr llvm::StringLiteral kResidentBytesAttr =
    "dispatch.resident_bytes";

} // namespace cleave::dispatch

#endif // CLEAVE_DIALECTS_DISPATCH_DISPATCH_H

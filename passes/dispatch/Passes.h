//===- Passes.h - From ops to kernels --------------------------*- C++ -*-===//
#ifndef CLEAVE_PASSES_DISPATCH_PASSES_H
#define CLEAVE_PASSES_DISPATCH_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir {
class ModuleOp;
class OpPassManager;
} // namespace mlir

namespace cleave {

#define GEN_PASS_DECL
#include "passes/dispatch/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/dispatch/Passes.h.inc"

/// The phase `dispatch`: from a partitioned module to kernels and calls.
void buildDispatchPipeline(mlir::OpPassManager &pm);

} // namespace cleave

#endif // CLEAVE_PASSES_DISPATCH_PASSES_H

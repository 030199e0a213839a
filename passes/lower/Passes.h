//===- Passes.h - From a planned module to machine code --------*- C++ -*-===//
#ifndef CLEAVE_PASSES_LOWER_PASSES_H
#define CLEAVE_PASSES_LOWER_PASSES_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Pass/Pass.h"
#include "passes/lower/kernels/Kernels.h"

namespace cleave {

#define GEN_PASS_DECL
#include "passes/lower/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/lower/Passes.h.inc"

/// The phase `lower`, after the phase `memory` for the same instruction set.
void buildLowerPipeline(mlir::OpPassManager &pm,
                        kernels::IsaLevel isa = kernels::IsaLevel::avx512);

} // namespace cleave

#endif // CLEAVE_PASSES_LOWER_PASSES_H

//===- Passes.h - Passes up to the program of one rank ---------*- C++ -*-===//
#ifndef CLEAVE_PASSES_PASSES_H
#define CLEAVE_PASSES_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include <memory>

namespace cleave {

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

} // namespace cleave

#endif // CLEAVE_PASSES_PASSES_H

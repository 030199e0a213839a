//===- Passes.h - Passes that make collectives fewer and smaller *- C++ -*-===//
#ifndef CLEAVE_PASSES_COMM_PASSES_H
#define CLEAVE_PASSES_COMM_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include <memory>

namespace cleave {

#define GEN_PASS_DECL
#include "passes/comm/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "passes/comm/Passes.h.inc"

} // namespace cleave

#endif // CLEAVE_PASSES_COMM_PASSES_H

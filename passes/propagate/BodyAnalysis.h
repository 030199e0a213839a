//===- BodyAnalysis.h - How partial values pass a scalar body --*- C++ -*-===//
#ifndef CLEAVE_PASSES_PROPAGATE_BODYANALYSIS_H
#define CLEAVE_PASSES_PROPAGATE_BODYANALYSIS_H

#include "dialects/sharding/Sharding.h"
#include "mlir/IR/Block.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace cleave {

/// What a scalar of a body is on one rank.
enum class Partiality : uint8_t {
  /// The same number on every rank.
  Complete,
  /// The neutral element: a summand, and complete as well.
  Neutral,
  /// A summand.
  Partial,
  /// Depends on summands in a way that reducing afterwards doesn't give.
  Mixed
};

/// Follows summands of kind `kind` through the ops of `body`. Values in `known`
/// are as it says; other arguments and captured values are Complete. Returns
/// how each operand of the terminator is.
///
/// Example: sum, x Partial, c Complete: x*c is Partial, x+c and x*x are Mixed.
llvm::SmallVector<Partiality>
analyzeBody(mlir::Block &body, ReductionKind kind,
            const llvm::DenseMap<mlir::Value, Partiality> &known);

} // namespace cleave

#endif // CLEAVE_PASSES_PROPAGATE_BODYANALYSIS_H

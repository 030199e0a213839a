//===- Rules.h - Sharding rules of upstream ops ----------------*- C++ -*-===//
#ifndef CLEAVE_PASSES_PROPAGATE_RULES_H
#define CLEAVE_PASSES_PROPAGATE_RULES_H

#include "dialects/sharding/Sharding.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/SmallBitVector.h"

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace cleave {

/// Attaches ShardingRuleOpInterface to linalg's structured ops.
void registerLinalgRules(mlir::DialectRegistry &registry);
/// Attaches it to tensor's ops, arith.constant, and the cleave dialect's hints.
void registerTensorRules(mlir::DialectRegistry &registry);

/// The reduction that a combining op performs, if it is one of those known.
std::optional<ReductionKind> combinerKind(mlir::Operation *op);
/// The value that changes nothing when it is combined: 0 for sum, -inf for max.
/// Null if elements of this type don't combine so (bitwise kinds of floats).
mlir::TypedAttr neutralElement(ReductionKind kind, mlir::Type elementType,
                               mlir::Builder &builder);
/// Whether every element of the tensor is this constant: made by a fill, a
/// splat or a dense constant.
bool isSplatOf(mlir::Value tensor, mlir::TypedAttr element);
/// One value per rank of the group at most counts: `tensor` where `first`
/// holds, else the neutral element. Gives `tensor` itself if it is neutral
/// anyway.
mlir::Value keepOnlyFirst(mlir::OpBuilder &builder, mlir::Location loc,
                          mlir::Value tensor, ReductionKind kind,
                          mlir::Value coordinate);

} // namespace cleave

#endif // CLEAVE_PASSES_PROPAGATE_RULES_H

//===- LinalgBlocks.h - Structured ops on one rank -------------*- C++ -*-===//
#ifndef CLEAVE_PASSES_PROPAGATE_LINALGBLOCKS_H
#define CLEAVE_PASSES_PROPAGATE_LINALGBLOCKS_H

#include "dialects/cleave/ShardingRuleOpInterface.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace cleave {

/// Where the body of `op` reads `table`.
llvm::SmallVector<mlir::tensor::ExtractOp> extractsOf(mlir::Operation *op,
                                                      mlir::Value table);

/// The op on the blocks of one rank.
mlir::FailureOr<llvm::SmallVector<mlir::Value>>
partitionLinalg(mlir::linalg::LinalgOp op, LocalBuilder &local);

} // namespace cleave

#endif // CLEAVE_PASSES_PROPAGATE_LINALGBLOCKS_H

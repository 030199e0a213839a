//===- TensorRules.h - What rules of tensor ops are made of ----*- C++ -*-===//
#ifndef CLEAVE_PASSES_PROPAGATE_TENSORRULES_H
#define CLEAVE_PASSES_PROPAGATE_TENSORRULES_H

#include "dialects/cleave/ShardingRuleOpInterface.h"

namespace cleave {

using Values = mlir::FailureOr<llvm::SmallVector<mlir::Value>>;

mlir::RankedTensorType tensorType(mlir::Value value);
mlir::RankedTensorType withDim(mlir::RankedTensorType type, unsigned dim,
                               int64_t size);

unsigned addFactor(ShardingRule &rule, int64_t size,
                   FactorKind kind = FactorKind::PassThrough);
/// Fresh factors for all dims of a tensor.
TensorFactors addTensor(ShardingRule &rule, mlir::Value value, FactorKind kind);

bool isCut(const LocalBuilder &local, const TensorFactors &factors,
           unsigned dim);
/// Axes of a dim that has one factor or none.
llvm::ArrayRef<AxisRef> axesOf(const LocalBuilder &local,
                               const TensorFactors &factors, unsigned dim);

mlir::Value emptyLike(LocalBuilder &local, mlir::RankedTensorType type);
/// Moves `input`, cut over `source`, into `init`, cut over `axes`.
mlir::Value realign(LocalBuilder &local, mlir::Value input, mlir::Value init,
                    unsigned dim, int64_t inSize, int64_t outSize,
                    int64_t offset, int64_t stride,
                    llvm::ArrayRef<AxisRef> source,
                    llvm::ArrayRef<AxisRef> axes);
/// Drops dims of size 1.
mlir::Value dropDims(LocalBuilder &local, mlir::Value input,
                     mlir::RankedTensorType type);

/// Attaches the rules of tensor.extract_slice and tensor.insert_slice.
void attachSliceRules(mlir::MLIRContext *context);

} // namespace cleave

#endif // CLEAVE_PASSES_PROPAGATE_TENSORRULES_H

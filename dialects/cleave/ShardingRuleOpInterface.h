//===- ShardingRuleOpInterface.h - How an op is cut ------------*- C++ -*-===//
// The public interface between ops and the partitioner. An op says which
// factors its dims have and, if computing a block isn't just the same op on
// smaller tensors, how it is built on one rank.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECTS_CLEAVE_SHARDINGRULEOPINTERFACE_H
#define CLEAVE_DIALECTS_CLEAVE_SHARDINGRULEOPINTERFACE_H

#include "dialects/sharding/ShardingRule.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/SmallVector.h"

namespace cleave {

/// What an op needs to build itself on one rank: its operands as blocks, the
/// axes of each of its factors, and where to insert.
class LocalBuilder {
public:
  LocalBuilder(mlir::OpBuilder &builder, mlir::Location loc, const Mesh &mesh,
               mlir::FlatSymbolRefAttr meshName, const ShardingRule &rule,
               llvm::ArrayRef<AxisList> factorAxes,
               llvm::ArrayRef<mlir::Value> operands)
      : builder(builder), loc(loc), mesh(mesh), meshName(meshName), rule(rule),
        factorAxes(factorAxes), operands(operands) {}

  mlir::OpBuilder &builder;
  mlir::Location loc;
  const Mesh &mesh;
  mlir::FlatSymbolRefAttr meshName;
  const ShardingRule &rule;
  /// Per factor, the axes that cut it.
  llvm::ArrayRef<AxisList> factorAxes;
  /// Per operand of the op, its block (or the value itself for scalars).
  llvm::ArrayRef<mlir::Value> operands;

  /// Number of shards of a factor.
  int64_t numShards(unsigned factor) const {
    return axesSize(factorAxes[factor]);
  }
  /// Block of a factor: ceil(size / shards).
  int64_t blockSize(unsigned factor) const {
    return ceilDiv(rule.factors[factor].size, numShards(factor));
  }
  /// Whether the last shards of this factor are shorter than its block.
  bool isUneven(unsigned factor) const {
    return rule.factors[factor].size % numShards(factor) != 0;
  }
  /// Block type of a tensor with these factors.
  mlir::RankedTensorType localType(mlir::Type global,
                                   const TensorFactors &factors) const;
  mlir::RankedTensorType resultType(mlir::OpResult result) const;
  /// This rank's index over axes, as an index value.
  mlir::Value coordinate(llvm::ArrayRef<AxisRef> axes) const;
  /// First global index of this rank's block of a factor.
  mlir::Value blockOffset(unsigned factor) const;
};

/// The default of `partition`: the same op on blocks. Attributes are kept.
llvm::FailureOr<llvm::SmallVector<mlir::Value>>
partitionByCloning(mlir::Operation *op, LocalBuilder &local);

} // namespace cleave

#include "dialects/cleave/ShardingRuleOpInterface.h.inc"

#endif // CLEAVE_DIALECTS_CLEAVE_SHARDINGRULEOPINTERFACE_H

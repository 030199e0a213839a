//===- ShardingRuleOpInterface.h - How an op is cut ------------*- C++ -*-===//
// The public interface between ops and the partitioner. An op says which
// factors its dims have and, if computing a block isn't just the same op on
// smaller tensors, how it is built on one rank.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECTS_CLEAVE_SHARDINGRULEOPINTERFACE_H
#define CLEAVE_DIALECTS_CLEAVE_SHARDINGRULEOPINTERFACE_H

#include "dialects/comm/Comm.h"
#include "dialects/sharding/ShardingRule.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/OpDefinition.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/SmallVector.h"

namespace cleave {
/// What an op needs to build itself on one rank: its operands as blocks, the
/// axes of each of its factors, and where to insert.
class LocalBuilder {
public:
  LocalBuilder(mlir::OpBuilder &builder, mlir::Location loc, const Mesh &mesh,
               const ShardingRule &rule, llvm::ArrayRef<AxisList> factorAxes,
               llvm::ArrayRef<mlir::Value> operands,
               const mlir::IRMapping &scalars)
      : builder(builder), loc(loc), mesh(mesh),
        meshName(mlir::FlatSymbolRefAttr::get(builder.getContext(), mesh.name)),
        rule(rule), factorAxes(factorAxes), operands(operands),
        scalars(scalars) {}

  mlir::OpBuilder &builder;
  mlir::Location loc;
  const Mesh &mesh;
  mlir::FlatSymbolRefAttr meshName;
  const ShardingRule &rule;
  /// Per factor, the axes that cut it.
  llvm::ArrayRef<AxisList> factorAxes;
  /// Per value of `shardedOperands(op)`, its block (or the scalar on one rank).
  llvm::ArrayRef<mlir::Value> operands;
  /// Per operand, the axes along which it is summands; empty: none is.
  llvm::ArrayRef<AxisList> partial;
  /// Where scalars of the model live in the program of one rank.
  const mlir::IRMapping &scalars;
  /// Why a communication that `partition` builds itself is there.
  llvm::function_ref<comm::CauseAttr()> cause;

  AxisList partialAxes(unsigned operand) const {
    return partial.empty() ? AxisList() : partial[operand];
  }
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

/// What an op reads: its operands, then the tensors that its regions capture,
/// in the order of their first use. Rules list operands in this order.
llvm::SmallVector<mlir::Value> shardedOperands(mlir::Operation *op);

/// Clones `op` with its operands and everything it captures replaced.
mlir::Operation *cloneLocal(mlir::Operation *op, LocalBuilder &local);

/// The default of `partition`: the same op on blocks. Attributes are kept.
llvm::FailureOr<llvm::SmallVector<mlir::Value>>
partitionByCloning(mlir::Operation *op, LocalBuilder &local);

} // namespace cleave

#include "dialects/cleave/ShardingRuleOpInterface.h.inc"

#endif // CLEAVE_DIALECTS_CLEAVE_SHARDINGRULEOPINTERFACE_H

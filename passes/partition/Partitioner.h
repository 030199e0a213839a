//===- Partitioner.h - From the placed model to one rank's -----*- C++ -*-===//
// Walks a function op by op. For each op it chooses the axes of the op's
// factors, brings the operands to what these imply, builds the op on blocks,
// and brings the results to the shardings that propagation gave them.
//
// A value may be held in several shardings at a time; what was moved once is
// found again by the next op that needs it so.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PASSES_PARTITION_PARTITIONER_H
#define CLEAVE_PASSES_PARTITION_PARTITIONER_H

#include "dialects/cleave/Cleave.h"
#include "dialects/comm/Comm.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/IRMapping.h"
#include "passes/partition/Reshard.h"
#include "passes/propagate/Factors.h"
#include "llvm/ADT/MapVector.h"
#include <map>

namespace cleave {

inline bool isTensor(mlir::Value value) {
  return mlir::isa<mlir::RankedTensorType>(value.getType());
}

/// Emits the steps of a plan on blocks.
class ReshardEmitter {
public:
  ReshardEmitter(mlir::OpBuilder &builder, const Mesh &mesh)
      : builder(builder), mesh(mesh) {}
  mlir::Value emit(mlir::Location loc, mlir::Value block,
                   const ReshardPlan &plan, comm::CauseAttr cause);

private:
  mlir::Value emit(mlir::Location loc, mlir::Value block,
                   const ReshardStep &step, comm::CauseAttr cause);
  mlir::Value setExtent(mlir::Location loc, mlir::Value block, unsigned dim,
                        int64_t extent);

  mlir::OpBuilder &builder;
  const Mesh &mesh;
};

class Partitioner {
public:
  Partitioner(mlir::ModuleOp module, const Mesh &mesh, const Machine &machine);
  mlir::LogicalResult run();

private:
  /// A value as this rank holds it.
  struct Version {
    Sharding sharding;
    mlir::Value block;
  };
  /// Why a value has to move, and what would spare it.
  struct Reason {
    std::string why;
    std::string remedy;
  };
  /// Who needs a value otherwise than it lies. The reason is asked for only
  /// where something moves.
  struct Need {
    mlir::Operation *op;
    llvm::function_ref<Reason()> reason;
  };

  mlir::LogicalResult partitionFunction(mlir::func::FuncOp function);
  mlir::LogicalResult partitionBlock(mlir::Block &block);
  mlir::LogicalResult partitionOp(mlir::Operation *op);
  mlir::FailureOr<llvm::SmallVector<mlir::Value>>
  buildOp(mlir::Operation *op, const ShardingRule &rule,
          const FactorChoice &choice, llvm::ArrayRef<mlir::Value> operands,
          llvm::ArrayRef<AxisList> partial = {});
  mlir::LogicalResult partitionMove(ConstraintOp move);
  mlir::LogicalResult partitionLoop(mlir::scf::ForOp loop);
  mlir::LogicalResult partitionCall(mlir::func::CallOp call);
  void copyScalarOp(mlir::Operation *op);
  /// One warning for each kind of op without a rule: what it is, what it cost.
  void warnOfMissingRules();

  const FactorChoice &choose(mlir::Operation *op, const ShardingRule &rule);
  /// The sharding that propagation gave a value.
  const Sharding &declared(mlir::Value value) const;
  const Sharding &declaredArg(mlir::func::FuncOp function,
                              unsigned index) const;
  Sharding declaredResult(mlir::func::FuncOp function, unsigned index) const;
  /// Without an attribute, whole; equal attributes are converted once.
  const Sharding &shardingOf(ShardingAttr attr, mlir::Type type) const;
  mlir::RankedTensorType blockType(mlir::Type type,
                                   const Sharding &sharding) const;

  /// Records that this rank holds `value` so.
  void define(mlir::Value value, const Sharding &sharding, mlir::Value block);
  /// `value` in sharding `target`, moved if it has to be.
  mlir::FailureOr<mlir::Value> get(mlir::Value value, const Sharding &target,
                                   const Need &need);
  /// Whether it is a fill or constant, or a fill of what can be made anew.
  static bool canRemake(mlir::Value value);
  /// Makes it anew in `target`.
  mlir::FailureOr<mlir::Value> remake(mlir::Value value,
                                      const Sharding &target);
  void setInsertionPointFor(mlir::Value block);
  comm::CauseAttr causeOf(mlir::Value value, const Need &need);
  std::string nameOf(mlir::Value value);

  /// An op without a sharding rule, by name: where first, how often, and what
  /// bringing its operands whole to each rank sends.
  struct MissingRule {
    mlir::Location first;
    unsigned times = 0;
    int64_t bytes = 0;
  };
  llvm::MapVector<llvm::StringRef, MissingRule> missingRules;
  /// What one rank sends in all reshards so far.
  int64_t sentBytes = 0;

  mlir::ModuleOp module;
  Mesh mesh;
  Resharder resharder;
  mlir::OpBuilder builder;
  ReshardEmitter emitter;
  FactorChooser chooser;
  std::unique_ptr<mlir::AsmState> names;
  /// No version inline: the table would be mostly empty room for them.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<Version, 0>> versions;
  /// By attribute and rank.
  mutable std::map<std::pair<const void *, int64_t>, Sharding> shardings;
  mlir::IRMapping scalars;
};

} // namespace cleave

#endif // CLEAVE_PASSES_PARTITION_PARTITIONER_H

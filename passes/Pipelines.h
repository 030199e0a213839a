//===- Pipelines.h - The phases in order -----------------------*- C++ -*-===//
#ifndef CLEAVE_PASSES_PIPELINES_H
#define CLEAVE_PASSES_PIPELINES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"

namespace cleave {

/// model: checked, and written as ops with rules.
void buildModelPipeline(mlir::OpPassManager &pm);
/// propagate: every tensor has a sharding.
void buildPropagatePipeline(mlir::OpPassManager &pm);
/// partition: one rank's program.
void buildPartitionPipeline(mlir::OpPassManager &pm);
/// comm: fewer and smaller collectives.
void buildCommPipeline(mlir::OpPassManager &pm);

/// The phases model to comm on a module, for those who embed the compiler.
/// Errors are diagnostics of the module's context.
mlir::LogicalResult partitionModule(mlir::ModuleOp module);

/// Registers the pipelines as `--cleave-<phase>-pipeline`.
void registerPipelines();

} // namespace cleave

#endif // CLEAVE_PASSES_PIPELINES_H

//===- Pipelines.cpp - The phases in order --------------------------------===//
// The chapter list of the compiler. Each phase ends with a gate.
//===----------------------------------------------------------------------===//
#include "passes/Pipelines.h"
#include "mlir/Pass/PassRegistry.h"
#include "passes/Passes.h"
#include "passes/comm/Passes.h"
#include "passes/dispatch/Passes.h"
#include "passes/lower/Passes.h"
#include "passes/memory/Passes.h"

using namespace mlir;

namespace cleave {

//===----------------------------------------------------------------------===//
// model
//===----------------------------------------------------------------------===//

void buildModelPipeline(OpPassManager &pm) {
  // Everything later takes static shapes, one mesh and no recursion as given.
  pm.addPass(createCheckModel());
  // Results keep the names of the values that the model returns, whatever makes
  // them later.
  pm.addPass(createNameEdges());
  // Leaves only ops that have rules.
  pm.addPass(createNormalizeModel());
}

//===----------------------------------------------------------------------===//
// propagate
//===----------------------------------------------------------------------===//

void buildPropagatePipeline(OpPassManager &pm) {
  pm.addPass(createPropagateShardings());
  pm.addPass(createVerifyPlaced());
}

//===----------------------------------------------------------------------===//
// partition
//===----------------------------------------------------------------------===//

void buildPartitionPipeline(OpPassManager &pm) {
  pm.addPass(createPartitionTensors());
  // Equal gathers and slices become one, reshapes and slices that the steps of
  // reshards left side by side fold, what nobody reads goes.
  pm.addPass(createTidyProgram());
  pm.addPass(createVerifyLocal());
}

//===----------------------------------------------------------------------===//
// comm
//===----------------------------------------------------------------------===//

void buildCommPipeline(OpPassManager &pm) {
  // Before folding: a collective with two users folds with neither.
  pm.addPass(createShareCollectives());
  // Reductions of which a rank keeps a part, gathers that are cut again.
  pm.addPass(createSimplifyComm());
  // Before hoisting: a loop that reduces in each trip reduces once after it.
  pm.addPass(createDelayReductions());
  // Collectives are pure, so what doesn't change leaves loops as well.
  pm.addPass(createHoistInvariants());
  // A delayed reduction may now be cut, and a hoisted one be there already.
  pm.addPass(createShareCollectives());
  pm.addPass(createSimplifyComm());
  // Last of the changes: nothing folds with a part of a joined buffer.
  pm.addPass(createCombineCollectives());
  pm.addPass(createTidyProgram());
  pm.addPass(createVerifyComm());
}

LogicalResult partitionModule(ModuleOp module) {
  PassManager pm(module.getContext());
  buildModelPipeline(pm);
  buildPropagatePipeline(pm);
  buildPartitionPipeline(pm);
  buildCommPipeline(pm);
  return pm.run(module);
}

void registerPipelines() {
  PassPipelineRegistration<>("cleave-model-pipeline",
                             "Check the model and write it as ops with rules",
                             buildModelPipeline);
  PassPipelineRegistration<>("cleave-propagate-pipeline",
                             "Give every tensor a sharding",
                             buildPropagatePipeline);
  PassPipelineRegistration<>("cleave-partition-pipeline",
                             "Turn the model into one rank's program",
                             buildPartitionPipeline);
  PassPipelineRegistration<>("cleave-comm-pipeline",
                             "Make collectives fewer and smaller",
                             buildCommPipeline);
  PassPipelineRegistration<>("cleave-dispatch-pipeline",
                             "Turn ops into kernels and calls",
                             buildDispatchPipeline);
  PassPipelineRegistration<>(
      "cleave-memory-pipeline", "Give every tensor a place, for AVX-512",
      [](OpPassManager &pm) { buildMemoryPipeline(pm); });
  PassPipelineRegistration<>("cleave-lower-pipeline",
                             "Turn functions into machine calls, for AVX-512",
                             [](OpPassManager &pm) { buildLowerPipeline(pm); });
}

} // namespace cleave

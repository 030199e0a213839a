//===- PartitionTensors.cpp - Turn the model into one rank's --------------===//
// The shell around Partitioner. Needs what --cleave-propagate-shardings left;
// afterwards no op speaks of whole tensors, which --cleave-verify-local checks.
//===----------------------------------------------------------------------===//
#include "passes/Passes.h"
#include "passes/partition/Partitioner.h"
#include "passes/propagate/ProgramGraph.h"
#define DEBUG_TYPE "cleave-partition-tensors"

using namespace mlir;

namespace cleave {
#define GEN_PASS_DEF_PARTITIONTENSORS
#define GEN_PASS_DEF_VERIFYLOCAL
#include "passes/Passes.h.inc"
} // namespace cleave

namespace {
using namespace cleave;

struct PartitionTensors : cleave::impl::PartitionTensorsBase<PartitionTensors> {
  using Base::Base;
  void runOnOperation() override;
};

struct VerifyLocal : cleave::impl::VerifyLocalBase<VerifyLocal> {
  using Base::Base;
  void runOnOperation() override;
};

} // namespace

void PartitionTensors::runOnOperation() {
  Mesh mesh = findMesh(getOperation()).value_or(Mesh());
  Partitioner partitioner(getOperation(), mesh, cpuLocalMachine());
  if (failed(partitioner.run()))
    signalPassFailure();
}

void VerifyLocal::runOnOperation() {
  bool ok = true;
  getOperation().walk([&](Operation *op) {
    bool hint = op->getDialect() && isa<CleaveDialect>(op->getDialect()) &&
                !isa<MeshOp>(op);
    if (hint || op->hasAttr(kShardingAttr)) {
      op->emitOpError() << "is left over from the whole model";
      ok = false;
    }
  });
  if (!ok)
    return signalPassFailure();
  markAllAnalysesPreserved();
}

//===- PropagateShardings.cpp - Give every value a sharding ---------------===//
// The shell around ProgramGraph: afterwards every tensor has a closed sharding,
// which is what the gate --cleave-verify-placed checks.
//===----------------------------------------------------------------------===//
#include "dialects/cleave/Cleave.h"
#include "dialects/cleave/ShardingRuleOpInterface.h"
#include "passes/Passes.h"
#include "passes/propagate/ProgramGraph.h"
#define DEBUG_TYPE "cleave-propagate-shardings"

using namespace mlir;

namespace cleave {
#define GEN_PASS_DEF_PROPAGATESHARDINGS
#define GEN_PASS_DEF_VERIFYPLACED
#include "passes/Passes.h.inc"
} // namespace cleave

namespace {
using namespace cleave;

struct PropagateShardings
    : cleave::impl::PropagateShardingsBase<PropagateShardings> {
  using Base::Base;
  void runOnOperation() override;
};

struct VerifyPlaced : cleave::impl::VerifyPlacedBase<VerifyPlaced> {
  using Base::Base;
  void runOnOperation() override;
};

LogicalResult verifyClosed(Value value, ShardingAttr sharding) {
  Location loc = value.getLoc();
  if (!sharding)
    return emitError(loc) << "'" << valueName(value)
                          << "' has no sharding after propagation";
  for (DimShardingAttr dim : sharding.getDims())
    if (dim.getOpen())
      return emitError(loc)
             << "'" << valueName(value) << "' has the open sharding "
             << sharding << " after propagation";
  return success();
}

} // namespace

void PropagateShardings::runOnOperation() {
  FailureOr<ProgramGraph> graph = ProgramGraph::build(getOperation());
  if (failed(graph) || failed(graph->solve()))
    return signalPassFailure();
  if (!graph->mesh.name.empty())
    graph->annotate();
  // Only discardable attributes are new, and the gate reads each of them.
  markAllAnalysesPreserved();
}

void VerifyPlaced::runOnOperation() {
  if (!findMesh(getOperation()))
    return markAllAnalysesPreserved();
  bool ok = true;
  getOperation().walk([&](Operation *op) {
    SmallVector<ShardingAttr> shardings = resultShardings(op);
    bool inFunction = isa<func::FuncOp, scf::ForOp>(
        op->getParentOp() ? op->getParentOp() : op);
    for (auto [result, sharding] : llvm::zip(op->getResults(), shardings))
      if (inFunction && isa<RankedTensorType>(result.getType()))
        ok &= succeeded(verifyClosed(result, sharding));
    auto function = dyn_cast<func::FuncOp>(op);
    if (!function || function.isExternal())
      return;
    for (BlockArgument arg : function.getArguments())
      if (isa<RankedTensorType>(arg.getType()))
        ok &= succeeded(
            verifyClosed(arg, function.getArgAttrOfType<ShardingAttr>(
                                  arg.getArgNumber(), kShardingAttr)));
  });
  if (!ok)
    return signalPassFailure();
  markAllAnalysesPreserved();
}

//===- VerifyPlanned.cpp - The gate after the phase memory ----------------===//
// Every tensor outside of kernels has a place, inside the frame of its
// function.
//===----------------------------------------------------------------------===//
#include "passes/memory/Passes.h"
#include "passes/memory/Storage.h"
#define DEBUG_TYPE "cleave-verify-planned"
namespace cleave {
#define GEN_PASS_DEF_VERIFYPLANNED
#include "passes/memory/Passes.h.inc"
} // namespace cleave

using namespace mlir;
using namespace cleave;

namespace {
struct VerifyPlanned : cleave::impl::VerifyPlannedBase<VerifyPlanned> {
  using Base::Base;
  void runOnOperation() override;
};
} // namespace

static LogicalResult verifyPlace(Operation *op, Type type, Attribute place,
                                 int64_t frameBytes) {
  auto at = dyn_cast_or_null<dispatch::AtAttr>(place);
  if (!at)
    return op->emitOpError() << "has a tensor without a place; the phase "
                                "'memory' gives it one in 'dispatch.at'";
  if (at.getBase() != dispatch::PlaceBase::frame ||
      at.getValue() + bytesOf(type) <= frameBytes)
    return success();
  return op->emitOpError() << "has a tensor of " << bytesOf(type)
                           << " bytes at " << at.getValue() << " of a frame of "
                           << frameBytes << " bytes";
}

static LogicalResult verifyFunction(func::FuncOp func) {
  auto frame = func->getAttrOfType<IntegerAttr>(dispatch::kFrameBytesAttr);
  if (!frame)
    return func.emitOpError() << "has no '" << dispatch::kFrameBytesAttr
                              << "'; the phase 'memory' gives it";
  WalkResult result = func.walk([&](Operation *op) -> WalkResult {
    if (op == func)
      return WalkResult::advance();
    auto places = op->getAttrOfType<ArrayAttr>(dispatch::kAtAttr);
    for (OpResult value : op->getResults()) {
      if (!isa<RankedTensorType>(value.getType()))
        continue;
      unsigned number = value.getResultNumber();
      Attribute place =
          places && number < places.size() ? places[number] : Attribute();
      if (failed(verifyPlace(op, value.getType(), place, frame.getInt())))
        return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

void VerifyPlanned::runOnOperation() {
  for (auto func : getOperation().getOps<func::FuncOp>())
    if (!func.isExternal() && !func->hasAttr(dispatch::kKernelAttr) &&
        failed(verifyFunction(func)))
      return signalPassFailure();
  markAllAnalysesPreserved();
}

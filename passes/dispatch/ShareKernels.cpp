//===- ShareKernels.cpp - Keep one kernel of equal ones -------------------===//
// Layers of one shape make equal kernels; one copy is compiled.
//===----------------------------------------------------------------------===//
#include "dialects/dispatch/Dispatch.h"
#include "passes/dispatch/Passes.h"
#include "passes/lower/kernels/Kernels.h"
#include "llvm/ADT/StringMap.h"
#define DEBUG_TYPE "cleave-share-kernels"
namespace cleave {
#define GEN_PASS_DEF_SHAREKERNELS
#include "passes/dispatch/Passes.h.inc"
} // namespace cleave

using namespace mlir;
using namespace cleave;

namespace {
struct ShareKernels : cleave::impl::ShareKernelsBase<ShareKernels> {
  using Base::Base;
  void runOnOperation() override;
};
} // namespace

void ShareKernels::runOnOperation() {
  llvm::StringMap<func::FuncOp> known;
  DenseMap<StringAttr, StringAttr> replaced;
  for (auto func :
       llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
    if (!func->hasAttr(dispatch::kKernelAttr))
      continue;
    auto [it, fresh] = known.try_emplace(kernels::hashKernel(func), func);
    if (fresh)
      continue;
    replaced[func.getSymNameAttr()] = it->second.getSymNameAttr();
    func.erase();
  }
  getOperation().walk([&](dispatch::CallOp call) {
    auto it = replaced.find(call.getCalleeAttr().getAttr());
    if (it != replaced.end())
      call.setCalleeAttr(FlatSymbolRefAttr::get(it->second));
  });
}

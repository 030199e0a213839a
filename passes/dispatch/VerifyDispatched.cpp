//===- VerifyDispatched.cpp - The gate after the phase dispatch -----------===//
// Work happens in kernels. A function calls, loops, views and communicates.
//===----------------------------------------------------------------------===//
#include "dialects/dispatch/Dispatch.h"
#include "mlir/Transforms/Passes.h"
#include "passes/dispatch/Groups.h"
#include "passes/dispatch/Passes.h"
#define DEBUG_TYPE "cleave-verify-dispatched"
namespace cleave {
#define GEN_PASS_DEF_VERIFYDISPATCHED
#include "passes/dispatch/Passes.h.inc"
} // namespace cleave

using namespace mlir;
using namespace cleave;

namespace {
struct VerifyDispatched : cleave::impl::VerifyDispatchedBase<VerifyDispatched> {
  using Base::Base;
  void runOnOperation() override;
};
} // namespace

static bool hasTensors(Operation *op) {
  auto isTensor = [](Type type) { return isa<TensorType>(type); };
  return llvm::any_of(op->getOperandTypes(), isTensor) ||
         llvm::any_of(op->getResultTypes(), isTensor);
}

/// Ops on tensors that a function may hold outside of kernels.
static bool isAllowed(Operation *op) {
  StringRef dialect = op->getDialect() ? op->getDialect()->getNamespace() : "";
  return !hasTensors(op) || isViewOp(op) || dialect == "comm" ||
         isa<dispatch::DispatchDialect, func::FuncDialect>(op->getDialect()) ||
         isa<scf::ForOp, scf::YieldOp, tensor::EmptyOp, tensor::ExtractOp,
             arith::ConstantOp>(op);
}

/// Callers of entries pass and receive buffers.
static LogicalResult verifyEdge(func::FuncOp func) {
  if (!func.isPublic())
    return success();
  auto isTensor = [](Type type) { return isa<RankedTensorType>(type); };
  for (Type type : func.getResultTypes())
    if (!isTensor(type))
      return func.emitOpError() << "returns a " << type
                                << "; entries return tensors (a scalar is a "
                                   "tensor without dims)";
  for (Type type : func.getArgumentTypes())
    if (!isTensor(type))
      return func.emitOpError() << "has an argument of type " << type
                                << "; entries take tensors (a scalar is a "
                                   "tensor without dims)";
  return success();
}

void VerifyDispatched::runOnOperation() {
  bool failed = false;
  for (auto func : getOperation().getOps<func::FuncOp>()) {
    if (func->hasAttr(dispatch::kKernelAttr))
      continue;
    failed |= verifyEdge(func).failed();
    func.walk([&](Operation *op) {
      if (op == func || isAllowed(op))
        return;
      op->emitOpError("works on tensors outside of a kernel; kernels are made "
                      "of linalg ops and of slices, pads and joins");
      failed = true;
    });
  }
  if (failed)
    return signalPassFailure();
  markAllAnalysesPreserved();
}

void cleave::buildDispatchPipeline(OpPassManager &pm) {
  // Before values change their producers.
  pm.addPass(createNameEdges());
  // Folds what the partition left: zero-trip slices, unused coordinates.
  pm.addPass(createTidyProgram());
  pm.addPass(createPrepareKernels());
  // Fills and coordinates made above often exist already.
  pm.addPass(createCSEPass());
  pm.addPass(createOutlineKernels());
  pm.addPass(createShareKernels());
  // Equal kernels on equal operands need to run once only.
  pm.addPass(createCSEPass());
  pm.addPass(createVerifyDispatched());
}

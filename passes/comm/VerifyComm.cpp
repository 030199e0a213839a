//===- VerifyComm.cpp - Check that all ranks run the same collectives -----===//
// The gate of the comm phase. A collective may only stand where the
// conditions and loop bounds around it are equal on all ranks. (That its group
// exists is checked by the op's own verifier.)
//===----------------------------------------------------------------------===//
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "passes/comm/CommUtils.h"
#include "passes/comm/Passes.h"
#include "passes/comm/Variation.h"
#define DEBUG_TYPE "cleave-verify-comm"

using namespace mlir;

namespace cleave {
#define GEN_PASS_DEF_VERIFYCOMM
#include "passes/comm/Passes.h.inc"
} // namespace cleave

namespace {
using namespace cleave;

struct VerifyComm : cleave::impl::VerifyCommBase<VerifyComm> {
  using Base::Base;
  void runOnOperation() override;
};

/// Functions that communicate, themselves or by what they call, to a collective
/// in each.
class Communicating {
public:
  explicit Communicating(SymbolTableCollection &symbols) : symbols(symbols) {}
  /// The collective that `op` runs, or null. `op` may call.
  Operation *in(Operation *op) {
    if (isa<comm::CommDialect>(op->getDialect()))
      return isa<comm::SliceOp, comm::CoordinateOp>(op) ? nullptr : op;
    auto call = dyn_cast<func::CallOp>(op);
    if (!call)
      return nullptr;
    auto callee =
        symbols.lookupNearestSymbolFrom<func::FuncOp>(op, call.getCalleeAttr());
    return callee ? in(callee) : nullptr;
  }

private:
  Operation *in(func::FuncOp function) {
    auto [it, isNew] = found.try_emplace(function, nullptr);
    if (!isNew)
      return it->second;
    Operation *first = nullptr;
    function.walk([&](Operation *op) {
      first = in(op);
      return first ? WalkResult::interrupt() : WalkResult::advance();
    });
    return found[function] = first;
  }

  SymbolTableCollection &symbols;
  DenseMap<Operation *, Operation *> found;
};

/// What decides whether and how often the regions of `op` run.
SmallVector<Value> deciders(Operation *op) {
  if (isa<scf::ForOp>(op))
    return llvm::to_vector(op->getOperands().take_front(3));
  if (isa<scf::IfOp, scf::IndexSwitchOp>(op))
    return {op->getOperand(0)};
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return {loop.getConditionOp().getCondition()};
  return {};
}

LogicalResult checkAround(Operation *op, Operation *collective,
                          LazyVariation &variation) {
  for (Operation *around = op->getParentOp();
       around && !isa<FunctionOpInterface>(around);
       around = around->getParentOp()) {
    std::string axis = variation->differs(deciders(around));
    if (axis.empty())
      continue;
    InFlightDiagnostic diag =
        op->emitOpError()
        << "runs inside '" << around->getName() << "', which ranks along \""
        << axis
        << "\" decide differently; all ranks of a group must run the same "
           "collectives, so reduce or gather what decides";
    diag.attachNote(around->getLoc()) << "decided here";
    if (collective != op)
      diag.attachNote(collective->getLoc()) << "communicates here";
    return diag;
  }
  return success();
}

} // namespace

void VerifyComm::runOnOperation() {
  LazyVariation variation(getOperation());
  SymbolTableCollection symbols;
  Communicating communicating(symbols);
  bool ok = true;
  getOperation().walk([&](Operation *op) {
    if (Operation *collective = communicating.in(op))
      ok &= succeeded(checkAround(op, collective, variation));
  });
  if (!ok)
    return signalPassFailure();
  markAllAnalysesPreserved();
}

//===- VerifyComm.cpp - Check that all ranks run the same collectives -----===//
// The gate of the comm phase. Follows along which mesh axes a value can differ
// between ranks: coordinates, cut arguments and parts that a rank keeps differ;
// reductions and gathers make equal. A collective may only stand where the
// conditions and loop bounds around it are equal on all ranks. (That its group
// exists is checked by the op's own verifier.)
//===----------------------------------------------------------------------===//
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "passes/comm/CommUtils.h"
#include "passes/comm/Passes.h"
#include "llvm/ADT/SmallBitVector.h"
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

/// The axes along which values differ, by an iteration that only adds axes.
class Variation {
public:
  explicit Variation(ModuleOp module) : module(module) {
    for (MeshOp op : module.getOps<MeshOp>())
      mesh = toMesh(op);
  }
  void run();
  /// Names an axis along which one of the values differs, or is empty.
  std::string differs(ValueRange values) const;

private:
  using Axes = llvm::SmallBitVector;
  Axes of(Value value) const;
  Axes of(ValueRange values) const;
  void add(Value value, const Axes &axes);
  void addAll(ValueRange values, ValueRange from);
  void start(func::FuncOp function);
  void visit(Operation *op);
  void visitComm(Operation *op);
  Axes named(AxesAttr axes, bool wholeOnly) const;

  ModuleOp module;
  Mesh mesh;
  SymbolTableCollection symbols;
  DenseMap<Value, Axes> axesOf;
  bool changed = false;
};

Variation::Axes Variation::of(Value value) const {
  auto it = axesOf.find(value);
  return it == axesOf.end() ? Axes(mesh.axes.size()) : it->second;
}

Variation::Axes Variation::of(ValueRange values) const {
  Axes all(mesh.axes.size());
  for (Value value : values)
    all |= of(value);
  return all;
}

void Variation::add(Value value, const Axes &axes) {
  if (axes.none())
    return;
  Axes &own = axesOf.try_emplace(value, Axes(mesh.axes.size())).first->second;
  if (!axes.test(own))
    return;
  own |= axes;
  changed = true;
}

void Variation::addAll(ValueRange values, ValueRange from) {
  for (auto [value, source] : llvm::zip(values, from))
    add(value, of(source));
}

/// The mesh axes that the list names; a part of an axis cannot make the whole
/// axis equal.
Variation::Axes Variation::named(AxesAttr attr, bool wholeOnly) const {
  Axes axes(mesh.axes.size());
  if (!attr)
    return axes;
  for (AxisRef ref : mergeAxes(toAxes(mesh, attr)))
    if (!wholeOnly || ref == mesh.whole(ref.axis))
      axes.set(ref.axis);
  return axes;
}

void Variation::start(func::FuncOp function) {
  for (BlockArgument argument : function.getArguments()) {
    auto attr = function.getArgAttrOfType<ShardingAttr>(argument.getArgNumber(),
                                                        kShardingAttr);
    if (!attr)
      continue;
    Axes axes(mesh.axes.size());
    for (AxisRef ref : toSharding(mesh, attr).shardedAxes())
      axes.set(ref.axis);
    add(argument, axes);
  }
}

void Variation::visitComm(Operation *op) {
  Axes axes = of(op->getOperands());
  auto over = op->getAttrOfType<AxesAttr>("axes");
  if (isa<comm::AllReduceOp, comm::AllGatherOp>(op)) {
    axes.reset(named(over, /*wholeOnly=*/true));
  } else {
    axes |= named(over, false);
    axes |= named(op->getAttrOfType<AxesAttr>("source"), false);
  }
  for (Value result : op->getResults())
    add(result, axes);
}

void Variation::visit(Operation *op) {
  if (isa<comm::CommDialect>(op->getDialect()))
    return visitComm(op);
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    Operation *yield = loop.getBody()->getTerminator();
    Axes bounds = of(op->getOperands().take_front(3));
    add(loop.getInductionVar(), bounds);
    addAll(loop.getRegionIterArgs(), loop.getInitArgs());
    addAll(loop.getRegionIterArgs(), yield->getOperands());
    addAll(loop.getResults(), loop.getRegionIterArgs());
    for (Value result : loop.getResults())
      add(result, bounds);
    return;
  }
  if (auto call = dyn_cast<func::CallOp>(op)) {
    auto callee =
        symbols.lookupNearestSymbolFrom<func::FuncOp>(op, call.getCalleeAttr());
    if (!callee || callee.isExternal())
      return;
    addAll(callee.getArguments(), call.getOperands());
    addAll(call.getResults(),
           callee.getBody().back().getTerminator()->getOperands());
    return;
  }
  // Everything that goes in can reach everything that comes out.
  Axes axes = of(op->getOperands());
  for (Region &region : op->getRegions())
    for (Block &block : region)
      for (Operation &inner : block)
        axes |= of(inner.getOperands());
  for (Region &region : op->getRegions())
    for (BlockArgument argument : region.getArguments())
      add(argument, axes);
  for (Value result : op->getResults())
    add(result, axes);
}

void Variation::run() {
  for (auto function : module.getOps<func::FuncOp>())
    start(function);
  // As many rounds as there are axes to add along the longest way back (a
  // loop's carried value, a call): few.
  do {
    changed = false;
    for (auto function : module.getOps<func::FuncOp>())
      function.getBody().walk<WalkOrder::PreOrder>(
          [&](Operation *op) { visit(op); });
  } while (changed);
}

std::string Variation::differs(ValueRange values) const {
  int first = of(values).find_first();
  return first < 0 ? "" : mesh.axes[first].name;
}

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
                          const Variation &variation) {
  for (Operation *around = op->getParentOp();
       around && !isa<FunctionOpInterface>(around);
       around = around->getParentOp()) {
    std::string axis = variation.differs(deciders(around));
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
  Variation variation(getOperation());
  variation.run();
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

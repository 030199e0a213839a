//===- Variation.cpp - Where ranks hold different values ------------------===//
#include "passes/comm/Variation.h"
#include "dialects/comm/Comm.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace cleave {

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

Variation::Variation(ModuleOp module) : module(module) {
  for (MeshOp op : module.getOps<MeshOp>())
    mesh = toMesh(op);
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

bool Variation::isEqualAlong(Value value, AxesAttr axes) const {
  return !of(value).anyCommon(named(axes, /*wholeOnly=*/false));
}

void Variation::copy(Value from, Value to) { add(to, Axes(of(from))); }

} // namespace cleave

//===- ProgramAnnotate.cpp - What was found, written into the module ------===//
#include "dialects/cleave/Cleave.h"
#include "passes/propagate/ProgramGraph.h"
#include <numeric>

using namespace mlir;

namespace cleave {

/// How the value is written: what a loop gives lies as its iter-arg does until
/// it is reduced.
std::vector<unsigned> ProgramGraph::carriedAs() const {
  std::vector<unsigned> carried(values.size());
  std::iota(carried.begin(), carried.end(), 0);
  for (const PropagationOp &op : problem.ops)
    if (op.tie == Tie::Loop)
      carried[op.results[0]] = op.operands[1];
  return carried;
}

/// A constraint right behind `value`.
Value ProgramGraph::constrain(Value value, unsigned id,
                              const Twine &because) const {
  OpBuilder builder(value.getContext());
  builder.setInsertionPointAfterValue(value);
  ShardingAttr sharding =
      toShardingAttr(builder.getContext(), mesh, shardings[id]);
  auto constraint =
      ConstraintOp::create(builder, value.getLoc(), value.getType(), value,
                           sharding, builder.getStringAttr(because));
  constraint->setDiscardableAttr(kShardingAttr, sharding);
  return constraint;
}

/// Results of loops that are reduced, and what moves for several readers.
void ProgramGraph::insertConstraints(ArrayRef<unsigned> carried) const {
  llvm::DenseMap<unsigned, Value> behind;
  for (auto [id, arg] : llvm::enumerate(carried)) {
    if (shardings[arg].partial == shardings[id].partial)
      continue;
    Value value = values[id].value;
    Value reduced = constrain(value, id, "reduced once, behind the loop");
    value.replaceAllUsesExcept(reduced, reduced.getDefiningOp());
    behind[id] = reduced;
  }
  for (const SharedMove &move : moves) {
    auto known = behind.find(move.value);
    Value value =
        known == behind.end() ? values[move.value].value : known->second;
    Value moved = constrain(value, move.moved,
                            "moved once for its " + Twine(move.readers.size()) +
                                " readers");
    value.replaceUsesWithIf(moved, [&](OpOperand &use) {
      return llvm::any_of(move.readers, [&](unsigned reader) {
        return ops[reader].op->isAncestor(use.getOwner());
      });
    });
    behind[move.moved] = moved;
  }
}

void ProgramGraph::annotate() const {
  ModuleOp root = module;
  MLIRContext *context = root.getContext();
  std::vector<unsigned> carried = carriedAs();
  auto attrOf = [&](unsigned id) {
    return toShardingAttr(context, mesh, shardings[carried[id]]);
  };
  auto withSharding = [&](DictionaryAttr attrs, unsigned id) {
    NamedAttrList list(attrs);
    list.set(kShardingAttr, attrOf(id));
    return list.getDictionary(context);
  };
  for (auto function : root.getOps<func::FuncOp>()) {
    if (function.isExternal())
      continue;
    // All at once: to set one is to write the list of all anew.
    SmallVector<DictionaryAttr> attrs;
    for (BlockArgument arg : function.getArguments()) {
      DictionaryAttr own = function.getArgAttrDict(arg.getArgNumber());
      auto it = ids.find(arg);
      attrs.push_back(it == ids.end() ? own : withSharding(own, it->second));
    }
    function.setAllArgAttrs(attrs);
    attrs.clear();
    for (auto [i, id] : llvm::enumerate(returns.at(function))) {
      DictionaryAttr own = function.getResultAttrDict(i);
      attrs.push_back(isa<RankedTensorType>(function.getResultTypes()[i])
                          ? withSharding(own, id)
                          : own);
    }
    function.setAllResultAttrs(attrs);
  }
  root.walk([&](Operation *op) {
    SmallVector<Attribute> attrs;
    bool any = false;
    for (Value value : op->getResults()) {
      auto it = ids.find(value);
      any |= it != ids.end();
      attrs.push_back(it == ids.end() ? Attribute(UnitAttr::get(context))
                                      : attrOf(it->second));
    }
    if (!any)
      return;
    if (attrs.size() == 1)
      op->setDiscardableAttr(kShardingAttr, attrs[0]);
    else
      op->setDiscardableAttr(kShardingAttr, ArrayAttr::get(context, attrs));
  });
  insertConstraints(carried);
}

} // namespace cleave

//===- ProgramGraph.cpp - A module as a propagation problem ---------------===//
#include "passes/propagate/ProgramGraph.h"
#include "dialects/cleave/Cleave.h"
#include "dialects/cleave/ShardingRuleOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace cleave {

//===----------------------------------------------------------------------===//
// Facts about types and ops
//===----------------------------------------------------------------------===//

int64_t elementBytes(Type elementType) {
  if (elementType.isIndex())
    return 8;
  return std::max<int64_t>(1, elementType.getIntOrFloatBitWidth() / 8);
}

std::optional<Mesh> findMesh(ModuleOp module) {
  // Shardings name it; a model without any that has one mesh means that one.
  std::optional<Mesh> only;
  for (MeshOp op : module.getOps<MeshOp>()) {
    if (!only)
      only = toMesh(op);
    if (!SymbolTable::symbolKnownUseEmpty(op.getSymNameAttr(), module))
      return toMesh(op);
  }
  return only;
}

bool isCheap(Operation *op) {
  return isa<tensor::EmptyOp, tensor::SplatOp, linalg::FillOp,
             arith::ConstantOp>(op);
}

bool hasRule(Operation *op) { return isa<ShardingRuleOpInterface>(op); }

ShardingRule ruleOf(Operation *op) {
  if (auto interface = dyn_cast<ShardingRuleOpInterface>(op))
    return interface.getShardingRule();
  ShardingRule rule;
  auto whole = [&](Value value) {
    TensorFactors factors;
    if (auto type = dyn_cast<RankedTensorType>(value.getType()))
      for (int64_t size : type.getShape()) {
        factors.dims.push_back({static_cast<unsigned>(rule.factors.size())});
        rule.factors.push_back({size, FactorKind::NeedReplication});
      }
    return factors;
  };
  for (Value operand : shardedOperands(op))
    rule.operands.push_back(whole(operand));
  for (Value result : op->getResults())
    rule.results.push_back(whole(result));
  return rule;
}

static bool isTensor(Value value) {
  return isa<RankedTensorType>(value.getType());
}

ShardingRule tensorsOnly(Operation *op, ShardingRule rule) {
  SmallVector<TensorFactors, 3> operands;
  for (auto [value, factors] :
       llvm::zip_equal(shardedOperands(op), rule.operands))
    if (isTensor(value))
      operands.push_back(factors);
  SmallVector<TensorFactors, 1> results;
  for (auto [value, factors] : llvm::zip_equal(op->getResults(), rule.results))
    if (isTensor(value))
      results.push_back(factors);
  rule.operands = operands;
  rule.results = results;
  return rule;
}

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

unsigned ProgramGraph::add(Value value, const Sharding *annotation) {
  auto type = cast<RankedTensorType>(value.getType());
  unsigned id = values.size();
  ids[value] = id;
  values.push_back({value, nullptr, 0, type, value.getLoc(), givenName(value),
                    annotation != nullptr});
  PropagationValue &to = problem.values.emplace_back();
  to.name = values.back().name;
  to.shape.assign(type.getShape().begin(), type.getShape().end());
  to.elementBytes = elementBytes(type.getElementType());
  to.initial =
      annotation ? *annotation : Sharding::whole(type.getRank(), /*open=*/true);
  return id;
}

unsigned ProgramGraph::addReturn(func::FuncOp function, unsigned index) {
  auto type = cast<RankedTensorType>(function.getResultTypes()[index]);
  auto attr = function.getResultAttrOfType<ShardingAttr>(index, kShardingAttr);
  unsigned id = values.size();
  values.push_back({Value(), function, index, type, function.getLoc(),
                    "res" + std::to_string(index), attr != nullptr});
  PropagationValue &to = problem.values.emplace_back();
  to.name = values.back().name;
  to.shape.assign(type.getShape().begin(), type.getShape().end());
  to.elementBytes = elementBytes(type.getElementType());
  to.initial = attr ? toSharding(mesh, attr)
                    : Sharding::whole(type.getRank(), /*open=*/true);
  return id;
}

std::optional<unsigned> ProgramGraph::find(Value value) const {
  auto it = ids.find(value);
  if (it == ids.end())
    return std::nullopt;
  return it->second;
}

void ProgramGraph::tie(ArrayRef<unsigned> from, unsigned to, StringRef why,
                       Location loc) {
  PropagationOp &op = problem.ops.emplace_back();
  op.rule = identityRule(problem.values[to].shape, from.size());
  op.operands.assign(from.begin(), from.end());
  op.results.push_back(to);
  ops.push_back({nullptr, why, loc});
}

void ProgramGraph::addOp(Operation *op) {
  SmallVector<ShardingAttr> annotations = resultShardings(op);
  if (auto constraint = dyn_cast<ConstraintOp>(op))
    annotations[0] = constraint.getSharding();
  bool any = false;
  for (OpResult result : op->getResults()) {
    if (!isTensor(result))
      continue;
    any = true;
    std::optional<Sharding> annotation;
    if (ShardingAttr attr = annotations[result.getResultNumber()])
      annotation = toSharding(mesh, attr);
    add(result, annotation ? &*annotation : nullptr);
  }
  if (auto group = dyn_cast<GroupOp>(op)) {
    // Ids are of one function.
    groups[{currentFunction, group.getGroupId()}].push_back(
        ids.lookup(group.getInput()));
    return;
  }
  SmallVector<Value> operands = shardedOperands(op);
  if (!any && llvm::none_of(operands, isTensor))
    return;
  PropagationOp entry;
  ShardingRule rule = ruleOf(op);
  entry.cheap = isCheap(op);
  if (auto barrier = dyn_cast<BarrierOp>(op)) {
    static constexpr Direction kDirections[] = {
        Direction::None, Direction::Forward, Direction::Backward,
        Direction::Both};
    entry.direction =
        kDirections[static_cast<unsigned>(barrier.getAllowedDirection())];
  }
  for (Value value : operands)
    if (isTensor(value))
      entry.operands.push_back(ids.lookup(value));
  for (Value value : op->getResults())
    if (isTensor(value))
      entry.results.push_back(ids.lookup(value));
  entry.rule = tensorsOnly(op, std::move(rule));
  problem.ops.push_back(std::move(entry));
  ops.push_back({op, "", op->getLoc()});
}

static void addTieOfLoop(scf::ForOp loop, unsigned i,
                         function_ref<unsigned(Value)> id,
                         function_ref<void(ArrayRef<unsigned>, unsigned)> tie) {
  Value yielded = loop.getYieldedValues()[i];
  tie({id(loop.getInitArgs()[i]), id(loop.getRegionIterArgs()[i]), id(yielded)},
      id(loop.getResult(i)));
}

void ProgramGraph::addBlock(Block &block) {
  for (Operation &op : block) {
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      SmallVector<ShardingAttr> annotations = resultShardings(&op);
      for (auto [arg, result] :
           llvm::zip_equal(loop.getRegionIterArgs(), loop.getResults())) {
        if (!isTensor(result))
          continue;
        add(arg, nullptr);
        std::optional<Sharding> annotation;
        if (ShardingAttr attr = annotations[result.getResultNumber()])
          annotation = toSharding(mesh, attr);
        add(result, annotation ? &*annotation : nullptr);
      }
      addBlock(*loop.getBody());
      for (unsigned i = 0, e = loop.getNumResults(); i < e; ++i)
        if (isTensor(loop.getResult(i)))
          addTieOfLoop(
              loop, i, [&](Value value) { return ids.lookup(value); },
              [&](ArrayRef<unsigned> from, unsigned to) {
                tie(from, to, "loop", loop.getLoc());
              });
      continue;
    }
    if (auto call = dyn_cast<func::CallOp>(op)) {
      SmallVector<ShardingAttr> annotations = resultShardings(&op);
      auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
          call, call.getCalleeAttr());
      for (auto [operand, arg] :
           llvm::zip_equal(call.getOperands(), callee.getArguments()))
        if (isTensor(operand))
          tie({ids.lookup(operand)}, ids.lookup(arg), "call", call.getLoc());
      for (OpResult result : call.getResults()) {
        if (!isTensor(result))
          continue;
        std::optional<Sharding> annotation;
        if (ShardingAttr attr = annotations[result.getResultNumber()])
          annotation = toSharding(mesh, attr);
        unsigned id = add(result, annotation ? &*annotation : nullptr);
        tie({returns[callee][result.getResultNumber()]}, id, "call",
            call.getLoc());
      }
      continue;
    }
    if (auto ret = dyn_cast<func::ReturnOp>(op)) {
      Operation *function = op.getParentOp();
      for (auto [i, operand] : llvm::enumerate(ret.getOperands()))
        if (isTensor(operand))
          tie({ids.lookup(operand)}, returns[function][i], "return",
              ret.getLoc());
      continue;
    }
    if (!isa<scf::YieldOp, MeshOp>(op))
      addOp(&op);
  }
}

void ProgramGraph::addFunction(func::FuncOp function) {
  for (BlockArgument arg : function.getArguments()) {
    if (!isTensor(arg))
      continue;
    auto attr = function.getArgAttrOfType<ShardingAttr>(arg.getArgNumber(),
                                                        kShardingAttr);
    std::optional<Sharding> annotation;
    if (attr)
      annotation = toSharding(mesh, attr);
    add(arg, annotation ? &*annotation : nullptr);
  }
  auto &slots = returns[function];
  for (auto [i, type] : llvm::enumerate(function.getResultTypes()))
    slots.push_back(isa<RankedTensorType>(type) ? addReturn(function, i) : 0);
  // A weight or state lies in one way in all entries.
  for (BlockArgument arg : function.getArguments())
    for (StringRef kind : {StringRef(kWeightAttr), StringRef(kStateAttr)})
      if (auto name =
              function.getArgAttrOfType<StringAttr>(arg.getArgNumber(), kind))
        bindings[name.str()].push_back(ids.lookup(arg));
  for (auto [i, slot] : llvm::enumerate(slots))
    if (auto name = function.getResultAttrOfType<StringAttr>(i, kStateAttr))
      bindings[name.str()].push_back(slot);
}

FailureOr<ProgramGraph> ProgramGraph::build(ModuleOp module) {
  ProgramGraph graph;
  graph.module = module;
  if (std::optional<Mesh> mesh = findMesh(module))
    graph.mesh = *mesh;
  graph.problem.mesh = graph.mesh;
  for (func::FuncOp function : module.getOps<func::FuncOp>())
    if (!function.isExternal())
      graph.addFunction(function);
  for (func::FuncOp function : module.getOps<func::FuncOp>())
    if (!function.isExternal()) {
      ++graph.currentFunction;
      graph.addBlock(function.getBody().front());
    }
  for (auto &[id, members] : graph.groups)
    graph.problem.groups.push_back(members);
  for (auto &[name, members] : graph.bindings)
    if (members.size() > 1)
      graph.problem.groups.push_back(members);
  return graph;
}

//===----------------------------------------------------------------------===//
// Solving
//===----------------------------------------------------------------------===//

/// How the tensors of a problem op lie. Results are partial as declared, so
/// that the op is cut to give that; what stays partial otherwise is decided
/// later.
static std::vector<PlacedTensor> placedTensors(const ProgramGraph &graph,
                                               const PropagationOp &op) {
  std::vector<PlacedTensor> placed;
  auto place = [&](unsigned id, bool isResult) {
    const PropagationValue &value = graph.problem.values[id];
    PlacedTensor &to = placed.emplace_back();
    to.sharding = graph.result.shardings[id];
    to.sharding.partial.clear();
    if (isResult)
      to.sharding.partial = value.initial.partial;
    to.shape = value.shape;
    to.elementBytes = value.elementBytes;
    Operation *def = graph.values[id].value
                         ? graph.values[id].value.getDefiningOp()
                         : nullptr;
    to.cheap = def && isCheap(def);
  };
  for (unsigned id : op.operands)
    place(id, false);
  for (unsigned id : op.results)
    place(id, true);
  return placed;
}

/// Costs a walk of the function; for messages.
static std::string nameOf(const GraphValue &value) {
  return value.value ? valueName(value.value) : value.name;
}

LogicalResult ProgramGraph::placeReductions() {
  PartialProblem partials;
  std::vector<unsigned> irOps;
  partials.values.resize(values.size());
  FactorChooser chooser(mesh);
  for (auto [id, value] : llvm::enumerate(partials.values)) {
    const PropagationValue &from = problem.values[id];
    const Sharding &sharding = result.shardings[id];
    double bytes = from.elementBytes;
    for (int64_t extent : localShape(from.shape, sharding))
      bytes *= extent;
    value.bytes = bytes;
    value.cutAxes = normalizeAxisSet(sharding.shardedAxes());
    // What is declared replicated cannot hold summands.
    llvm::append_range(value.cutAxes, sharding.replicated);
    value.cutAxes = normalizeAxisSet(value.cutAxes);
    value.declared = from.initial.partial;
    value.declaredKind = from.initial.kind;
    value.neededWhole = !values[id].value;
  }
  for (auto [i, op] : llvm::enumerate(problem.ops)) {
    PartialOp &entry = partials.ops.emplace_back();
    entry.operands.assign(op.operands.begin(), op.operands.end());
    entry.results.assign(op.results.begin(), op.results.end());
    if (!ops[i].op)
      continue;
    // What the user declares partial passes, so the op isn't cut along it.
    AxisList reserved;
    for (unsigned id : op.operands)
      llvm::append_range(reserved, problem.values[id].initial.partial);
    const FactorChoice &choice =
        chooser.choose(op.rule, placedTensors(*this, op), reserved);
    for (const AxisList &axes : choice.axes)
      llvm::append_range(entry.usedAxes, axes);
    entry.usedAxes = normalizeAxisSet(entry.usedAxes);
    for (auto [id, sharding] : llvm::zip_equal(op.results, choice.results)) {
      partials.values[id].created = sharding.partial;
      partials.values[id].kind = sharding.kind;
    }
  }
  partials.letsThrough = [&](unsigned index, ReductionKind kind,
                             const llvm::BitVector &partial) {
    Operation *op = ops[index].op;
    auto interface = dyn_cast_or_null<ShardingRuleOpInterface>(op);
    if (!interface)
      return false;
    // The problem's operands are the tensors only.
    SmallVector<Value> operands = shardedOperands(op);
    llvm::SmallBitVector all(operands.size());
    unsigned tensor = 0;
    for (auto [i, operand] : llvm::enumerate(operands))
      if (isTensor(operand))
        all[i] = partial.test(tensor++);
    return interface.passesPartial(kind, all);
  };
  PartialResult placed = placePartials(partials);
  for (const PartialError &error : placed.errors) {
    const GraphValue &value = values[error.value];
    const GraphOp &op = ops[error.op];
    if (error.kind == PartialError::NonLinearUse) {
      InFlightDiagnostic diag =
          emitError(op.loc)
          << "'" << nameOf(value) << "' is declared partial over "
          << toString(mesh, error.axes) << ", but "
          << (op.op ? op.op->getName().getStringRef() : op.tie)
          << " needs the reduced value; remove 'partial' from its sharding or "
             "constrain it before this op";
      diag.attachNote(value.loc)
          << "'" << nameOf(value) << "' is declared here";
    } else {
      emitError(value.loc)
          << "'" << nameOf(value) << "' is declared partial over "
          << toString(mesh, error.axes)
          << ", but its producer leaves no such summands there; declare "
             "'partial' only where a dim that is reduced is cut";
    }
  }
  if (!placed.errors.empty())
    return failure();
  shardings = result.shardings;
  for (auto [id, sharding] : llvm::enumerate(shardings)) {
    // Sub-axes that no list of digits has both, a:(1)2 and a:(1)3 of 6, cannot
    // stand in one sharding: the later ones are reduced.
    sharding.partial.clear();
    for (AxisRef axis : placed.kept[id])
      if (!sharding.uses(axis))
        sharding.partial.push_back(axis);
    sharding.kind = placed.kinds[id];
  }
  return success();
}

LogicalResult ProgramGraph::solve() {
  result = propagate(problem);
  for (const PropagationError &error : result.errors)
    emitError(values[error.value].loc) << error.message;
  if (!result.errors.empty())
    return failure();
  return placeReductions();
}

//===----------------------------------------------------------------------===//
// Writing back
//===----------------------------------------------------------------------===//

void ProgramGraph::annotate() const {
  ModuleOp root = module;
  MLIRContext *context = root.getContext();
  auto attrOf = [&](unsigned id) {
    return toShardingAttr(context, mesh, shardings[id]);
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
}

} // namespace cleave

//===- ProgramGraph.cpp - A module as a propagation problem ---------------===//
#include "passes/propagate/ProgramGraph.h"
#include "dialects/cleave/Cleave.h"
#include "dialects/cleave/ShardingRuleOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace cleave {

/// Of a loop that runs an unknown number of times; it is hardly written for one
/// trip.
static constexpr double kUnknownTrips = 2;

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

std::optional<int64_t> tripCount(scf::ForOp loop) {
  std::optional<int64_t> low = getConstantIntValue(loop.getLowerBound());
  std::optional<int64_t> high = getConstantIntValue(loop.getUpperBound());
  std::optional<int64_t> step = getConstantIntValue(loop.getStep());
  if (!low || !high || !step || *step <= 0)
    return std::nullopt;
  return std::max<int64_t>(0, ceilDiv(*high - *low, *step));
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
  // In place, without the others.
  auto keepTensors = [](auto values, auto &factors, auto &&moved) {
    unsigned kept = 0;
    for (auto [i, value] : llvm::enumerate(values)) {
      if (!isTensor(value))
        continue;
      moved(i, kept);
      if (kept != i)
        factors[kept] = std::move(factors[i]);
      ++kept;
    }
    factors.truncate(kept);
  };
  keepTensors(shardedOperands(op), rule.operands,
              [&](unsigned from, unsigned to) {
                llvm::replace(rule.accumulators, from, to);
              });
  keepTensors(op->getResults(), rule.results, [](unsigned, unsigned) {});
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
  to.times = times;
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
  op.tie = Tie::Edge;
  op.times = times;
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
  entry.times = times;
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

void ProgramGraph::addTies(scf::ForOp loop) {
  for (auto [init, arg, yielded, result] :
       llvm::zip_equal(loop.getInitArgs(), loop.getRegionIterArgs(),
                       loop.getYieldedValues(), loop.getResults()))
    if (isTensor(result)) {
      tie({ids.lookup(init), ids.lookup(arg), ids.lookup(yielded)},
          ids.lookup(result), "loop", loop.getLoc());
      problem.ops.back().tie = Tie::Loop;
    }
}

void ProgramGraph::addBlock(Block &block) {
  for (Operation &op : block) {
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      SmallVector<ShardingAttr> annotations = resultShardings(&op);
      std::optional<int64_t> known = tripCount(loop);
      double outer = times, trips = known ? *known : kUnknownTrips;
      for (auto [arg, result] :
           llvm::zip_equal(loop.getRegionIterArgs(), loop.getResults())) {
        if (!isTensor(result))
          continue;
        add(arg, nullptr);
        problem.values.back().times *= trips;
        std::optional<Sharding> annotation;
        if (ShardingAttr attr = annotations[result.getResultNumber()])
          annotation = toSharding(mesh, attr);
        add(result, annotation ? &*annotation : nullptr);
      }
      times *= trips;
      addBlock(*loop.getBody());
      times = outer;
      addTies(loop);
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
  // These are large: they should not move each time the lists grow.
  size_t numOps = 0, numEdges = 0;
  for (func::FuncOp function : module.getOps<func::FuncOp>())
    if (!function.isExternal()) {
      numOps += function.getBody().front().getOperations().size();
      numEdges += function.getNumArguments() + function.getNumResults();
    }
  graph.values.reserve(numOps + numEdges);
  graph.problem.values.reserve(numOps + numEdges);
  graph.ops.reserve(numOps);
  graph.problem.ops.reserve(numOps);
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

/// Costs a walk of the function; for messages.
static std::string nameOf(const GraphValue &value) {
  return value.value ? valueName(value.value) : value.name;
}

/// Whether the IR op lets summands through.
bool ProgramGraph::letsThrough(unsigned index, ReductionKind kind,
                               const llvm::BitVector &partial) const {
  auto interface = dyn_cast<ShardingRuleOpInterface>(ops[index].op);
  if (!interface)
    return false;
  // The problem's operands are the tensors only.
  SmallVector<Value> operands = shardedOperands(ops[index].op);
  llvm::SmallBitVector all(operands.size());
  unsigned tensor = 0;
  for (auto [i, operand] : llvm::enumerate(operands))
    if (isTensor(operand))
      all[i] = partial.test(tensor++);
  return interface.passesPartial(kind, all);
}

void ProgramGraph::report(const PartialError &error) const {
  const GraphValue &value = values[error.value];
  if (error.kind == PartialError::NotPartial) {
    emitError(value.loc)
        << "'" << nameOf(value) << "' is declared partial over "
        << toString(mesh, error.axes)
        << ", but its producer leaves no such summands there; declare "
           "'partial' only where a dim that is reduced is cut";
    return;
  }
  const GraphOp &op = ops[error.op];
  InFlightDiagnostic diag =
      emitError(op.loc)
      << "'" << nameOf(value) << "' is declared partial over "
      << toString(mesh, error.axes) << ", but "
      << (op.op ? op.op->getName().getStringRef() : op.tie)
      << " needs the reduced value; remove 'partial' from its sharding or "
         "constrain it before this op";
  diag.attachNote(value.loc) << "'" << nameOf(value) << "' is declared here";
}

void ProgramGraph::addMove(const SharedMove &move) {
  values.push_back(values[move.value]);
  ops.push_back({nullptr, "move", values.back().loc});
}

LogicalResult ProgramGraph::solve() {
  result = propagate(problem);
  for (const PropagationError &error : result.errors)
    emitError(values[error.value].loc) << error.message;
  if (!result.errors.empty())
    return failure();
  Placer placer(mesh, [this](unsigned op, ReductionKind kind,
                             const llvm::BitVector &partial) {
    return letsThrough(op, kind, partial);
  });
  Placement placement = placer.place(problem, result.shardings);
  for (const PartialError &error : placement.partials.errors)
    report(error);
  if (!placement.partials.errors.empty())
    return failure();
  moves = shareMoves(problem, placer, result, placement);
  for (const SharedMove &move : moves)
    addMove(move);
  shardings = std::move(placement.shardings);
  return success();
}

} // namespace cleave

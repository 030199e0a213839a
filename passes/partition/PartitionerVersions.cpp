//===- PartitionerVersions.cpp - In which shardings a rank holds a value --===//
#include "dialects/cleave/ShardingRuleOpInterface.h"
#include "passes/partition/Partitioner.h"
#include "passes/propagate/ProgramGraph.h"

using namespace mlir;

namespace cleave {

//===----------------------------------------------------------------------===//
// Shardings
//===----------------------------------------------------------------------===//

const Sharding &Partitioner::shardingOf(ShardingAttr attr, Type type) const {
  int64_t rank = cast<RankedTensorType>(type).getRank();
  auto [it, isNew] = shardings.try_emplace({attr.getAsOpaquePointer(), rank});
  if (isNew)
    it->second =
        attr ? toSharding(mesh, attr) : Sharding::whole(rank, /*open=*/false);
  return it->second;
}

const Sharding &Partitioner::declaredArg(func::FuncOp function,
                                         unsigned index) const {
  return shardingOf(
      function.getArgAttrOfType<ShardingAttr>(index, kShardingAttr),
      function.getArgumentTypes()[index]);
}

Sharding Partitioner::declaredResult(func::FuncOp function,
                                     unsigned index) const {
  auto attr = function.getResultAttrOfType<ShardingAttr>(index, kShardingAttr);
  Sharding result = shardingOf(attr, function.getResultTypes()[index]);
  result.partial.clear();
  return result;
}

const Sharding &Partitioner::declared(Value value) const {
  ShardingAttr attr;
  if (auto result = dyn_cast<OpResult>(value)) {
    attr = resultShardings(result.getOwner())[result.getResultNumber()];
  } else {
    auto arg = cast<BlockArgument>(value);
    Operation *parent = arg.getOwner()->getParentOp();
    if (auto function = dyn_cast<func::FuncOp>(parent))
      return declaredArg(function, arg.getArgNumber());
    auto loop = cast<scf::ForOp>(parent);
    attr =
        resultShardings(loop)[arg.getArgNumber() - loop.getNumInductionVars()];
  }
  return shardingOf(attr, value.getType());
}

RankedTensorType Partitioner::blockType(Type type,
                                        const Sharding &sharding) const {
  auto tensor = cast<RankedTensorType>(type);
  return RankedTensorType::get(localShape(tensor.getShape(), sharding),
                               tensor.getElementType());
}

//===----------------------------------------------------------------------===//
// Versions of a value
//===----------------------------------------------------------------------===//

void Partitioner::define(Value value, const Sharding &sharding, Value block) {
  versions[value].push_back({sharding, block});
}

std::string Partitioner::nameOf(Value value) {
  if (std::string name = givenName(value); !name.empty())
    return name;
  std::string text;
  llvm::raw_string_ostream os(text);
  value.printAsOperand(os, *names);
  return text;
}

comm::CauseAttr Partitioner::causeOf(Value value, const Need &need) {
  Reason reason = need.reason();
  return comm::CauseAttr::get(module.getContext(),
                              need.op->getName().getStringRef(), nameOf(value),
                              reason.why, reason.remedy);
}

/// Where a moved block can be found again: in the block that defines it, before
/// what now asks for it.
void Partitioner::setInsertionPointFor(Value block) {
  Block *home = block.getParentBlock();
  Block *here = builder.getInsertionBlock();
  if (home == here)
    return;
  Operation *ancestor = here->getParentOp();
  while (ancestor->getBlock() != home)
    ancestor = ancestor->getParentOp();
  builder.setInsertionPoint(ancestor);
}

FailureOr<Value> Partitioner::remake(Value value, const Sharding &target) {
  Operation *op = value.getDefiningOp();
  ShardingRule rule = ruleOf(op);
  FactorChoice choice;
  choice.axes.resize(rule.factors.size());
  for (auto [dim, sharding] :
       llvm::zip_equal(rule.results[0].dims, target.dims))
    choice.axes[dim[0]] = sharding.axes;
  SmallVector<Value> operands;
  for (auto [i, operand] : llvm::enumerate(shardedOperands(op))) {
    if (!isTensor(operand)) {
      operands.push_back(scalars.lookup(operand));
      continue;
    }
    FailureOr<Value> block =
        get(operand, impliedSharding(rule, i, choice.axes, mesh),
            {op, [] { return Reason(); }});
    if (failed(block))
      return failure();
    operands.push_back(*block);
  }
  FailureOr<SmallVector<Value>> results = buildOp(op, rule, choice, operands);
  if (failed(results))
    return failure();
  return (*results)[0];
}

bool Partitioner::canRemake(Value value) {
  Operation *op = value.getDefiningOp();
  return op && isCheap(op) && op->getNumResults() == 1 &&
         llvm::all_of(op->getOperands(), [](Value operand) {
           return !isTensor(operand) || canRemake(operand);
         });
}

FailureOr<Value> Partitioner::get(Value value, const Sharding &target,
                                  const Need &need) {
  auto &held = versions[value];
  for (const Version &version : held)
    if (version.sharding.sameLayout(target))
      return version.block;
  auto type = cast<RankedTensorType>(value.getType());
  if (target.partial.empty() && canRemake(value)) {
    FailureOr<Value> block = remake(value, target);
    if (failed(block))
      return failure();
    // Only where it dominates what follows in its own block.
    auto &now = versions[value];
    if (!now.empty() &&
        now[0].block.getParentBlock() == (*block).getParentBlock())
      define(value, target, *block);
    return block;
  }
  assert(!held.empty() && "operands are partitioned before their users");
  const Version *best = nullptr;
  ReshardPlan bestPlan;
  for (const Version &version : held) {
    const ReshardPlan &plan =
        resharder.plan(type.getShape(), elementBytes(type.getElementType()),
                       version.sharding, target);
    if (best && plan.seconds >= bestPlan.seconds)
      continue;
    best = &version;
    bestPlan = plan;
  }
  OpBuilder::InsertionGuard guard(builder);
  Value from = best->block;
  setInsertionPointFor(from);
  sentBytes += bestPlan.wireBytes;
  Value block =
      emitter.emit(need.op->getLoc(), from, bestPlan, causeOf(value, need));
  define(value, target, block);
  return block;
}

/// The first op that reads the value, or `otherwise`.
static Operation *firstReader(Value value, Operation *otherwise) {
  Operation *first = nullptr, *place = nullptr;
  for (Operation *user : value.getUsers()) {
    Operation *at = otherwise->getBlock()->findAncestorOpInBlock(*user);
    if (!place || at->isBeforeInBlock(place))
      first = user, place = at;
  }
  return first ? first : otherwise;
}

/// What propagation moves for several readers, whose the need is, or reduces
/// behind a loop.
LogicalResult Partitioner::partitionMove(ConstraintOp move) {
  Sharding target = declared(move.getResult());
  AxisList reduced =
      withoutAxes(declared(move.getInput()).partial, target.partial);
  auto reason = [&] {
    std::string because = move.getBecause()->str();
    if (reduced.empty()) {
      std::string lies = toString(mesh, target);
      return Reason{because + ", which compute with it as " + lies,
                    "annotate it with " + lies};
    }
    std::string axes = toString(mesh, reduced);
    return Reason{"a dim that is reduced in it is cut over " + axes + "; " +
                      because,
                  "leave that dim whole over " + axes};
  };
  Operation *loop = reduced.empty() ? nullptr : move.getInput().getDefiningOp();
  FailureOr<Value> block =
      get(move.getInput(), target,
          {loop ? loop : firstReader(move.getResult(), move), reason});
  if (failed(block))
    return failure();
  define(move.getResult(), target, *block);
  return success();
}

} // namespace cleave

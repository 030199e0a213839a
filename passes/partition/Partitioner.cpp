//===- Partitioner.cpp - From the placed model to one rank's --------------===//
#include "passes/partition/Partitioner.h"
#include "dialects/cleave/ShardingRuleOpInterface.h"
#include "passes/propagate/ProgramGraph.h"

using namespace mlir;

namespace cleave {

Partitioner::Partitioner(ModuleOp module, const Mesh &mesh,
                         const Machine &machine)
    : module(module), mesh(mesh), resharder(mesh, machine),
      builder(module.getContext()), emitter(builder, this->mesh),
      chooser(this->mesh) {}

static DictionaryAttr without(DictionaryAttr attrs, StringRef name) {
  NamedAttrList list(attrs);
  return list.erase(name) ? list.getDictionary(attrs.getContext()) : attrs;
}

static void dropShardings(func::FuncOp function) {
  SmallVector<DictionaryAttr> attrs;
  for (unsigned i = 0, e = function.getNumArguments(); i < e; ++i)
    attrs.push_back(without(function.getArgAttrDict(i), kShardingAttr));
  function.setAllArgAttrs(attrs);
  attrs.clear();
  for (unsigned i = 0, e = function.getNumResults(); i < e; ++i)
    attrs.push_back(without(function.getResultAttrDict(i), kShardingAttr));
  function.setAllResultAttrs(attrs);
}

static void keepGlobalTypes(func::FuncOp function, ArrayRef<Type> globals) {
  SmallVector<DictionaryAttr> attrs;
  for (auto [i, type] : llvm::enumerate(globals)) {
    NamedAttrList list(function.getResultAttrDict(i));
    list.set(kGlobalTypeAttr, TypeAttr::get(type));
    attrs.push_back(list.getDictionary(function.getContext()));
  }
  function.setAllResultAttrs(attrs);
}

LogicalResult Partitioner::run() {
  for (func::FuncOp function : module.getOps<func::FuncOp>())
    if (!function.isExternal() && failed(partitionFunction(function)))
      return failure();
  warnOfMissingRules();
  // Signatures change last: until then calls read the callees' shardings.
  for (func::FuncOp function : module.getOps<func::FuncOp>()) {
    if (function.isExternal())
      continue;
    Operation *ret = function.getBody().front().getTerminator();
    SmallVector<Type> globals(function.getResultTypes());
    function.setType(builder.getFunctionType(
        function.getBody().front().getArgumentTypes(), ret->getOperandTypes()));
    if (mesh.name.empty())
      continue;
    if (function.isPrivate())
      dropShardings(function);
    else
      keepGlobalTypes(function, globals);
  }
  return success();
}

void Partitioner::warnOfMissingRules() {
  for (auto &[name, missing] : missingRules)
    emitWarning(missing.first)
        << "'" << name << "' has no sharding rule, so every rank computes all "
        << "of it (" << missing.times
        << (missing.times == 1 ? " time" : " times")
        << "); bringing its operands whole to each rank sends " << missing.bytes
        << " bytes: attach ShardingRuleOpInterface to cut it";
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

const FactorChoice &Partitioner::choose(Operation *op,
                                        const ShardingRule &rule) {
  // The choice is about the cut alone. Axes along which summands pass from an
  // operand to a result are left alone.
  AxisList incoming, reserved;
  for (auto [i, value] : llvm::enumerate(shardedOperands(op)))
    if (isTensor(value) && !llvm::is_contained(rule.accumulators, i))
      llvm::append_range(incoming, declared(value).partial);
  for (Value value : op->getResults())
    if (isTensor(value) && !incoming.empty())
      for (AxisRef axis : declared(value).partial)
        if (overlaps(incoming, axis))
          reserved.push_back(axis);
  std::vector<PlacedTensor> placed;
  ShardingRule tensors = tensorsOnly(op, rule);
  auto place = [&](Value value, bool isResult) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type)
      return;
    PlacedTensor &to = placed.emplace_back();
    to.sharding = declared(value);
    if (!isResult)
      to.sharding.partial.clear();
    to.shape.assign(type.getShape().begin(), type.getShape().end());
    to.elementBytes = elementBytes(type.getElementType());
    Operation *def = value.getDefiningOp();
    to.cheap = def && isCheap(def);
  };
  for (Value value : shardedOperands(op))
    place(value, false);
  for (Value value : op->getResults())
    place(value, true);
  return chooser.choose(tensors, placed, reserved);
}

FailureOr<SmallVector<Value>> Partitioner::buildOp(Operation *op,
                                                   const ShardingRule &rule,
                                                   const FactorChoice &choice,
                                                   ArrayRef<Value> operands,
                                                   ArrayRef<AxisList> partial) {
  LocalBuilder local(builder, op->getLoc(), mesh, rule, choice.axes, operands,
                     scalars);
  local.partial = partial;
  auto cause = [&] {
    return comm::CauseAttr::get(
        module.getContext(), op->getName().getStringRef(),
        op->getNumResults() ? nameOf(op->getResult(0)) : "",
        "a dim that it slices, pads or joins is cut", "leave that dim whole");
  };
  local.cause = cause;
  if (auto interface = dyn_cast<ShardingRuleOpInterface>(op))
    return interface.partition(local);
  return partitionByCloning(op, local);
}

void Partitioner::copyScalarOp(Operation *op) {
  Operation *clone = builder.clone(*op, scalars);
  clone->removeDiscardableAttr(kShardingAttr);
}

static bool touchesTensors(Operation *op) {
  return llvm::any_of(op->getResults(), isTensor) ||
         llvm::any_of(shardedOperands(op), isTensor);
}

/// An accumulator that lies as `own` may stay summands along the axes along
/// which the op leaves some itself.
static void joinSummands(Sharding &needed, const ShardingRule &rule,
                         const FactorChoice &choice, const Sharding &own) {
  if (!needed.partial.empty() && needed.kind != own.kind)
    return;
  AxisList reduced;
  for (auto [factor, axes] : llvm::zip_equal(rule.factors, choice.axes))
    if (factor.kind == FactorKind::Reduction && factor.reduction == own.kind)
      llvm::append_range(reduced, axes);
  llvm::append_range(
      needed.partial,
      withoutAxes(own.partial, withoutAxes(own.partial, reduced)));
  needed.partial = normalizeAxisSet(needed.partial);
  needed.kind = own.kind;
}

LogicalResult Partitioner::partitionOp(Operation *op) {
  if (!touchesTensors(op)) {
    copyScalarOp(op);
    return success();
  }
  if (op->getNumRegions() != 0 && !hasRule(op) &&
      llvm::any_of(op->getResults(), isTensor))
    return op->emitOpError()
           << "has no sharding rule and holds a region; rewrite it with "
              "linalg ops or attach ShardingRuleOpInterface to it";
  ShardingRule rule = ruleOf(op);
  // A copy: operands that are made anew choose in between.
  FactorChoice choice = choose(op, rule);
  SmallVector<Value> values = shardedOperands(op);

  // Which operands come as summands, because the results may be summands too.
  AxisList passed;
  llvm::SmallBitVector partial(values.size());
  ReductionKind kind = ReductionKind::Sum;
  for (OpResult result : op->getResults()) {
    if (!isTensor(result))
      continue;
    const Sharding &wanted = declared(result);
    kind = wanted.kind;
    for (AxisRef axis : wanted.partial)
      if (llvm::none_of(choice.axes, [&](const AxisList &axes) {
            return overlaps(axes, axis);
          }))
        passed.push_back(axis);
  }
  if (!passed.empty()) {
    for (auto [i, value] : llvm::enumerate(values))
      if (isTensor(value)) {
        const Sharding &own = declared(value);
        if (own.kind == kind && llvm::any_of(own.partial, [&](AxisRef axis) {
              return overlaps(passed, axis);
            }))
          partial.set(i);
      }
    auto interface = dyn_cast<ShardingRuleOpInterface>(op);
    if (partial.none() || !interface ||
        !interface.passesPartial(kind, partial)) {
      partial.reset();
      passed.clear();
    }
  }

  SmallVector<Value> operands;
  SmallVector<AxisList> summands(values.size());
  int64_t sentBefore = sentBytes;
  for (auto [i, value] : llvm::enumerate(values)) {
    if (!isTensor(value)) {
      operands.push_back(scalars.lookup(value));
      continue;
    }
    Sharding needed = impliedSharding(rule, i, choice.axes, mesh);
    if (partial.test(i)) {
      needed.partial = passed;
      needed.kind = kind;
    }
    if (llvm::is_contained(rule.accumulators, i))
      joinSummands(needed, rule, choice, declared(value));
    summands[i] = needed.partial;
    FailureOr<Value> block =
        get(value, needed,
            {op, [&] {
               return Reason{(op->getName().getStringRef() +
                              " computes with it as " + toString(mesh, needed))
                                 .str(),
                             "annotate it with " + toString(mesh, needed) +
                                 ", or the op's other tensors like it"};
             }});
    if (failed(block))
      return failure();
    operands.push_back(*block);
  }
  if (!hasRule(op) && mesh.numRanks() > 1) {
    auto [it, isNew] = missingRules.try_emplace(op->getName().getStringRef(),
                                                MissingRule{op->getLoc()});
    ++it->second.times;
    it->second.bytes += sentBytes - sentBefore;
  }
  FailureOr<SmallVector<Value>> results =
      buildOp(op, rule, choice, operands, summands);
  if (failed(results))
    return failure();
  for (auto [result, block] : llvm::zip_equal(op->getResults(), *results)) {
    if (!isTensor(result)) {
      scalars.map(result, block);
      continue;
    }
    unsigned tensor = rule.operands.size() + result.getResultNumber();
    Sharding made = impliedSharding(rule, tensor, choice.axes, mesh);
    if (!passed.empty()) {
      llvm::append_range(made.partial, passed);
      made.partial = normalizeAxisSet(made.partial);
      made.kind = kind;
    }
    define(result, made, block);
    const Sharding &wanted = declared(result);
    if (canRemake(result))
      continue;
    auto reason = [&] {
      if (!made.partial.empty()) {
        std::string axes = toString(mesh, made.partial);
        return Reason{"a dim that it reduces is cut over " + axes,
                      "leave that dim whole over " + axes};
      }
      return Reason{"it is made as " + toString(mesh, made) +
                        " and declared as " + toString(mesh, wanted),
                    "declare it as " + toString(mesh, made)};
    };
    if (failed(get(result, wanted, {op, reason})))
      return failure();
  }
  return success();
}

LogicalResult Partitioner::partitionLoop(scf::ForOp loop) {
  SmallVector<Value> inits;
  auto reasonOf = [](StringRef what) {
    return Reason{("the loop carries it as its result lies; " + what).str(),
                  "annotate it like the result of the loop"};
  };
  auto isInit = [&] { return reasonOf("this is its first value"); };
  auto isNext = [&] { return reasonOf("this is its next value"); };
  for (auto [init, result] :
       llvm::zip_equal(loop.getInitArgs(), loop.getResults())) {
    if (!isTensor(init)) {
      inits.push_back(scalars.lookup(init));
      continue;
    }
    FailureOr<Value> block = get(init, declared(result), {loop, isInit});
    if (failed(block))
      return failure();
    inits.push_back(*block);
  }
  auto clone = scf::ForOp::create(
      builder, loop.getLoc(), scalars.lookup(loop.getLowerBound()),
      scalars.lookup(loop.getUpperBound()), scalars.lookup(loop.getStep()),
      inits, [](OpBuilder &b, Location loc, Value, ValueRange args) {
        scf::YieldOp::create(b, loc, args);
      });
  if (loop.getUnsignedCmp())
    clone.setUnsignedCmp(true);
  Operation *placeholder = clone.getBody()->getTerminator();
  scalars.map(loop.getInductionVar(), clone.getInductionVar());
  for (auto [arg, block, result] :
       llvm::zip_equal(loop.getRegionIterArgs(), clone.getRegionIterArgs(),
                       loop.getResults())) {
    block.setLoc(arg.getLoc());
    if (isTensor(arg))
      define(arg, declared(result), block);
    else
      scalars.map(arg, block);
  }
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(placeholder);
    if (failed(partitionBlock(*loop.getBody())))
      return failure();
    SmallVector<Value> yielded;
    for (auto [value, result] :
         llvm::zip_equal(loop.getYieldedValues(), loop.getResults())) {
      if (!isTensor(value)) {
        yielded.push_back(scalars.lookup(value));
        continue;
      }
      FailureOr<Value> block = get(value, declared(result), {loop, isNext});
      if (failed(block))
        return failure();
      yielded.push_back(*block);
    }
    placeholder->setOperands(yielded);
  }
  for (auto [result, block] :
       llvm::zip_equal(loop.getResults(), clone.getResults())) {
    if (isTensor(result))
      define(result, declared(result), block);
    else
      scalars.map(result, block);
  }
  return success();
}

LogicalResult Partitioner::partitionCall(func::CallOp call) {
  auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee());
  SmallVector<Value> operands;
  for (auto [i, operand] : llvm::enumerate(call.getOperands())) {
    if (!isTensor(operand)) {
      operands.push_back(scalars.lookup(operand));
      continue;
    }
    Sharding needed = declaredArg(callee, i);
    needed.partial.clear();
    FailureOr<Value> block =
        get(operand, needed,
            {call, [&] {
               return Reason{"'" + callee.getName().str() + "' takes it as " +
                                 toString(mesh, needed),
                             "annotate it with " + toString(mesh, needed)};
             }});
    if (failed(block))
      return failure();
    operands.push_back(*block);
  }
  SmallVector<Type> types;
  for (OpResult result : call.getResults())
    types.push_back(
        isTensor(result)
            ? blockType(result.getType(),
                        declaredResult(callee, result.getResultNumber()))
            : result.getType());
  auto clone = func::CallOp::create(builder, call.getLoc(),
                                    call.getCalleeAttr(), types, operands);
  for (OpResult result : call.getResults()) {
    Value block = clone.getResult(result.getResultNumber());
    if (isTensor(result))
      define(result, declaredResult(callee, result.getResultNumber()), block);
    else
      scalars.map(result, block);
  }
  return success();
}

LogicalResult Partitioner::partitionBlock(Block &block) {
  for (Operation &op : block.without_terminator()) {
    LogicalResult ok =
        llvm::TypeSwitch<Operation *, LogicalResult>(&op)
            .Case<scf::ForOp>([&](auto loop) { return partitionLoop(loop); })
            .Case<func::CallOp>([&](auto call) { return partitionCall(call); })
            .Case<ConstraintOp>([&](auto constraint) {
              return constraint.getBecause() ? partitionMove(constraint)
                                             : partitionOp(constraint);
            })
            .Case<GroupOp>([](auto) { return success(); })
            .Default([&](Operation *other) { return partitionOp(other); });
    if (failed(ok))
      return failure();
  }
  return success();
}

LogicalResult Partitioner::partitionFunction(func::FuncOp function) {
  versions.clear();
  scalars.clear();
  // Names are all that is asked for; the function needs no proof that it holds.
  names =
      std::make_unique<AsmState>(function, OpPrintingFlags().assumeVerified());
  Block *old = &function.getBody().front();
  Block *fresh = new Block;
  function.getBody().push_back(fresh);
  bool isEntry = function.isPublic() && !mesh.name.empty();
  SmallVector<DictionaryAttr> attrs;
  for (BlockArgument arg : old->getArguments()) {
    attrs.push_back(function.getArgAttrDict(arg.getArgNumber()));
    if (!isTensor(arg)) {
      scalars.map(arg, fresh->addArgument(arg.getType(), arg.getLoc()));
      continue;
    }
    Sharding sharding = declaredArg(function, arg.getArgNumber());
    sharding.partial.clear();
    define(
        arg, sharding,
        fresh->addArgument(blockType(arg.getType(), sharding), arg.getLoc()));
    if (isEntry) {
      NamedAttrList list(attrs.back());
      list.set(kGlobalTypeAttr, TypeAttr::get(arg.getType()));
      list.set(kShardingAttr,
               toShardingAttr(module.getContext(), mesh, sharding));
      attrs.back() = list.getDictionary(module.getContext());
    }
  }
  // All at once: to set one is to write the list of all anew.
  if (isEntry)
    function.setAllArgAttrs(attrs);
  builder.setInsertionPointToEnd(fresh);
  if (failed(partitionBlock(*old)))
    return failure();
  SmallVector<Value> returned;
  auto ret = cast<func::ReturnOp>(old->getTerminator());
  for (auto [i, value] : llvm::enumerate(ret.getOperands())) {
    if (!isTensor(value)) {
      returned.push_back(scalars.lookup(value));
      continue;
    }
    Sharding needed = declaredResult(function, i);
    FailureOr<Value> block =
        get(value, needed,
            {ret, [&, i = i] {
               return Reason{"it is returned as " + toString(mesh, needed),
                             "declare result " + std::to_string(i) +
                                 " as it is computed"};
             }});
    if (failed(block))
      return failure();
    returned.push_back(*block);
  }
  func::ReturnOp::create(builder, ret.getLoc(), returned);
  versions.clear();
  scalars.clear();
  names.reset();
  old->dropAllDefinedValueUses();
  old->erase();
  return success();
}

} // namespace cleave

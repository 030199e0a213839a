//===- Storage.cpp - Which tensors of a function share a buffer -----------===//
// The analysis: groups, moments, ties, and the decision to share. What follows
// from it (offsets, attributes) is in FramePlan.cpp.
//===----------------------------------------------------------------------===//
#include "passes/memory/Storage.h"
#include "dialects/cleave/Cleave.h"
#include "dialects/comm/Comm.h"
#include "passes/dispatch/Groups.h"

using namespace mlir;
using namespace cleave;

static bool isTensor(Value value) {
  return isa<RankedTensorType>(value.getType());
}

int64_t cleave::bytesOf(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  Type element = tensor.getElementType();
  int64_t bits = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  return tensor.getNumElements() * llvm::divideCeil(bits, 8);
}

std::string cleave::residentName(DictionaryAttr attributes) {
  if (!attributes)
    return "";
  if (auto state = attributes.getAs<StringAttr>(kStateAttr))
    return "state " + state.str();
  auto weight = attributes.getAs<StringAttr>(kWeightAttr);
  if (!weight)
    return "";
  std::string name = "weight " + weight.str();
  if (auto packed = attributes.getAs<StringAttr>(dispatch::kPackedAttr))
    name += kPackedSeparator + packed.str();
  return name;
}

static Value viewedBy(Operation *op) {
  return op && isViewOp(op) ? op->getOperand(0) : Value();
}

Value cleave::viewSource(Value value) {
  while (Value source = viewedBy(value.getDefiningOp()))
    value = source;
  return value;
}

std::optional<int64_t> cleave::viewOffset(Value value) {
  int64_t bytes = 0;
  while (Value source = viewedBy(value.getDefiningOp())) {
    auto slice = value.getDefiningOp<tensor::ExtractSliceOp>();
    value = source;
    if (!slice)
      continue;
    RankedTensorType type = slice.getSourceType();
    int64_t stride = std::max<int64_t>(bytesOf(type), 1);
    for (auto [size, offset] :
         llvm::zip(type.getShape(), slice.getStaticOffsets())) {
      stride /= std::max<int64_t>(size, 1);
      if (ShapedType::isDynamic(offset))
        return std::nullopt;
      bytes += offset * stride;
    }
  }
  return bytes;
}

/// Whether a `tensor.empty` only names the type of a destination.
static bool isPlainDest(Value value) {
  return value.getDefiningOp<tensor::EmptyOp>() != nullptr;
}

/// Whether this is the `tensor.empty` of such a destination: no buffer.
static bool isNoBuffer(Operation *op) {
  if (!isa_and_nonnull<tensor::EmptyOp>(op))
    return false;
  return llvm::all_of(op->getUsers(), [](Operation *user) {
    return isa<dispatch::CallOp, comm::RealignOp>(user);
  });
}

//===----------------------------------------------------------------------===//
// Analysis
//===----------------------------------------------------------------------===//

void Storage::number(Block &block) {
  for (Operation &op : block) {
    moments[&op] = now++;
    if (auto loop = dyn_cast<scf::ForOp>(op)) {
      number(*loop.getBody());
      loopEnds[loop] = now++;
    }
  }
}

void Storage::addGroup(Value value) {
  Operation *op = value.getDefiningOp();
  if (!isTensor(value) || isNoBuffer(op))
    return;
  if (Value source = viewedBy(op)) {
    unsigned group = groupOf(source);
    groupIds[value] = group;
    addUses(value, group);
    return;
  }
  Group group;
  group.root = value;
  group.bytes = bytesOf(value.getType());
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Operation *parent = argument.getOwner()->getParentOp();
    group.begin = parent == func ? -1 : moments.at(parent);
  } else {
    auto end = loopEnds.find(op);
    group.begin = end == loopEnds.end() ? moments.at(op) : end->second;
  }
  group.end = group.begin;
  group.buffer = buffers.size();
  unsigned id = groups.size();
  buffers.emplace_back();
  buffers.back().groups.push_back(id);
  if (op && isa<arith::ConstantOp>(op)) {
    buffers.back().base = Base::Constant;
    buffers.back().writable = false;
  }
  groups.push_back(group);
  groupIds[value] = id;
  addUses(value, id);
}

int64_t Storage::momentOf(Operation *user, Block *home) const {
  int64_t moment = moments.at(user);
  // Read again in each iteration.
  while (user->getBlock() != home) {
    user = user->getParentOp();
    moment = loopEnds.at(user);
  }
  return moment;
}

void Storage::addUses(Value value, unsigned group) {
  Block *home = groups[group].root.getParentBlock();
  for (Operation *user : value.getUsers())
    groups[group].end = std::max(groups[group].end, momentOf(user, home));
}

void Storage::addGroups(Block &block) {
  for (BlockArgument argument : block.getArguments())
    addGroup(argument);
  for (Operation &op : block) {
    if (auto loop = dyn_cast<scf::ForOp>(op))
      addGroups(*loop.getBody());
    for (Value result : op.getResults())
      addGroup(result);
  }
}

bool Storage::readOnceBy(Operation *op, unsigned group) const {
  return llvm::count_if(op->getOperands(), [&](Value operand) {
           auto it = groupIds.find(operand);
           return it != groupIds.end() && it->second == group;
         }) == 1;
}

void Storage::tie(OpOperand &use, Value result) {
  unsigned from = groupOf(use.get()), to = groupOf(result);
  if (from == to)
    return;
  ties.push_back({&use, from, to});
  if (readOnceBy(use.getOwner(), from) && isWhole(use.get()))
    mayOverwrite.insert({from, to});
}

bool Storage::isWhole(Value value) const {
  return bytesOf(value.getType()) == groups[groupOf(value)].bytes;
}

void Storage::addTies(Operation *op) {
  if (auto call = dyn_cast<dispatch::CallOp>(op)) {
    for (auto [dest, result] :
         llvm::zip(call.getDestsMutable(), call.getResults()))
      if (!isPlainDest(dest.get()))
        tie(dest, result);
  } else if (auto realign = dyn_cast<comm::RealignOp>(op)) {
    if (!isPlainDest(realign.getInit()))
      tie(realign.getInitMutable(), realign.getResult());
  } else if (auto call = dyn_cast<func::CallOp>(op)) {
    for (auto [argument, result] : context.ties[call.getCallee()])
      tie(call->getOpOperand(argument), call.getResult(result));
  } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
    for (auto [init, argument, result] :
         llvm::zip(loop.getInitArgsMutable(), loop.getRegionIterArgs(),
                   loop.getResults())) {
      if (!isTensor(result))
        continue;
      bool merged = tryMerge(groups[groupOf(argument)].buffer,
                             groups[groupOf(result)].buffer);
      assert(merged && "a loop's result follows its argument");
      (void)merged;
      tie(init, argument);
    }
    addTies(*loop.getBody());
    auto yield = cast<scf::YieldOp>(loop.getBody()->getTerminator());
    for (auto [use, argument] :
         llvm::zip(yield->getOpOperands(), loop.getRegionIterArgs()))
      if (isTensor(argument))
        tie(use, argument);
  }
}

void Storage::addTies(Block &block) {
  for (Operation &op : block)
    addTies(&op);
}

std::optional<unsigned> Storage::donatedArgument(Value value) {
  while (true) {
    value = viewSource(value);
    if (auto argument = dyn_cast<BlockArgument>(value))
      return argument.getOwner() == &func.getBody().front()
                 ? std::optional(argument.getArgNumber())
                 : std::nullopt;
    auto result = cast<OpResult>(value);
    unsigned number = result.getResultNumber();
    Operation *op = result.getOwner();
    if (auto call = dyn_cast<dispatch::CallOp>(op)) {
      value = call.getDests()[number];
    } else if (auto realign = dyn_cast<comm::RealignOp>(op)) {
      value = realign.getInit();
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      value = loop.getInitArgs()[number];
    } else if (auto call = dyn_cast<func::CallOp>(op)) {
      const auto &pairs = context.ties[call.getCallee()];
      const auto *pair = llvm::find_if(
          pairs, [&](const auto &pair) { return pair.second == number; });
      if (pair == pairs.end())
        return std::nullopt;
      value = call.getOperand(pair->first);
    } else {
      return std::nullopt;
    }
  }
}

void Storage::placeArguments() {
  donated.clear();
  Operation *ret = func.getBody().front().getTerminator();
  if (!isEntry())
    for (OpOperand &use : ret->getOpOperands())
      if (isTensor(use.get()))
        if (auto argument = donatedArgument(use.get());
            argument && !notDonated.contains(*argument) &&
            func.getArgumentTypes()[*argument] == use.get().getType())
          donated.try_emplace(*argument, use.getOperandNumber());
  llvm::StringMap<unsigned> stateResults;
  for (unsigned i = 0, e = func.getNumResults(); i < e; ++i)
    if (auto state = func.getResultAttrOfType<StringAttr>(i, kStateAttr))
      stateResults[state.getValue()] = i;
  for (BlockArgument argument : func.getArguments()) {
    if (!isTensor(argument))
      continue;
    unsigned i = argument.getArgNumber();
    Buffer &buffer = bufferOf(argument);
    std::string name = residentName(func.getArgAttrDict(i));
    if (!name.empty()) {
      auto state = func.getArgAttrOfType<StringAttr>(i, kStateAttr);
      buffer.base = Base::Resident;
      buffer.value = context.resident.lookup(name);
      buffer.writable = state && stateResults.contains(state.getValue());
    } else if (isEntry()) {
      buffer.pinned = true;
    } else {
      buffer.base = Base::Arg;
      buffer.value = i;
      buffer.writable = donated.contains(i);
    }
  }
}

void Storage::analyze() {
  moments.clear();
  loopEnds.clear();
  groupIds.clear();
  groups.clear();
  buffers.clear();
  ties.clear();
  mayOverwrite.clear();
  copies.clear();
  now = 0;
  Block &body = func.getBody().front();
  number(body);
  addGroups(body);
  placeArguments();
  addTies(body);
  mergeTies();
  if (func->hasAttr(dispatch::kInitAttr))
    settlePackedWeights();
  else if (isEntry())
    settleEntryResults();
  else
    settleResults();
}

//===----------------------------------------------------------------------===//
// Decisions
//===----------------------------------------------------------------------===//

/// Whether groups, sorted by begin, are alive one after the other.
bool Storage::fits(ArrayRef<unsigned> sorted) const {
  for (auto [first, second] : llvm::zip(sorted, sorted.drop_front())) {
    const Group &a = groups[first], &b = groups[second];
    if (a.begin == b.begin || a.end > b.begin)
      return false;
    if (a.end == b.begin && !mayOverwrite.contains({first, second}))
      return false;
  }
  return true;
}

bool Storage::tryMerge(unsigned a, unsigned b) {
  if (a == b)
    return true;
  Buffer &target = buffers[a], &source = buffers[b];
  if (!target.writable || !source.writable)
    return false;
  bool movable = target.base == Base::Frame || source.base == Base::Frame;
  bool stays = (target.pinned && source.base != Base::Frame) ||
               (source.pinned && target.base != Base::Frame);
  if (!movable || stays)
    return false;
  SmallVector<unsigned, 2> merged(target.groups);
  llvm::append_range(merged, source.groups);
  llvm::sort(merged, [&](unsigned x, unsigned y) {
    return std::pair(groups[x].begin, x) < std::pair(groups[y].begin, y);
  });
  if (!fits(merged))
    return false;
  for (unsigned group : source.groups)
    groups[group].buffer = a;
  target.groups = std::move(merged);
  if (target.base == Base::Frame) {
    target.base = source.base;
    target.value = source.value;
  }
  target.pinned |= source.pinned;
  source.merged = true;
  source.groups.clear();
  return true;
}

void Storage::mergeTies() {
  for (const Tie &tie : ties) {
    bool whole = isWhole(tie.use->get());
    if (!whole || !tryMerge(groups[tie.to].buffer, groups[tie.from].buffer))
      copies.push_back(tie.use);
  }
}

void Storage::settleEntryResults() {
  Operation *ret = func.getBody().front().getTerminator();
  llvm::StringMap<BlockArgument> states;
  for (BlockArgument argument : func.getArguments())
    if (auto state = func.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                       kStateAttr))
      states[state.getValue()] = argument;
  SmallVector<OpOperand *> outputs;
  for (OpOperand &use : ret->getOpOperands()) {
    auto state = func.getResultAttrOfType<StringAttr>(use.getOperandNumber(),
                                                      kStateAttr);
    if (!state || !states.contains(state.getValue())) {
      outputs.push_back(&use);
      continue;
    }
    Value argument = states[state.getValue()];
    if (groupOf(argument) == groupOf(use.get()))
      continue;
    if (!isWhole(use.get()) || !tryMerge(groups[groupOf(argument)].buffer,
                                         groups[groupOf(use.get())].buffer))
      copies.push_back(&use);
  }
  for (OpOperand *use : outputs)
    if (bufferOf(use->get()).base != Base::Frame || !viewOffset(use->get()))
      copies.push_back(use);
}

void Storage::settlePackedWeights() {
  Operation *ret = func.getBody().front().getTerminator();
  for (OpOperand &use : ret->getOpOperands()) {
    Buffer &buffer = bufferOf(use.get());
    assert(buffer.base == Base::Frame && "packed by a kernel or copied");
    buffer.base = Base::Resident;
    buffer.value = context.resident.lookup(func.getResultAttrOfType<StringAttr>(
        use.getOperandNumber(), dispatch::kResidentAttr));
  }
}

void Storage::settleResults() {
  Operation *ret = func.getBody().front().getTerminator();
  for (OpOperand &use : ret->getOpOperands()) {
    if (!isTensor(use.get()))
      continue;
    unsigned number = use.getOperandNumber();
    Buffer &buffer = bufferOf(use.get());
    auto taken = donated.find(buffer.value);
    if (buffer.base == Base::Arg && taken != donated.end() &&
        taken->second == number && isWhole(use.get()))
      continue;
    if (buffer.base != Base::Frame || !isWhole(use.get())) {
      copies.push_back(&use);
      continue;
    }
    buffer.base = Base::Result;
    buffer.value = number;
  }
  // An argument that is overwritten without becoming its result would surprise
  // the caller: it is read-only then.
  for (auto [argument, number] : donated) {
    Buffer &buffer = bufferOf(func.getArgument(argument));
    Buffer &result = bufferOf(ret->getOperand(number));
    if (&buffer != &result)
      notDonated.insert(argument);
  }
}

void Storage::copyBefore(OpOperand &use) {
  OpBuilder b(use.getOwner());
  Value value = use.get();
  use.set(dispatch::CopyOp::create(b, value.getLoc(), value.getType(), value));
}

void Storage::reuseInputs(dispatch::CallOp call) {
  auto kernel =
      context.symbols->lookup<func::FuncOp>(call.getCalleeAttr().getAttr());
  for (auto [output, dest] : llvm::enumerate(call.getDests())) {
    if (!isPlainDest(dest))
      continue;
    unsigned to = groupOf(call.getResult(output));
    for (auto [input, value] : llvm::enumerate(call.getInputs())) {
      if (!isTensor(value) || !isWhole(value) ||
          bytesOf(value.getType()) != groups[to].bytes)
        continue;
      unsigned from = groupOf(value);
      if (groups[from].end != groups[to].begin || !readOnceBy(call, from) ||
          !context.mayReuse(kernel, input, output))
        continue;
      mayOverwrite.insert({from, to});
      if (tryMerge(groups[to].buffer, groups[from].buffer))
        break;
      mayOverwrite.erase({from, to});
    }
  }
}

void Storage::reuseInputs() {
  func.walk([&](Operation *op) {
    if (auto call = dyn_cast<dispatch::CallOp>(op))
      return reuseInputs(call);
    auto reduce = dyn_cast<comm::AllReduceOp>(op);
    if (!reduce || !isWhole(reduce.getInput()))
      return;
    unsigned from = groupOf(reduce.getInput());
    unsigned to = groupOf(reduce.getResult());
    mayOverwrite.insert({from, to});
    if (!tryMerge(groups[to].buffer, groups[from].buffer))
      mayOverwrite.erase({from, to});
  });
}

/// Every `tensor.empty` has one reader, so that each is a buffer of its own.
static void splitEmpties(func::FuncOp func) {
  SmallVector<tensor::EmptyOp> empties;
  func.walk([&](tensor::EmptyOp op) { empties.push_back(op); });
  for (tensor::EmptyOp op : empties) {
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : op->getUses())
      uses.push_back(&use);
    for (OpOperand *use : ArrayRef(uses).drop_front(!uses.empty())) {
      OpBuilder b(use->getOwner());
      use->set(b.clone(*op)->getResult(0));
    }
    if (uses.empty())
      op.erase();
    else
      op->moveBefore(uses[0]->getOwner());
  }
}

LogicalResult Storage::run() {
  splitEmpties(func);
  while (true) {
    size_t blocked = notDonated.size();
    analyze();
    if (copies.empty() && notDonated.size() == blocked)
      break;
    if (notDonated.size() == blocked)
      for (OpOperand *use : copies)
        copyBefore(*use);
  }
  reuseInputs();
  if (failed(planFrame()))
    return failure();
  annotate();
  return success();
}

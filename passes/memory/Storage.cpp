//===- Storage.cpp - Which tensors of a function share a buffer -----------===//
// The analysis: groups, moments, ties. The decisions to share are in
// Sharing.cpp, what follows from them (offsets, attributes) in FramePlan.cpp.
//===----------------------------------------------------------------------===//
#include "passes/memory/Storage.h"
#include "dialects/cleave/Cleave.h"
#include "dialects/comm/Comm.h"
#include "passes/dispatch/Groups.h"

using namespace mlir;
using namespace cleave;

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

/// Whether this is the `tensor.empty` of such a destination: no buffer.
static bool isNoBuffer(Operation *op) {
  if (!isa_and_nonnull<tensor::EmptyOp>(op))
    return false;
  return llvm::all_of(op->getUses(), [](OpOperand &use) {
    auto realign = dyn_cast<comm::RealignOp>(use.getOwner());
    return realign ? &use == &realign.getInitMutable()
                   : isa<dispatch::CallOp>(use.getOwner());
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
    buffers.back().base = Base::constant;
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
      buffer.base = Base::resident;
      buffer.value = context.resident.lookup(name);
      buffer.writable = state && stateResults.contains(state.getValue());
    } else if (isEntry()) {
      buffer.pinned = true;
    } else {
      buffer.base = Base::arg;
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

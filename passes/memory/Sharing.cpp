//===- Sharing.cpp - The decisions of Storage -----------------------------===//
// Groups share a buffer where one takes over from the other; where they cannot,
// the value is copied. Results end where the caller wants them.
//===----------------------------------------------------------------------===//
#include "dialects/cleave/Cleave.h"
#include "dialects/comm/Comm.h"
#include "passes/memory/Storage.h"

using namespace mlir;
using namespace cleave;

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
  bool movable = target.base == Base::frame || source.base == Base::frame;
  bool stays = (target.pinned && source.base != Base::frame) ||
               (source.pinned && target.base != Base::frame);
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
  if (target.base == Base::frame) {
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
    if (bufferOf(use->get()).base != Base::frame || !viewOffset(use->get()))
      copies.push_back(use);
}

void Storage::settlePackedWeights() {
  Operation *ret = func.getBody().front().getTerminator();
  for (OpOperand &use : ret->getOpOperands()) {
    Buffer &buffer = bufferOf(use.get());
    assert(buffer.base == Base::frame && "packed by a kernel or copied");
    buffer.base = Base::resident;
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
    if (buffer.base == Base::arg && taken != donated.end() &&
        taken->second == number && isWhole(use.get()))
      continue;
    if (buffer.base != Base::frame || !isWhole(use.get())) {
      copies.push_back(&use);
      continue;
    }
    buffer.base = Base::result;
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

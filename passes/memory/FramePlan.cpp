//===- FramePlan.cpp - Offsets in the frame of a function -----------------===//
// The second half of Storage: buffers, the temporaries of kernels and the
// frames of callees get offsets, and the attributes that say so.
//===----------------------------------------------------------------------===//
#include "dialects/comm/Comm.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "passes/dispatch/Groups.h"
#include "passes/memory/Storage.h"

using namespace mlir;
using namespace cleave;

FailureOr<int64_t> StorageContext::scratchBytes(func::FuncOp kernel) {
  if (auto known =
          kernel->getAttrOfType<IntegerAttr>(dispatch::kScratchBytesAttr))
    return known.getInt();
  FailureOr<int64_t> bytes =
      kernels::planScratch(kernel, kernels::CpuIsa::get(isa));
  if (succeeded(bytes))
    kernel->setAttr(dispatch::kScratchBytesAttr,
                    Builder(kernel.getContext()).getI64IntegerAttr(*bytes));
  return bytes;
}

/// Keeps the order of the dims it reads, so that no fusion of ops makes an
/// element depend on one that lies elsewhere in a buffer of the same shape.
static bool keepsOrder(AffineMap map) {
  unsigned next = 0;
  return llvm::all_of(map.getResults(), [&](AffineExpr result) {
    auto dim = dyn_cast<AffineDimExpr>(result);
    bool ordered = dim && dim.getPosition() >= next;
    next = dim ? dim.getPosition() + 1 : next;
    return ordered;
  });
}

/// Whether the only reader of the argument is the first op, and all ops go
/// element by element: whatever the kernel computes later, in whichever buffer,
/// it needs at most the element of the argument that lies where it writes. A
/// fill or a reduction may write its destination before anything is read.
static bool isReadFirst(func::FuncOp kernel, unsigned input) {
  BlockArgument argument = kernel.getArgument(input);
  Operation *first = nullptr;
  for (Operation &op : kernel.getBody().front().without_terminator()) {
    if (isa<arith::ConstantOp, tensor::EmptyOp>(op))
      continue;
    auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
    if (!linalgOp || op.getNumResults() != 1 || isa<linalg::FillOp>(op) ||
        linalgOp.getNumParallelLoops() != linalgOp.getNumLoops() ||
        !llvm::all_of(linalgOp.getIndexingMapsArray(), keepsOrder) ||
        !llvm::all_of(readValues(&op), [&](Value value) {
          return !isa<RankedTensorType>(value.getType()) ||
                 llvm::is_contained(op.getOperands(), value);
        }))
      return false;
    if (first)
      continue;
    first = &op;
    for (OpOperand &operand : op.getOpOperands())
      if ((operand.get() == argument || linalgOp.isDpsInit(&operand)) &&
          !linalgOp.getMatchingIndexingMap(&operand).isIdentity())
        return false;
  }
  return first && llvm::all_of(argument.getUsers(),
                               [&](Operation *user) { return user == first; });
}

bool StorageContext::mayReuse(func::FuncOp kernel, unsigned input,
                              unsigned output) {
  std::string key = kernel.getSymName().str() + "|" + std::to_string(input) +
                    "|" + std::to_string(output);
  auto [it, fresh] = reuses.try_emplace(key, false);
  if (fresh)
    it->second = (kernel.getNumResults() == 1 && isReadFirst(kernel, input)) ||
                 kernels::mayReuseInput(kernel, input, output,
                                        kernels::CpuIsa::get(isa));
  return it->second;
}

LogicalResult Storage::planFrame() {
  std::vector<PlannedBuffer> planned;
  std::vector<unsigned> ids;
  for (auto [i, buffer] : llvm::enumerate(buffers)) {
    if (buffer.merged || buffer.base != Base::frame)
      continue;
    PlannedBuffer one{0, groups[buffer.groups.front()].begin, -1};
    for (unsigned group : buffer.groups) {
      one.bytes = std::max(one.bytes, groups[group].bytes);
      one.end = std::max(one.end, groups[group].end);
    }
    planned.push_back(one);
    ids.push_back(i);
  }
  SmallVector<std::pair<Operation *, StringRef>> extras;
  auto addMoment = [&](Operation *op, StringRef attribute, int64_t bytes) {
    if (bytes == 0)
      return;
    planned.push_back({bytes, moments.at(op), moments.at(op)});
    extras.push_back({op, attribute});
  };
  WalkResult walk = func.walk([&](Operation *op) {
    if (auto call = dyn_cast<dispatch::CallOp>(op)) {
      FailureOr<int64_t> bytes =
          context.scratchBytes(context.symbols->lookup<func::FuncOp>(
              call.getCalleeAttr().getAttr()));
      if (failed(bytes))
        return WalkResult::interrupt();
      addMoment(op, dispatch::kScratchAttr, *bytes);
    } else if (auto call = dyn_cast<func::CallOp>(op)) {
      addMoment(op, dispatch::kFrameAttr,
                context.frameBytes.lookup(call.getCallee()));
    }
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  MemoryPlan plan = planMemory(planned);
  frameBytes = planned.empty() ? 0 : plan.bytes;
  bufferOffsets.assign(buffers.size(), 0);
  for (auto [i, id] : llvm::enumerate(ids))
    bufferOffsets[id] = plan.offsets[i];
  Builder b(func.getContext());
  for (auto [i, extra] : llvm::enumerate(extras))
    extra.first->setAttr(extra.second,
                         b.getI64IntegerAttr(plan.offsets[ids.size() + i]));
  return success();
}

Attribute Storage::placeOf(Value value) {
  auto at = [&](Base base, int64_t number) {
    return dispatch::AtAttr::get(func.getContext(), base, number);
  };
  auto it = groupIds.find(value);
  if (it == groupIds.end())
    return at(Base::none, 0);
  unsigned id = groups[it->second].buffer;
  const Buffer &buffer = buffers[id];
  int64_t viewed = viewOffset(value).value_or(0);
  switch (buffer.base) {
  case Base::frame:
    return at(buffer.base, bufferOffsets[id] + viewed);
  case Base::resident:
    return at(buffer.base, buffer.value + viewed);
  case Base::arg:
  case Base::result:
    return at(buffer.base, buffer.value);
  case Base::constant:
  case Base::none:
    return at(buffer.base, 0);
  }
  llvm_unreachable("all bases are listed");
}

void Storage::annotate() {
  Builder b(func.getContext());
  func->setAttr(dispatch::kFrameBytesAttr, b.getI64IntegerAttr(frameBytes));
  context.frameBytes[func.getSymName()] = frameBytes;
  for (BlockArgument argument : func.getArguments())
    if (isTensor(argument.getType()))
      func.setArgAttr(argument.getArgNumber(), dispatch::kAtAttr,
                      placeOf(argument));
  Operation *ret = func.getBody().front().getTerminator();
  SmallVector<Attribute> pairs;
  for (OpOperand &use : ret->getOpOperands()) {
    if (!isTensor(use.get().getType()))
      continue;
    unsigned number = use.getOperandNumber();
    func.setResultAttr(number, dispatch::kAtAttr, placeOf(use.get()));
    const Buffer &buffer = bufferOf(use.get());
    if (buffer.base != Base::arg)
      continue;
    context.ties[func.getSymName()].push_back({buffer.value, number});
    pairs.push_back(b.getDenseI64ArrayAttr({buffer.value, number}));
  }
  if (!pairs.empty())
    func->setAttr(dispatch::kTiesAttr, b.getArrayAttr(pairs));
  func.walk([&](Operation *op) {
    if (op == func ||
        !llvm::any_of(op->getResults(), [](Value v) { return isTensor(v); }))
      return;
    SmallVector<Attribute> places;
    for (Value result : op->getResults())
      places.push_back(
          isTensor(result.getType())
              ? placeOf(result)
              : dispatch::AtAttr::get(b.getContext(), Base::none, 0));
    op->setAttr(dispatch::kAtAttr, b.getArrayAttr(places));
  });
}

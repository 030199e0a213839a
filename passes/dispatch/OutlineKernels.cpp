//===- OutlineKernels.cpp - Form groups and make each a kernel ------------===//
// Before: linalg ops and moves of data. After: calls of kernels in
// destination-passing style, views, scalars, and everything that talks to other
// ranks. A kernel's arguments are the tensors and scalars it reads, in the
// order of their first use, then one destination per result.
//===----------------------------------------------------------------------===//
#include "dialects/dispatch/Dispatch.h"
#include "passes/dispatch/Groups.h"
#include "passes/dispatch/Passes.h"
#define DEBUG_TYPE "cleave-outline-kernels"
namespace cleave {
#define GEN_PASS_DEF_OUTLINEKERNELS
#include "passes/dispatch/Passes.h.inc"
} // namespace cleave

using namespace mlir;
using namespace cleave;

namespace {
struct OutlineKernels : cleave::impl::OutlineKernelsBase<OutlineKernels> {
  using Base::Base;
  void runOnOperation() override;
};

/// Makes one group a function and a call.
class Outliner {
public:
  Outliner(Block &block, const Group &group, SymbolTable &symbols)
      : block(block), group(group), symbols(symbols) {
    members.insert_range(group.ops);
  }
  void run();

private:
  void collect(Operation *op);
  void findResults();
  Value startOf(Value result) const;
  func::FuncOp buildKernel();
  void replaceByCall(func::FuncOp kernel);

  Block &block;
  const Group &group;
  SymbolTable &symbols;
  llvm::SmallPtrSet<Operation *, 16> members;
  /// Members, the cheap producers they read, and scalar constants; in order.
  llvm::SetVector<Operation *> body;
  llvm::SetVector<Value> inputs;
  SmallVector<Value> results;
  /// Per result, the outside tensor that it starts from, or null.
  SmallVector<Value> starts;
};
} // namespace

static bool isScalarConstant(Operation *op) {
  return isa<arith::ConstantOp>(op) &&
         !isa<RankedTensorType>(op->getResult(0).getType());
}

void Outliner::collect(Operation *op) {
  if (body.contains(op))
    return;
  for (Value value : readValues(op)) {
    Operation *producer = value.getDefiningOp();
    bool inside =
        producer &&
        (members.contains(producer) || isScalarConstant(producer) ||
         (producer->getBlock() == &block && isCheapProducer(producer)) ||
         isa<tensor::EmptyOp>(producer));
    // Values of the op's own regions' ancestors never come up here.
    if (inside)
      collect(producer);
    else
      inputs.insert(value);
  }
  body.insert(op);
}

void Outliner::findResults() {
  for (Operation *op : group.ops)
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(), [&](Operation *user) {
            return !members.contains(block.findAncestorOpInBlock(*user));
          }))
        results.push_back(result);
}

/// The tensor outside of the group whose content `result` is made from, in
/// place: follows inits.
Value Outliner::startOf(Value result) const {
  Value value = result;
  while (Operation *op = value.getDefiningOp()) {
    if (!members.contains(op))
      break;
    auto dps = dyn_cast<DestinationStyleOpInterface>(op);
    if (!dps)
      return Value();
    value =
        dps.getDpsInitOperand(cast<OpResult>(value).getResultNumber())->get();
  }
  bool outside = inputs.contains(value);
  return outside && value.getType() == result.getType() ? value : Value();
}

func::FuncOp Outliner::buildKernel() {
  MLIRContext *context = block.getParentOp()->getContext();
  auto types = llvm::to_vector(ValueRange(inputs.getArrayRef()).getTypes());
  llvm::append_range(types, ValueRange(results).getTypes());
  Location loc = group.ops.back()->getLoc();
  OpBuilder b(context);
  auto kernel = func::FuncOp::create(
      b, loc, group.name(),
      FunctionType::get(context, types, ValueRange(results).getTypes()));
  kernel.setPrivate();
  kernel->setAttr(dispatch::kKernelAttr, b.getUnitAttr());
  Block *entry = kernel.addEntryBlock();
  IRMapping map;
  for (auto [input, argument] : llvm::zip(inputs, entry->getArguments()))
    map.map(input, argument);
  for (auto [i, start] : llvm::enumerate(starts))
    if (start)
      map.map(start, entry->getArgument(inputs.size() + i));
  b.setInsertionPointToEnd(entry);
  for (Operation *op : body)
    b.clone(*op, map);
  SmallVector<Value> returned = llvm::map_to_vector(
      results, [&](Value result) { return map.lookup(result); });
  func::ReturnOp::create(b, loc, returned);
  symbols.insert(kernel);
  return kernel;
}

void Outliner::replaceByCall(func::FuncOp kernel) {
  OpBuilder b(group.ops.back());
  SmallVector<Value> dests;
  for (auto [result, start] : llvm::zip(results, starts)) {
    auto type = cast<RankedTensorType>(result.getType());
    dests.push_back(start ? start
                          : tensor::EmptyOp::create(b, result.getLoc(),
                                                    type.getShape(),
                                                    type.getElementType())
                                .getResult());
  }
  auto call = dispatch::CallOp::create(
      b, results.empty() ? group.ops.back()->getLoc() : results.back().getLoc(),
      kernel.getSymName(), inputs.getArrayRef(), dests);
  for (auto [old, fresh] : llvm::zip(results, call.getResults()))
    old.replaceUsesWithIf(fresh, [&, old = old](OpOperand &use) {
      // Kernels still repeat a cheap producer that others need as a buffer.
      Operation *user = use.getOwner();
      return !isCheapProducer(old.getDefiningOp()) ||
             user->getBlock() != &block || !isKernelOp(user);
    });
  for (Operation *op : llvm::reverse(group.ops))
    if (op->use_empty())
      op->erase();
}

void Outliner::run() {
  for (Operation *op : group.ops)
    collect(op);
  findResults();
  llvm::SmallPtrSet<Value, 4> taken;
  for (Value result : results) {
    Value start = startOf(result);
    starts.push_back(start && taken.insert(start).second ? start : Value());
  }
  // What a destination holds is not passed a second time.
  for (Value start : taken)
    inputs.remove(start);
  replaceByCall(buildKernel());
}

static void eraseUnused(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

static void outlineBlock(Block &block, SymbolTable &symbols) {
  eraseUnused(block);
  for (Operation &op : block)
    if (auto loop = dyn_cast<scf::ForOp>(op))
      outlineBlock(*loop.getBody(), symbols);
  std::vector<Group> groups = formGroups(block);
  for (const Group &group : groups)
    Outliner(block, group, symbols).run();
  eraseUnused(block);
}

void OutlineKernels::runOnOperation() {
  SymbolTable symbols(getOperation());
  auto funcs = llvm::to_vector(getOperation().getOps<func::FuncOp>());
  for (func::FuncOp func : funcs)
    if (!func.isExternal() && !func->hasAttr(dispatch::kKernelAttr))
      outlineBlock(func.getBody().front(), symbols);
}

//===- RowNests.cpp - Rows of groups, and fills that they absorb ----------===//
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "passes/lower/kernels/Rows.h"

using namespace mlir;
using namespace cleave::kernels;

/// Emits a segment inside the parallel loops that only it has.
static void emitExtraLoops(Group &group, Segment &segment,
                           ArrayRef<Value> rowIvs, SmallVector<Value> &extraIvs,
                           NestEmitter &e, const CpuIsa &isa) {
  Member &first = group.members[segment.members.front()];
  unsigned depth = extraIvs.size();
  if (depth == first.extra.size())
    return emitSegment(group, segment, rowIvs, extraIvs, e, isa);
  int64_t size = first.nest.sizes[first.extra[depth]];
  e.loop(0, size, 1, {}, [&](Value iv, ValueRange) {
    extraIvs.push_back(iv);
    emitExtraLoops(group, segment, rowIvs, extraIvs, e, isa);
    extraIvs.pop_back();
    return SmallVector<Value>();
  });
}

static void emitRow(Group &group, unsigned depth, SmallVector<Value> &rowIvs,
                    NestEmitter &e, const CpuIsa &isa) {
  if (depth == group.rowSizes.size()) {
    for (Segment &segment : group.segments) {
      SmallVector<Value> extraIvs;
      emitExtraLoops(group, segment, rowIvs, extraIvs, e, isa);
    }
    return;
  }
  e.loop(0, group.rowSizes[depth], 1, {}, [&](Value iv, ValueRange) {
    rowIvs.push_back(iv);
    emitRow(group, depth + 1, rowIvs, e, isa);
    rowIvs.pop_back();
    return SmallVector<Value>();
  });
}

static void emitGroup(Group &group, OpBuilder &b, const CpuIsa &isa) {
  NestEmitter e(b, group.members.front().nest.op.getLoc());
  // Flat views stand before all loops.
  Operation *marker = arith::ConstantIndexOp::create(b, e.loc, 0);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(marker);
    e.setHome();
  }
  SmallVector<Value> rowIvs;
  emitRow(group, 0, rowIvs, e, isa);
}

/// A fill whose whole effect is the start of the next nest that writes its
/// buffer becomes part of that nest.
static void absorbFills(std::vector<Nest> &nests,
                        SmallVectorImpl<Operation *> &dead) {
  for (size_t i = 0; i < nests.size(); ++i) {
    auto fill = dyn_cast<linalg::FillOp>(nests[i].op.getOperation());
    if (!fill)
      continue;
    Value buffer = fill.getOutputs()[0], root = rootOf(buffer);
    for (size_t j = i + 1; j < nests.size(); ++j) {
      Nest &next = nests[j];
      bool touches = false, starts = false;
      next.body().walk([&](memref::LoadOp load) {
        touches |= rootOf(load.getMemRef()) == root;
      });
      for (auto [k, access] : llvm::enumerate(next.accesses)) {
        if (access.root != root)
          continue;
        touches = true;
        // Each element of the buffer must be written, through one loop each.
        int64_t covered = 1;
        for (auto [stride, size] : llvm::zip_equal(access.strides, next.sizes))
          covered *= stride ? size : 1;
        auto type = cast<MemRefType>(buffer.getType());
        starts = k >= next.numInputs() && access.buffer == buffer &&
                 fill.getInputs()[0].getType() == access.element &&
                 covered == type.getNumElements() &&
                 next.op.getMatchingIndexingMap(&next.op->getOpOperand(k))
                     .isProjectedPermutation();
        if (starts)
          next.fills[k - next.numInputs()] = fill.getInputs()[0];
      }
      unsigned uses = llvm::count_if(
          next.accesses, [&](const Access &a) { return a.root == root; });
      if (starts && uses == 1) {
        dead.push_back(fill);
        nests[i].op = nullptr;
      } else if (starts) {
        for (Value &v : next.fills)
          if (v == fill.getInputs()[0])
            v = nullptr;
      }
      if (touches)
        break;
    }
  }
  llvm::erase_if(nests, [](Nest &nest) { return !nest.op; });
}

/// Reductions that go through memory need the fill after all.
static void restoreFills(Group &group, OpBuilder &b) {
  for (Member &member : group.members) {
    if (member.reducesAll() || !member.nest.hasReduction())
      continue;
    for (auto [o, fill] : llvm::enumerate(member.nest.fills))
      if (fill) {
        Access &access = member.nest.accesses[member.nest.numInputs() + o];
        linalg::FillOp::create(b, member.nest.op.getLoc(), fill, access.buffer);
        fill = nullptr;
      }
  }
}

static void emitRun(std::vector<Nest> nests, const CpuIsa &isa) {
  if (nests.empty())
    return;
  Operation *last = nests.back().op;
  SmallVector<Operation *> dead;
  absorbFills(nests, dead);
  OpBuilder b(last);
  b.setInsertionPointAfter(last);
  for (Nest &nest : nests)
    dead.push_back(nest.op);
  for (Group &group : formGroups(std::move(nests))) {
    restoreFills(group, b);
    shrinkTemporaries(group, b);
    planStreams(group);
    emitGroup(group, b, isa);
  }
  for (Operation *op : dead)
    op->erase();
}

/// Ops that may stand between the nests of a run.
static bool isTransparent(Operation &op) {
  return isPure(&op) || isa<memref::AllocOp>(op);
}

LogicalResult cleave::kernels::emitRowNests(func::FuncOp kernel,
                                            const CpuIsa &isa) {
  SmallVector<Block *> blocks;
  kernel.walk([&](Block *block) {
    if (!isa_and_nonnull<linalg::LinalgOp>(block->getParentOp()))
      blocks.push_back(block);
  });
  for (Block *block : blocks) {
    std::vector<std::vector<Nest>> runs(1);
    for (Operation &op : *block) {
      auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
      std::optional<Nest> nest;
      if (linalgOp && (nest = analyse(linalgOp)))
        runs.back().push_back(std::move(*nest));
      else if (!isTransparent(op))
        runs.emplace_back();
    }
    for (std::vector<Nest> &run : runs)
      emitRun(std::move(run), isa);
  }
  fenceStreams(kernel);
  return success();
}

//===- Groups.cpp - Which ops are computed together -----------------------===//
#include "passes/dispatch/Groups.h"
#include "mlir/Transforms/RegionUtils.h"
#include "passes/lower/kernels/Kernels.h"

using namespace mlir;
using namespace cleave;

/// A kernel of more ops compiles slowly and gains nothing.
static constexpr unsigned kMaxOps = 64;

static int64_t bytesPerElement(Type type) {
  return llvm::divideCeil(cast<ShapedType>(type).getElementType().isIndex()
                              ? 64
                              : cast<ShapedType>(type).getElementTypeBitWidth(),
                          8);
}

bool cleave::isView(tensor::ExtractSliceOp slice) {
  RankedTensorType source = slice.getSourceType();
  if (!source.hasStaticShape() || !slice.getType().hasStaticShape())
    return false;
  ArrayRef<int64_t> sizes = slice.getStaticSizes();
  ArrayRef<int64_t> strides = slice.getStaticStrides();
  // Whole dims behind, single indices before the one dim that is cut.
  int64_t cut = source.getRank() - 1;
  while (cut >= 0 && sizes[cut] == source.getDimSize(cut))
    --cut;
  for (int64_t d = 0; d <= cut; ++d)
    if (sizes[d] != 1 && (d != cut || strides[d] != 1))
      return false;
  int64_t stride = bytesPerElement(source);
  for (int64_t d = source.getRank() - 1; d >= 0; --d) {
    int64_t offset = slice.getStaticOffsets()[d];
    int64_t step = ShapedType::isDynamic(offset) ? stride : offset * stride;
    if (step % kernels::kBufferAlignment != 0)
      return false;
    stride *= source.getDimSize(d);
  }
  return true;
}

bool cleave::isViewOp(Operation *op) {
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op))
    return true;
  auto slice = dyn_cast<tensor::ExtractSliceOp>(op);
  return slice && isView(slice);
}

bool cleave::isKernelOp(Operation *op) {
  if (isa<linalg::LinalgOp, tensor::PadOp, tensor::ConcatOp,
          tensor::InsertSliceOp, tensor::SplatOp, tensor::GenerateOp>(op))
    return true;
  return isa<tensor::ExtractSliceOp>(op) && !isViewOp(op);
}

static bool readsTensors(Operation *op) {
  return llvm::any_of(readValues(op), [](Value value) {
    return isa<RankedTensorType>(value.getType()) &&
           !value.getDefiningOp<tensor::EmptyOp>();
  });
}

bool cleave::isCheapProducer(Operation *op) {
  if (isa<tensor::EmptyOp>(op))
    return true;
  if (isa<tensor::ExtractSliceOp>(op))
    return !isViewOp(op);
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  return linalgOp && linalgOp.getNumParallelLoops() == linalgOp.getNumLoops() &&
         linalgOp->getNumResults() == 1 && !readsTensors(op);
}

llvm::SetVector<Value> cleave::readValues(Operation *op) {
  llvm::SetVector<Value> values;
  values.insert_range(op->getOperands());
  getUsedValuesDefinedAbove(op->getRegions(), values);
  return values;
}

namespace {
/// A group while it grows.
struct Growing : Group {
  bool closed = false;
  bool product = false;
  bool reduces = false;
  bool moves = false;
  /// Of the reductions, which all have the same.
  SmallVector<int64_t> domain;
  SmallVector<bool> reduced;
};

class Grouper {
public:
  explicit Grouper(Block &block) : block(block) {}
  std::vector<Group> run();

private:
  bool mayJoin(linalg::LinalgOp op, const Growing &group) const;
  bool mayRead(linalg::LinalgOp op, OpOperand &use, const Growing &group) const;
  bool mayMerge(const Growing &a, const Growing &b) const;
  bool readsElsewhere(linalg::LinalgOp op, const Growing &group) const;
  void assign(Operation *op);
  void append(Operation *op, unsigned index);
  void merge(unsigned from, unsigned into);
  void close(Operation *reader, int keep = -1);
  int groupOf(Value value) const {
    Operation *op = value.getDefiningOp();
    auto it = op ? indices.find(op) : indices.end();
    return it == indices.end() ? -1 : static_cast<int>(it->second);
  }

  Block &block;
  std::vector<Growing> groups;
  DenseMap<Operation *, unsigned> indices;
};
} // namespace

static bool isParallel(linalg::LinalgOp op) {
  return op.getNumParallelLoops() == op.getNumLoops();
}

/// Products are not repeated and have their own loops; so have windows.
static bool isProduct(linalg::LinalgOp op) {
  return linalg::isaContractionOpInterface(op) ||
         isa<linalg::ConvolutionOpInterface>(op.getOperation()) ||
         llvm::any_of(op.getIndexingMapsArray(), [](AffineMap map) {
           return !map.isProjectedPermutation(/*allowZeroInResults=*/true);
         });
}

static SmallVector<bool> reducedDims(linalg::LinalgOp op) {
  return llvm::map_to_vector(op.getIteratorTypesArray(),
                             linalg::isReductionIterator);
}

/// The map that drops the reduced dims and keeps the order of the others, where
/// the reduced ones are the last, so that a row lies in one piece.
static bool readsRows(AffineMap map, ArrayRef<bool> reduced) {
  unsigned kept = llvm::count(reduced, false);
  if (llvm::is_contained(reduced.take_front(kept), true))
    return false;
  return map ==
         AffineMap::getMultiDimIdentityMap(reduced.size(), map.getContext())
             .getMajorSubMap(kept);
}

bool Grouper::mayRead(linalg::LinalgOp op, OpOperand &use,
                      const Growing &group) const {
  AffineMap map = op.getMatchingIndexingMap(&use);
  if (!isParallel(op)) {
    if (!map.isIdentity() || group.product)
      return false;
    return !group.reduces ||
           (llvm::equal(group.domain, op.getStaticLoopRanges()) &&
            group.reduced == reducedDims(op));
  }
  if (map.isIdentity())
    return true;
  if (group.reduces)
    return llvm::equal(group.domain, op.getStaticLoopRanges()) &&
           readsRows(map, group.reduced);
  // Another order of the dims: the maps compose as long as nobody else reads.
  return !group.product && map.isPermutation() &&
         llvm::all_of(group.ops, [](Operation *o) { return o->hasOneUse(); });
}

/// A captured tensor is read anywhere, not along the loops.
bool Grouper::readsElsewhere(linalg::LinalgOp op, const Growing &group) const {
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  auto inGroup = [&](Value value) {
    int index = groupOf(value);
    return index >= 0 && &groups[index] == &group;
  };
  if (llvm::any_of(captured, inGroup))
    return true;
  // An init is only taken from outside.
  return llvm::any_of(op.getDpsInits(), inGroup);
}

bool Grouper::mayJoin(linalg::LinalgOp op, const Growing &group) const {
  if (group.closed || group.moves || isProduct(op) ||
      group.ops.size() >= kMaxOps || readsElsewhere(op, group))
    return false;
  for (OpOperand *use : op.getDpsInputOperands()) {
    int index = groupOf(use->get());
    if (index >= 0 && &groups[index] == &group && !mayRead(op, *use, group))
      return false;
  }
  // What an epilogue writes lies like what it reads.
  return !isParallel(op) ||
         llvm::all_of(op.getDpsInitsMutable(), [&](OpOperand &init) {
           return op.getMatchingIndexingMap(&init).isIdentity() ||
                  (!group.product && !group.reduces);
         });
}

bool Grouper::mayMerge(const Growing &a, const Growing &b) const {
  if (a.ops.size() + b.ops.size() >= kMaxOps || a.moves || b.moves)
    return false;
  bool mapsA = !a.product && !a.reduces, mapsB = !b.product && !b.reduces;
  if (mapsA || mapsB)
    return true;
  return a.reduces && b.reduces && a.domain == b.domain &&
         a.reduced == b.reduced;
}

void Grouper::close(Operation *reader, int keep) {
  for (Value value : readValues(reader))
    if (int index = groupOf(value); index >= 0 && index != keep)
      groups[index].closed = true;
}

void Grouper::append(Operation *op, unsigned index) {
  Growing &group = groups[index];
  group.ops.push_back(op);
  indices[op] = index;
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  group.moves |= !linalgOp;
  if (!linalgOp || isParallel(linalgOp))
    return;
  if (isProduct(linalgOp)) {
    group.product = true;
    return;
  }
  group.reduces = true;
  group.domain = linalgOp.getStaticLoopRanges();
  group.reduced = reducedDims(linalgOp);
}

void Grouper::merge(unsigned from, unsigned into) {
  Growing &source = groups[from], &target = groups[into];
  for (Operation *op : source.ops)
    indices[op] = into;
  llvm::append_range(target.ops, source.ops);
  llvm::sort(target.ops,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  target.product |= source.product;
  if (source.reduces) {
    target.reduces = true;
    target.domain = source.domain;
    target.reduced = source.reduced;
  }
  source.ops.clear();
  source.closed = true;
}

void Grouper::assign(Operation *op) {
  SmallVector<unsigned> candidates;
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    for (Value input : linalgOp.getDpsInputs())
      if (int index = groupOf(input); index >= 0 &&
                                      !llvm::is_contained(candidates, index) &&
                                      mayJoin(linalgOp, groups[index]))
        candidates.push_back(index);
  // The youngest first: its values are the ones still in the cache.
  llvm::sort(candidates, std::greater<>());
  unsigned target = groups.size();
  if (candidates.empty())
    groups.emplace_back();
  else
    target = candidates.front();
  for (unsigned other : ArrayRef(candidates).drop_front(!candidates.empty()))
    if (mayMerge(groups[other], groups[target]))
      merge(other, target);
  append(op, target);
  close(op, target);
}

std::vector<Group> Grouper::run() {
  for (Operation &op : block) {
    if (isCheapProducer(&op) || !isKernelOp(&op))
      close(&op);
    else
      assign(&op);
  }
  // Cheap producers that are read outside of kernels need a kernel after all.
  for (Operation &op : block) {
    if (!isCheapProducer(&op) || isa<tensor::EmptyOp>(op))
      continue;
    bool needed = llvm::any_of(op.getUsers(), [&](Operation *user) {
      Operation *inBlock = block.findAncestorOpInBlock(*user);
      return inBlock != user || (!isKernelOp(user) && !isCheapProducer(user));
    });
    if (needed) {
      groups.emplace_back();
      append(&op, groups.size() - 1);
    }
  }
  std::vector<Group> result;
  for (Growing &group : groups)
    if (!group.ops.empty())
      result.push_back(std::move(group));
  llvm::sort(result, [](const Group &a, const Group &b) {
    return a.ops.back()->isBeforeInBlock(b.ops.back());
  });
  return result;
}

std::vector<Group> cleave::formGroups(Block &block) {
  return Grouper(block).run();
}

std::string Group::name() const {
  if (ops.size() == 1 && !isa<linalg::GenericOp>(ops[0]))
    return ops[0]->getName().stripDialect().str();
  bool reduces = false, maps = false;
  for (Operation *op : ops) {
    auto linalgOp = cast<linalg::LinalgOp>(op);
    if (isProduct(linalgOp))
      return "product";
    (isParallel(linalgOp) ? maps : reduces) = true;
  }
  return reduces ? maps ? "rows" : "reduce" : "map";
}

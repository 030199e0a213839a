//===- CombineCollectives.cpp - Send small tensors together ---------------===//
// One walk per block. A group is open for collectives of one kind, element
// type and ranks; it closes when an op reads one of its results, so the joined
// collective at the place of its last part is early enough for all users, and
// all inputs are ready there.
//
// The parts are laid side by side in a matrix whose rows are what the
// collective counts over: one row of an all_reduce; of a gather along the
// outermost dim, each member sends a row. Row-major data make this a copy
// without a transpose.
//===----------------------------------------------------------------------===//
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "passes/comm/CommUtils.h"
#include "passes/comm/Passes.h"
#include "passes/cost/Machine.h"
#include "llvm/ADT/MapVector.h"
#include <tuple>
#define DEBUG_TYPE "cleave-combine-collectives"

using namespace mlir;

namespace cleave {
#define GEN_PASS_DEF_COMBINECOLLECTIVES
#include "passes/comm/Passes.h.inc"
} // namespace cleave

namespace {
using namespace cleave;
using namespace cleave::comm;

struct CombineCollectives
    : cleave::impl::CombineCollectivesBase<CombineCollectives> {
  using Base::Base;
  void runOnOperation() override;
};

/// A byte that is joined is read and written once before and once after.
constexpr int64_t kCopiesPerByte = 4;
/// Joining two collectives saves one start, so copying each part may take half
/// of it and still pay.
constexpr double kShareOfStart = 0.5;

/// What parts must have in common: op name, element type, mesh, axes, kind.
using GroupKey =
    std::tuple<const void *, const void *, const void *, const void *, int64_t>;

GroupKey keyOf(Operation *op) {
  int64_t kind = -1;
  if (auto reduce = dyn_cast<AllReduceOp>(op))
    kind = static_cast<int64_t>(reduce.getKind());
  else if (auto scatter = dyn_cast<ReduceScatterOp>(op))
    kind = static_cast<int64_t>(scatter.getKind());
  Type element = getElementTypeOrSelf(op->getResult(0).getType());
  return {op->getName().getAsOpaquePointer(), element.getAsOpaquePointer(),
          op->getAttr("mesh").getAsOpaquePointer(),
          op->getAttr("axes").getAsOpaquePointer(), kind};
}

/// Whether dims before `dim` have one index: members are then blocks of rows.
bool isOutermost(RankedTensorType type, int64_t dim) {
  return llvm::all_of(type.getShape().take_front(dim),
                      [](int64_t size) { return size == 1; });
}

std::optional<Collective> joinableKind(Operation *op) {
  if (isa<AllReduceOp>(op))
    return Collective::AllReduce;
  if (auto gather = dyn_cast<AllGatherOp>(op);
      gather && isOutermost(gather.getType(), gather.getDim()))
    return Collective::AllGather;
  if (auto scatter = dyn_cast<ReduceScatterOp>(op);
      scatter && isOutermost(scatter.getType(), scatter.getDim()))
    return Collective::ReduceScatter;
  return std::nullopt;
}

class Combiner {
public:
  Combiner(const Topology &topology, MLIRContext *context)
      : topology(topology), builder(context) {}
  void visit(Block &block);
  bool changed = false;

private:
  bool isSmall(Operation *op, Collective kind) const;
  void closeReadBy(Operation *op);
  void close(const GroupKey &key);
  void join(ArrayRef<Operation *> parts);
  Value reshape(Location loc, Value value, ArrayRef<int64_t> shape);
  Value joined(Location loc, ArrayRef<Operation *> parts, int64_t rows);

  const Topology &topology;
  OpBuilder builder;
  /// The groups of the block that is being visited.
  struct Open {
    llvm::MapVector<GroupKey, SmallVector<Operation *>> groups;
    DenseMap<Operation *, GroupKey> keys;
  };
  Open open;
};

bool Combiner::isSmall(Operation *op, Collective kind) const {
  if (blockBytes(op->getResult(0)) == 0)
    return false;
  AxisList axes = toAxes(topology.mesh(), op->getAttrOfType<AxesAttr>("axes"));
  double start = topology.seconds(kind, axes, /*wire=*/0);
  double bytes = kCopiesPerByte / 2.0 *
                 (blockBytes(op->getOperand(0)) + blockBytes(op->getResult(0)));
  double copy = bytes / topology.machine().device.memoryBandwidth;
  return copy <= start * kShareOfStart;
}

void Combiner::close(const GroupKey &key) {
  auto it = open.groups.find(key);
  SmallVector<Operation *> parts = std::move(it->second);
  it->second.clear();
  for (Operation *part : parts)
    open.keys.erase(part);
  if (parts.size() > 1)
    join(parts);
}

void Combiner::closeReadBy(Operation *op) {
  op->walk([&](Operation *inner) {
    for (Value operand : inner->getOperands())
      if (auto it = open.keys.find(operand.getDefiningOp());
          it != open.keys.end())
        close(GroupKey(it->second));
  });
}

void Combiner::visit(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    closeReadBy(&op);
    if (op.getNumRegions() > 0 && !op.hasTrait<OpTrait::IsTerminator>()) {
      // The groups out here stay open: nothing in there reads them.
      Open outside = std::exchange(open, Open());
      for (Region &region : op.getRegions())
        for (Block &inner : region)
          visit(inner);
      open = std::move(outside);
    }
    std::optional<Collective> kind = joinableKind(&op);
    if (!kind || !isSmall(&op, *kind))
      continue;
    GroupKey key = keyOf(&op);
    open.groups[key].push_back(&op);
    open.keys.try_emplace(&op, key);
  }
  // A terminator reads what the block gives; the rest has no users.
  SmallVector<GroupKey> keys;
  for (auto &[key, parts] : open.groups)
    keys.push_back(key);
  for (const GroupKey &key : keys)
    close(key);
  open = Open();
}

/// The same elements in row-major order.
Value Combiner::reshape(Location loc, Value value, ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getShape() == shape)
    return value;
  auto all = [](int64_t rank) {
    auto dims = llvm::to_vector<2>(llvm::seq<int64_t>(0, rank));
    return SmallVector<ReassociationIndices, 1>(1, dims);
  };
  auto flat =
      RankedTensorType::get(type.getNumElements(), type.getElementType());
  if (type.getRank() == 0)
    value = tensor::ExpandShapeOp::create(builder, loc, flat, value,
                                          ArrayRef<ReassociationIndices>());
  else if (type.getRank() > 1)
    value = tensor::CollapseShapeOp::create(builder, loc, flat, value,
                                            all(type.getRank()));
  auto result = RankedTensorType::get(shape, type.getElementType());
  if (shape.empty())
    return tensor::CollapseShapeOp::create(builder, loc, result, value,
                                           ArrayRef<ReassociationIndices>());
  if (shape.size() == 1)
    return value;
  return tensor::ExpandShapeOp::create(builder, loc, result, value,
                                       all(shape.size()));
}

Value Combiner::joined(Location loc, ArrayRef<Operation *> parts,
                       int64_t rows) {
  SmallVector<Value> flats;
  for (Operation *part : parts) {
    auto type = cast<RankedTensorType>(part->getOperand(0).getType());
    flats.push_back(reshape(loc, part->getOperand(0),
                            {rows, type.getNumElements() / rows}));
  }
  return tensor::ConcatOp::create(builder, loc, /*dim=*/1, flats);
}

void Combiner::join(ArrayRef<Operation *> parts) {
  changed = true;
  Operation *last = parts.back();
  builder.setInsertionPoint(last);
  SmallVector<CauseAttr> causes;
  SmallVector<Location> locs;
  for (Operation *part : parts) {
    causes.push_back(part->getAttrOfType<CauseAttr>("cause"));
    locs.push_back(part->getLoc());
  }
  Location loc = builder.getFusedLoc(locs);
  int64_t members =
      axesSize(toAxes(topology.mesh(), last->getAttrOfType<AxesAttr>("axes")));
  bool scatters = isa<ReduceScatterOp>(last);
  int64_t rowsBefore = scatters ? members : 1;
  int64_t rowsAfter = isa<AllGatherOp>(last) ? members : 1;

  Value input = joined(loc, parts, rowsBefore);
  auto type = cast<RankedTensorType>(input.getType());
  int64_t columns = type.getDimSize(1);
  OperationState state(loc, last->getName());
  state.addOperands(input);
  state.addTypes(
      RankedTensorType::get({rowsAfter, columns}, type.getElementType()));
  NamedAttrList attrs(last->getAttrDictionary());
  if (!isa<AllReduceOp>(last))
    attrs.set("dim", builder.getI64IntegerAttr(0));
  if (CauseAttr cause = joinCauses(builder.getContext(), causes))
    attrs.set("cause", cause);
  state.addAttributes(attrs);
  Value output = builder.create(state)->getResult(0);

  int64_t offset = 0;
  for (Operation *part : parts) {
    auto partType = cast<RankedTensorType>(part->getResult(0).getType());
    int64_t width = partType.getNumElements() / rowsAfter;
    SmallVector<OpFoldResult> offsets{builder.getIndexAttr(0),
                                      builder.getIndexAttr(offset)};
    SmallVector<OpFoldResult> sizes{builder.getIndexAttr(rowsAfter),
                                    builder.getIndexAttr(width)};
    SmallVector<OpFoldResult> strides(2, builder.getIndexAttr(1));
    Value own = tensor::ExtractSliceOp::create(builder, loc, output, offsets,
                                               sizes, strides);
    part->getResult(0).replaceAllUsesWith(
        reshape(loc, own, partType.getShape()));
    offset += width;
  }
  for (Operation *part : parts)
    part->erase();
}

} // namespace

void CombineCollectives::runOnOperation() {
  Mesh mesh;
  for (MeshOp op : getOperation().getOps<MeshOp>())
    mesh = toMesh(op);
  Topology topology(mesh, cpuLocalMachine());
  Combiner combiner(topology, &getContext());
  for (auto function : getOperation().getOps<FunctionOpInterface>())
    for (Block &block : function.getFunctionBody())
      combiner.visit(block);
  if (!combiner.changed)
    markAllAnalysesPreserved();
}

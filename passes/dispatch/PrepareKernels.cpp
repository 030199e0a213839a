//===- PrepareKernels.cpp - Bring ops into few forms ----------------------===//
// Grouping and code generation see linalg ops, moves of data, views and
// scalars. What says the same in another way is rewritten here.
//===----------------------------------------------------------------------===//
#include "dialects/comm/Comm.h"
#include "dialects/dispatch/Dispatch.h"
#include "passes/dispatch/Passes.h"
#define DEBUG_TYPE "cleave-prepare-kernels"
namespace cleave {
#define GEN_PASS_DEF_PREPAREKERNELS
#include "passes/dispatch/Passes.h.inc"
} // namespace cleave

using namespace mlir;
using namespace cleave;

namespace {
struct PrepareKernels : cleave::impl::PrepareKernelsBase<PrepareKernels> {
  using Base::Base;
  void runOnOperation() override;
};
} // namespace

static Value emptyLike(OpBuilder &b, Location loc, Type type) {
  auto tensor = cast<RankedTensorType>(type);
  return tensor::EmptyOp::create(b, loc, tensor.getShape(),
                                 tensor.getElementType());
}

/// Part i of n along a dim is a slice at i times its size.
static void expandSlice(comm::SliceOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getResult().getType());
  int64_t dim = op.getDim();
  Value part = comm::CoordinateOp::create(b, loc, b.getIndexType(),
                                          op.getMeshAttr(), op.getAxes());
  Value size = arith::ConstantIndexOp::create(b, loc, type.getDimSize(dim));
  Value offset = arith::MulIOp::create(b, loc, part, size);
  SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0));
  offsets[dim] = offset;
  SmallVector<OpFoldResult> sizes =
      getAsIndexOpFoldResult(b.getContext(), type.getShape());
  SmallVector<OpFoldResult> strides(type.getRank(), b.getIndexAttr(1));
  op.replaceAllUsesWith(tensor::ExtractSliceOp::create(b, loc, type,
                                                       op.getInput(), offsets,
                                                       sizes, strides)
                            .getResult());
  op.erase();
}

static void expandSplat(Operation *op, Value scalar) {
  OpBuilder b(op);
  Value empty = emptyLike(b, op->getLoc(), op->getResult(0).getType());
  auto fill = linalg::FillOp::create(b, op->getLoc(), scalar, empty);
  op->replaceAllUsesWith(fill->getResults());
  op->erase();
}

static void expandConstant(arith::ConstantOp op) {
  auto dense = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!dense)
    return;
  OpBuilder b(op);
  if (dense.getNumElements() == 0) {
    op.replaceAllUsesWith(emptyLike(b, op.getLoc(), op.getType()));
    op.erase();
  } else if (dense.isSplat()) {
    Value scalar = arith::ConstantOp::create(
        b, op.getLoc(), cast<TypedAttr>(dense.getSplatValue<Attribute>()));
    expandSplat(op, scalar);
  }
}

/// A coordinate has no operands: computed once, outside of every kernel.
static void hoistCoordinates(func::FuncOp func) {
  Block *entry = &func.getBody().front();
  DenseMap<Attribute, comm::CoordinateOp> known;
  SmallVector<comm::CoordinateOp> ops;
  func.walk([&](comm::CoordinateOp op) { ops.push_back(op); });
  for (comm::CoordinateOp op : llvm::reverse(ops))
    op->moveBefore(entry, entry->begin());
}

/// An init that the body does not read only says the type.
static void dropUnreadInits(linalg::LinalgOp op) {
  for (OpOperand &init : op.getDpsInitsMutable()) {
    if (op.payloadUsesValueFromOperand(&init) ||
        init.get().getDefiningOp<tensor::EmptyOp>() ||
        !isa<RankedTensorType>(init.get().getType()))
      continue;
    OpBuilder b(op);
    init.set(emptyLike(b, op.getLoc(), init.get().getType()));
  }
}

/// A product reads a transposed operand through its indexing map.
static void foldTransposes(IRRewriter &rewriter, linalg::LinalgOp op) {
  if (!linalg::isaContractionOpInterface(op))
    return;
  bool found = llvm::any_of(op.getDpsInputs(), [](Value input) {
    return input.getDefiningOp<linalg::TransposeOp>() != nullptr;
  });
  if (!found)
    return;
  rewriter.setInsertionPoint(op);
  auto generic = dyn_cast<linalg::GenericOp>(op.getOperation());
  if (!generic) {
    FailureOr<linalg::GenericOp> general =
        linalg::generalizeNamedOp(rewriter, op);
    if (failed(general))
      return;
    generic = *general;
  }
  SmallVector<AffineMap> maps = generic.getIndexingMapsArray();
  for (OpOperand *input : generic.getDpsInputOperands()) {
    auto transpose = input->get().getDefiningOp<linalg::TransposeOp>();
    if (!transpose)
      continue;
    AffineMap &map = maps[input->getOperandNumber()];
    SmallVector<AffineExpr> dims(map.getNumResults());
    for (auto [to, from] : llvm::enumerate(transpose.getPermutation()))
      dims[from] = map.getResult(to);
    map = AffineMap::get(map.getNumDims(), 0, dims, map.getContext());
    input->set(transpose.getInput());
  }
  generic.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps));
}

static LogicalResult mapElementwise(ModuleOp module) {
  RewritePatternSet patterns(module.getContext());
  linalg::populateElementwiseToLinalgConversionPatterns(patterns);
  GreedyRewriteConfig config;
  config.enableFolding(false);
  return applyPatternsGreedily(module, std::move(patterns), config);
}

void PrepareKernels::runOnOperation() {
  ModuleOp module = getOperation();
  if (failed(mapElementwise(module)))
    return signalPassFailure();
  module.walk([](comm::SliceOp op) { expandSlice(op); });
  module.walk([](tensor::SplatOp op) { expandSplat(op, op.getInput()); });
  module.walk([](arith::ConstantOp op) { expandConstant(op); });
  for (auto func : module.getOps<func::FuncOp>())
    if (!func.isExternal())
      hoistCoordinates(func);
  IRRewriter rewriter(&getContext());
  module.walk([&](linalg::LinalgOp op) { dropUnreadInits(op); });
  module.walk([&](linalg::LinalgOp op) { foldTransposes(rewriter, op); });
}

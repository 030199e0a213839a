//===- Pack.cpp - Layouts of constant operands of products ----------------===//
// A constant operand B of a product is best read as panels: as many columns as
// a register tile has, all of K row after row, padded with zeros:
//
//   B[k, n]  ->  P[n / nr, k, n % nr]
//
// In the kernel, `linalg.unpack` of the argument gives the plain tensor back,
// so the kernel still says what it computes. Code generation reads through it.
//===----------------------------------------------------------------------===//
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "passes/lower/kernels/Product.h"

using namespace mlir;
using namespace cleave::kernels;

std::optional<SmallVector<int64_t>>
cleave::kernels::packOrder(const Product &product) {
  AffineMap map = Nest(product.nest).op.getIndexingMapsArray()[product.b];
  SmallVector<int64_t> order;
  SmallVector<bool> listed(map.getNumResults(), false);
  auto append = [&](int loop) {
    for (auto [position, expr] : llvm::enumerate(map.getResults())) {
      if (!expr.isFunctionOfDim(loop))
        continue;
      if (!isa<AffineDimExpr>(expr) || listed[position])
        return false;
      listed[position] = true;
      order.push_back(position);
      return true;
    }
    return false;
  };
  for (const SmallVector<int> &loops :
       {product.batch, product.outerN, SmallVector<int>{product.n},
        product.outerK, SmallVector<int>{product.k}})
    for (int loop : loops)
      if (!append(loop))
        return std::nullopt;
  // Dims that no loop walks have one element, or are read at a constant.
  SmallVector<int64_t> all;
  auto shape =
      cast<ShapedType>(Nest(product.nest).op->getOperand(product.b).getType())
          .getShape();
  for (auto [position, isListed] : llvm::enumerate(listed)) {
    if (isListed)
      continue;
    if (shape[position] != 1)
      return std::nullopt;
    all.push_back(position);
  }
  all.append(order);
  return all;
}

/// The product that reads argument `operand` of a kernel on tensors.
static std::optional<Product> productOf(func::FuncOp kernel, unsigned operand) {
  BlockArgument argument = kernel.getArgument(operand);
  if (!argument.hasOneUse())
    return std::nullopt;
  auto op = dyn_cast<linalg::LinalgOp>(*argument.getUsers().begin());
  if (!op || op->getNumRegions() != 1)
    return std::nullopt;
  std::optional<Nest> nest = analyseTensors(op);
  std::optional<Product> product = nest ? asProduct(*nest) : std::nullopt;
  if (!product || op->getOperand(product->b) != argument)
    return std::nullopt;
  return product;
}

std::optional<PackPlan> cleave::kernels::planPacking(func::FuncOp kernel,
                                                     unsigned operand,
                                                     const CpuIsa &isa) {
  auto type = dyn_cast<RankedTensorType>(kernel.getArgument(operand).getType());
  if (!type)
    return std::nullopt;
  std::optional<Product> product = productOf(kernel, operand);
  if (!product || !worthTiling(*product, isa, /*packed=*/true))
    return std::nullopt;
  auto order = packOrder(*product);
  if (!order)
    return std::nullopt;
  PackPlan plan;
  plan.operand = operand;
  plan.type = type;
  plan.order = *order;
  bool amx = usesAmx(*product, isa);
  bool paired = amx || usesDot(*product, isa);
  plan.nr = amx ? 16 : tileShape(*product, isa).columns();
  AffineMap map = product->nest.op.getIndexingMapsArray()[product->b];
  for (auto [position, expr] : llvm::enumerate(map.getResults()))
    if (expr.isFunctionOfDim(product->n))
      plan.n = position;
    else if (paired && expr.isFunctionOfDim(product->k))
      plan.pair = position;
  SmallVector<int64_t> shape;
  for (int64_t dim : plan.order) {
    int64_t tile = dim == plan.n ? plan.nr : dim == plan.pair ? 2 : 1;
    shape.push_back(llvm::divideCeil(type.getDimSize(dim), tile));
  }
  shape.push_back(plan.nr);
  if (paired)
    shape.push_back(2);
  plan.packed = RankedTensorType::get(shape, type.getElementType());
  llvm::raw_string_ostream text(plan.key);
  text << type << " n=" << plan.n << " pair=" << plan.pair << " nr=" << plan.nr
       << " order=";
  llvm::interleave(plan.order, text, ",");
  return plan;
}

/// Dims that are cut, and by how much, as linalg.pack has them.
static std::pair<SmallVector<int64_t>, SmallVector<OpFoldResult>>
innerTiles(const PackPlan &plan, OpBuilder &b) {
  std::pair<SmallVector<int64_t>, SmallVector<OpFoldResult>> tiles = {
      {plan.n}, {b.getIndexAttr(plan.nr)}};
  if (plan.pair >= 0) {
    tiles.first.push_back(plan.pair);
    tiles.second.push_back(b.getIndexAttr(2));
  }
  return tiles;
}

func::FuncOp cleave::kernels::buildPackKernel(ModuleOp module,
                                              const PackPlan &plan,
                                              StringRef name) {
  OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
  Location loc = module.getLoc();
  auto type = b.getFunctionType({plan.type, plan.packed}, {plan.packed});
  auto kernel = func::FuncOp::create(b, loc, name, type);
  kernel.setPrivate();
  Block *body = kernel.addEntryBlock();
  b.setInsertionPointToStart(body);
  Value zero = arith::ConstantOp::create(
      b, loc, b.getZeroAttr(plan.type.getElementType()));
  auto [dims, tiles] = innerTiles(plan, b);
  Value packed =
      linalg::PackOp::create(b, loc, body->getArgument(0), body->getArgument(1),
                             dims, tiles, zero, plan.order)
          .getResult();
  func::ReturnOp::create(b, loc, packed);
  return kernel;
}

void cleave::kernels::applyPacking(func::FuncOp kernel, const PackPlan &plan) {
  BlockArgument argument = kernel.getArgument(plan.operand);
  argument.setType(plan.packed);
  OpBuilder b = OpBuilder::atBlockBegin(&kernel.getBody().front());
  Location loc = argument.getLoc();
  Value empty = tensor::EmptyOp::create(b, loc, plan.type.getShape(),
                                        plan.type.getElementType());
  auto [dims, tiles] = innerTiles(plan, b);
  auto plain = linalg::UnPackOp::create(b, loc, argument, empty, dims, tiles,
                                        plan.order);
  argument.replaceAllUsesExcept(plain.getResult(), plain);
  kernel.setType(FunctionType::get(kernel.getContext(),
                                   kernel.getBody().front().getArgumentTypes(),
                                   kernel.getResultTypes()));
}

LogicalResult cleave::kernels::lowerPacks(func::FuncOp kernel) {
  SmallVector<linalg::PackOp> packs;
  kernel.walk([&](linalg::PackOp op) { packs.push_back(op); });
  IRRewriter rewriter(kernel.getContext());
  for (linalg::PackOp op : packs) {
    rewriter.setInsertionPoint(op);
    if (failed(linalg::lowerPack(rewriter, op)))
      return op.emitOpError("packs a shape that kernels do not pack");
  }
  SmallVector<linalg::UnPackOp> unpacks;
  kernel.walk([&](linalg::UnPackOp op) {
    // Those of arguments are read through.
    auto argument = dyn_cast<BlockArgument>(op.getSource());
    if (!argument || argument.getOwner() != &kernel.getBody().front() ||
        op.getInnerDimsPos().size() > 2 ||
        (op.getInnerDimsPos().size() == 2 && op.getStaticTiles()[1] != 2))
      unpacks.push_back(op);
  });
  for (linalg::UnPackOp op : unpacks) {
    rewriter.setInsertionPoint(op);
    if (failed(linalg::lowerUnPack(rewriter, op)))
      return op.emitOpError("unpacks a shape that kernels do not unpack");
  }
  return success();
}

void cleave::kernels::viewPackedArguments(func::FuncOp kernel) {
  SmallVector<linalg::UnPackOp> unpacks;
  kernel.walk([&](linalg::UnPackOp op) { unpacks.push_back(op); });
  for (linalg::UnPackOp op : unpacks) {
    OpBuilder b(op);
    Location loc = op.getLoc();
    auto type = cast<RankedTensorType>(op.getResult().getType());
    // The source is to_tensor of the argument's buffer.
    Value buffer =
        op.getSource().getDefiningOp<bufferization::ToTensorOp>().getBuffer();
    auto identity = MemRefType::get(type.getShape(), type.getElementType());
    SmallVector<int64_t> strides = identity.getStridesAndOffset().first;
    SmallVector<OpFoldResult> sizes, steps;
    for (auto [size, stride] : llvm::zip_equal(type.getShape(), strides)) {
      sizes.push_back(b.getIndexAttr(size));
      steps.push_back(b.getIndexAttr(stride));
    }
    auto view = memref::ReinterpretCastOp::create(
        b, loc, identity, buffer, OpFoldResult(b.getIndexAttr(0)), sizes,
        steps);
    SmallVector<int64_t> order(op.getOuterDimsPerm());
    if (order.empty())
      for (int64_t d = 0; d < type.getRank(); ++d)
        order.push_back(d);
    int64_t pair =
        op.getInnerDimsPos().size() == 2 ? op.getInnerDimsPos()[1] : -1;
    view->setAttr(
        kPackedView,
        b.getDictionaryAttr(
            {b.getNamedAttr("n", b.getI64IntegerAttr(op.getInnerDimsPos()[0])),
             b.getNamedAttr("pair", b.getI64IntegerAttr(pair)),
             b.getNamedAttr("nr", b.getI64IntegerAttr(op.getStaticTiles()[0])),
             b.getNamedAttr("order", b.getDenseI64ArrayAttr(order))}));
    op.getResult().replaceAllUsesWith(
        bufferization::ToTensorOp::create(b, loc, type, view.getResult(),
                                          /*restrict=*/true,
                                          /*writable=*/false)
            .getResult());
    op.erase();
  }
}

Operation *cleave::kernels::packedView(const Product &product,
                                       const CpuIsa &isa) {
  Operation *view = product.accessB().buffer.getDefiningOp();
  auto layout =
      view ? view->getAttrOfType<DictionaryAttr>(kPackedView) : nullptr;
  if (!layout)
    return nullptr;
  auto order = packOrder(product);
  bool amx = usesAmx(product, isa);
  bool paired = layout.getAs<IntegerAttr>("pair").getInt() >= 0;
  bool fits = order &&
              *order == layout.getAs<DenseI64ArrayAttr>("order").asArrayRef() &&
              paired == (amx || usesDot(product, isa)) &&
              layout.getAs<IntegerAttr>("nr").getInt() ==
                  (amx ? 16 : tileShape(product, isa).columns());
  return fits ? view : nullptr;
}

/// Copies element by element out of the packed buffer.
static void unpackInto(OpBuilder &b, Location loc, Value packed, Value plain,
                       DictionaryAttr layout) {
  int64_t n = layout.getAs<IntegerAttr>("n").getInt();
  int64_t nr = layout.getAs<IntegerAttr>("nr").getInt();
  int64_t pair = layout.getAs<IntegerAttr>("pair").getInt();
  auto order = layout.getAs<DenseI64ArrayAttr>("order").asArrayRef();
  auto shape = cast<MemRefType>(plain.getType()).getShape();
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  Value width = arith::ConstantIndexOp::create(b, loc, nr);
  SmallVector<Value> ivs;
  OpBuilder::InsertionGuard guard(b);
  for (int64_t size : shape) {
    Value high = arith::ConstantIndexOp::create(b, loc, size);
    auto loop = scf::ForOp::create(b, loc, zero, high, one);
    ivs.push_back(loop.getInductionVar());
    b.setInsertionPointToStart(loop.getBody());
  }
  SmallVector<Value> from;
  Value two = arith::ConstantIndexOp::create(b, loc, 2);
  for (int64_t dim : order) {
    Value tile = dim == n ? width : dim == pair ? two : one;
    from.push_back(arith::DivUIOp::create(b, loc, ivs[dim], tile));
  }
  from.push_back(arith::RemUIOp::create(b, loc, ivs[n], width));
  if (pair >= 0)
    from.push_back(arith::RemUIOp::create(b, loc, ivs[pair], two));
  Value x = memref::LoadOp::create(b, loc, packed, from);
  memref::StoreOp::create(b, loc, x, plain, ivs);
}

void cleave::kernels::materialisePackedViews(func::FuncOp kernel,
                                             const CpuIsa &isa) {
  SmallVector<memref::ReinterpretCastOp> views;
  kernel.walk([&](memref::ReinterpretCastOp op) {
    if (op->hasAttr(kPackedView))
      views.push_back(op);
  });
  for (memref::ReinterpretCastOp view : views) {
    bool readsPlain = false;
    for (OpOperand &use : view->getUses()) {
      auto op = dyn_cast<linalg::LinalgOp>(use.getOwner());
      std::optional<Nest> nest = op ? analyse(op) : std::nullopt;
      std::optional<Product> product = nest ? asProduct(*nest) : std::nullopt;
      readsPlain |= !product || product->b != use.getOperandNumber() ||
                    !packedView(*product, isa) ||
                    !worthTiling(*product, isa, /*packed=*/true);
    }
    if (!readsPlain)
      continue;
    OpBuilder b(view);
    Value plain = memref::AllocOp::create(
        b, view.getLoc(), cast<MemRefType>(view.getType()),
        b.getI64IntegerAttr(kBufferAlignment));
    unpackInto(b, view.getLoc(), view.getSource(), plain,
               view->getAttrOfType<DictionaryAttr>(kPackedView));
    view.replaceAllUsesWith(plain);
    view.erase();
  }
}

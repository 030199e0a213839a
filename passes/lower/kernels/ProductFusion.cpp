//===- ProductFusion.cpp - What is done on the tiles of a product ---------===//
// Finds products, the fill before each, and the element-wise ops behind it
// that may run on finished tiles: their loops are those of the product, and
// they touch nothing that another tile still needs.
//===----------------------------------------------------------------------===//
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "passes/lower/kernels/ProductEmitter.h"

using namespace mlir;
using namespace cleave::kernels;

/// The loops of `nest` as loops of the product, through its access to C.
static std::optional<SmallVector<int>> matchLoops(const Product &product,
                                                  const Nest &nest, Value root,
                                                  const Access &shape) {
  if (nest.hasReduction())
    return std::nullopt;
  for (const Access &access : nest.accesses) {
    if (access.isScalar() || access.root != root)
      continue;
    if (access.dynamicOffset || access.offset != shape.offset)
      return std::nullopt;
    SmallVector<int> result(nest.sizes.size(), -1);
    SmallVector<bool> used(product.nest.sizes.size(), false);
    for (int d = 0, e = nest.sizes.size(); d < e; ++d) {
      if (nest.sizes[d] == 1)
        continue;
      for (int p = 0, pe = used.size(); p < pe && result[d] < 0; ++p)
        if (!used[p] && product.nest.parallel[p] &&
            product.nest.sizes[p] == nest.sizes[d] &&
            shape.strides[p] == access.strides[d]) {
          result[d] = p;
          used[p] = true;
        }
      if (result[d] < 0)
        return std::nullopt;
    }
    for (int p = 0, pe = used.size(); p < pe; ++p)
      if (product.nest.parallel[p] && product.nest.sizes[p] > 1 && !used[p])
        return std::nullopt;
    return result;
  }
  return std::nullopt;
}

/// The access of `nest` to `root`, in terms of the loops of the product.
static Access inProductLoops(const Product &product, const Access &access,
                             ArrayRef<int> loopOf) {
  Access result = access;
  result.strides.assign(product.nest.sizes.size(), 0);
  for (auto [d, loop] : llvm::enumerate(loopOf))
    if (loop >= 0)
      result.strides[loop] = access.strides[d];
  return result;
}

static bool sameElements(const Product &product, const Access &x,
                         const Access &y) {
  if (x.offset != y.offset || x.dynamicOffset || y.dynamicOffset)
    return false;
  for (auto [p, size] : llvm::enumerate(product.nest.sizes))
    if (size > 1 && product.nest.parallel[p] && x.strides[p] != y.strides[p])
      return false;
  return true;
}

namespace {
/// Collects what can be done on finished tiles of one product.
class FollowerFinder {
public:
  FollowerFinder(const Product &product) : product(product) {
    written.push_back({product.accessC().root, product.accessC()});
    for (unsigned i : {0, 1})
      read.push_back(product.nest.accesses[i].root);
  }
  /// True: joined. False with `blocked`: nothing behind it may join.
  bool tryJoin(const Nest &nest, bool &blocked);

  std::vector<Follower> followers;

private:
  const Access *writtenAccess(Value root) {
    for (auto &[r, access] : written)
      if (r == root)
        return &access;
    return nullptr;
  }
  const Product &product;
  SmallVector<std::pair<Value, Access>> written;
  SmallVector<Value> read;
};
} // namespace

bool FollowerFinder::tryJoin(const Nest &nest, bool &blocked) {
  Value anchor;
  bool touches = false;
  for (auto [i, access] : llvm::enumerate(nest.accesses)) {
    if (access.isScalar())
      continue;
    bool writes = i >= nest.numInputs();
    if (writtenAccess(access.root)) {
      touches = true;
      if (!anchor)
        anchor = access.root;
    }
    if (writes && llvm::is_contained(read, access.root))
      touches = true;
  }
  nest.body().walk([&](memref::LoadOp load) {
    Value root = rootOf(load.getMemRef());
    if (writtenAccess(root))
      touches = blocked = true;
  });
  // Whatever stays behind must not meet what is moved before it.
  blocked |= touches;
  if (!anchor)
    return false;
  auto loopOf = matchLoops(product, nest, anchor, *writtenAccess(anchor));
  if (!loopOf)
    return false;
  for (auto [i, access] : llvm::enumerate(nest.accesses)) {
    if (access.isScalar())
      continue;
    Access mine = inProductLoops(product, access, *loopOf);
    const Access *other = writtenAccess(access.root);
    if (other && !sameElements(product, mine, *other))
      return false;
    bool writes = i >= nest.numInputs();
    // Tiles still to come read what an earlier one would overwrite.
    if (writes && llvm::is_contained(read, access.root))
      return false;
    if (writes)
      for (auto [p, size] : llvm::enumerate(product.nest.sizes))
        if (size > 1 && product.nest.parallel[p] && mine.strides[p] == 0)
          return false;
  }
  for (unsigned i = 0; i < nest.accesses.size(); ++i) {
    const Access &access = nest.accesses[i];
    if (access.isScalar())
      continue;
    if (i >= nest.numInputs())
      written.push_back(
          {access.root, inProductLoops(product, access, *loopOf)});
    else if (!writtenAccess(access.root))
      read.push_back(access.root);
  }
  nest.body().walk(
      [&](memref::LoadOp load) { read.push_back(rootOf(load.getMemRef())); });
  followers.push_back({nest, *loopOf});
  blocked = false;
  return true;
}

/// The scalar that C is filled with just before the product, if so.
static linalg::FillOp fillBefore(const Product &product) {
  const Access &c = product.accessC();
  for (Operation *op = product.nest.op->getPrevNode(); op;
       op = op->getPrevNode()) {
    if (auto fill = dyn_cast<linalg::FillOp>(op)) {
      Value buffer = fill.getOutputs()[0];
      if (buffer == c.buffer)
        return fill.getInputs()[0].getType() == c.element ? fill
                                                          : linalg::FillOp();
      if (rootOf(buffer) == c.root)
        return {};
      continue;
    }
    if (isPure(op) || isa<memref::AllocOp>(op))
      continue;
    if (auto nest = dyn_cast<linalg::LinalgOp>(op)) {
      bool touches = llvm::any_of(nest->getOperands(), [&](Value v) {
        return isa<MemRefType>(v.getType()) && rootOf(v) == c.root;
      });
      nest->walk([&](memref::LoadOp load) {
        touches |= rootOf(load.getMemRef()) == c.root;
      });
      if (!touches)
        continue;
    }
    return {};
  }
  return {};
}

/// Copies a narrow operand A to the type of the sums: it is broadcast element
/// by element, once per panel.
static void widenA(Product &product, OpBuilder &b) {
  Access &a = product.nest.accesses[product.a];
  auto type = cast<MemRefType>(a.buffer.getType());
  if (a.element == product.accumulator || !isa<FloatType>(a.element) ||
      !type.getLayout().isIdentity())
    return;
  Location loc = product.nest.op.getLoc();
  Value wide = memref::AllocOp::create(
      b, loc, MemRefType::get(type.getShape(), product.accumulator),
      b.getI64IntegerAttr(kBufferAlignment));
  auto identity = b.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> iterators(type.getRank(),
                                             utils::IteratorType::parallel);
  linalg::GenericOp::create(
      b, loc, a.buffer, wide, ArrayRef<AffineMap>{identity, identity},
      iterators, [&](OpBuilder &nested, Location at, ValueRange arguments) {
        Value x = arith::ExtFOp::create(nested, at, product.accumulator,
                                        arguments[0]);
        linalg::YieldOp::create(nested, at, x);
      });
  a.buffer = a.root = wide;
  a.element = product.accumulator;
}

static void emitProduct(Product product, const CpuIsa &cpu,
                        llvm::SmallPtrSetImpl<Operation *> &gone) {
  Operation *last = product.nest.op;
  FollowerFinder finder(product);
  bool blocked = false;
  SmallVector<Operation *> dead = {product.nest.op};
  for (Operation *op = last->getNextNode(); op && !blocked;
       op = op->getNextNode()) {
    auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
    if (!linalgOp) {
      if (isPure(op) || isa<memref::AllocOp>(op))
        continue;
      break;
    }
    std::optional<Nest> nest = analyse(linalgOp);
    if (!nest)
      break;
    if (finder.tryJoin(*nest, blocked)) {
      dead.push_back(op);
      last = op;
    } else if (!isa<linalg::FillOp>(op)) {
      break;
    }
  }
  linalg::FillOp fill = fillBefore(product);
  llvm::SmallPtrSet<Operation *, 8> inside(dead.begin(), dead.end());
  if (fill)
    inside.insert(fill);
  Value root = product.accessC().root;
  bool storeProduct = !root.getDefiningOp<memref::AllocOp>() ||
                      llvm::any_of(root.getUsers(), [&](Operation *user) {
                        return !inside.contains(user);
                      });
  OpBuilder b(last);
  b.setInsertionPointAfter(last);
  bool amx = packedView(product, cpu) && usesAmx(product, cpu);
  if (!amx && !usesDot(product, cpu))
    widenA(product, b);
  ProductEmitter(product, finder.followers,
                 fill ? fill.getInputs()[0] : Value(), storeProduct, b, cpu)
      .emit();
  if (fill)
    dead.push_back(fill);
  for (Operation *op : dead) {
    gone.insert(op);
    op->erase();
  }
}

LogicalResult cleave::kernels::emitProducts(func::FuncOp kernel,
                                            const CpuIsa &isa) {
  SmallVector<linalg::LinalgOp> ops;
  kernel.walk([&](linalg::LinalgOp op) { ops.push_back(op); });
  llvm::SmallPtrSet<Operation *, 8> gone;
  for (linalg::LinalgOp op : ops) {
    if (gone.contains(op) || op->getNumRegions() != 1 ||
        op.getNumReductionLoops() == 0)
      continue;
    std::optional<Nest> nest = analyse(op);
    std::optional<Product> product = nest ? asProduct(*nest) : std::nullopt;
    if (product &&
        worthTiling(*product, isa, packedView(*product, isa) != nullptr))
      emitProduct(*product, isa, gone);
  }
  return success();
}

//===- ProductEmitter.cpp - Products as register tiles --------------------===//
// One panel of B (all of K, as many columns as a tile has) is used by every
// row of A before the next. K is cut into blocks whose panel piece stays in
// the first-level cache; between blocks the sums of the panel wait in a small
// buffer. B comes packed, or a piece is packed just before its use. What
// follows the product element by element is done on the finished tile.
//===----------------------------------------------------------------------===//
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/lower/kernels/Product.h"

using namespace mlir;
using namespace cleave::kernels;

namespace {
/// An element-wise nest that is applied to finished tiles.
struct Follower {
  Nest nest;
  SmallVector<int> loopOf; // per loop of the nest: one of the product, or -1
};

class ProductEmitter {
public:
  ProductEmitter(Product product, std::vector<Follower> followers, Value fill,
                 bool storeProduct, OpBuilder &b, const CpuIsa &isa);
  void emit();

private:
  // Blocking.
  static constexpr int64_t kBlockK = 256; // of K: a panel piece in L1
  static constexpr int64_t kBlockM = 384; // rows with sums in a buffer

  void loops(ArrayRef<int> which, llvm::function_ref<void()> body);
  void panel(Value column, Value panelIndex, int64_t width);
  void rows(int64_t width);
  void block(int64_t count, Value rowBase, int64_t width);
  void tiles(int64_t count, Value rowBase,
             llvm::function_ref<void(Value, int64_t)> emitTile);
  void packPiece(Value kBase, int64_t length, int64_t width);
  SmallVector<Value> multiplyTile(Value row, int64_t tileRows, Value kBase,
                                  int64_t kLength, ArrayRef<Value> start);
  void step(SmallVector<Value> &sums, unsigned set, Value row, int64_t tileRows,
            Value k);
  Value loadA(Value row, Value k);
  Value loadB(Value k, int64_t vector);
  void finish(Value value, Value row, Value column, int64_t width);
  void finishTile(ArrayRef<Value> sums, Value row, int64_t tileRows,
                  int64_t width);
  void finishFrom(Value buffer, Value bufferRow, Value row, int64_t width);
  Value scalarBuffer(int64_t elements, Type type);
  Value convert(Value value, Operation *cast, bool isB);
  Value zeros();
  Value plus(Value x, int64_t y);
  Value add(Value x, Value y);

  Product product;
  std::vector<Follower> followers;
  Value fill;
  bool storeProduct;
  OpBuilder &b;
  Location loc;
  NestEmitter e;
  TileShape tile;

  SmallVector<Value> ivs; // per loop of the product
  Value column;           // of the panel in C
  Value panelIndex;
  Operation *packed = nullptr; // the view of a packed argument
  Value packBuffer, sumBuffer, tileBuffer, packedFlat;
  Value kBlockBase;
};
} // namespace

ProductEmitter::ProductEmitter(Product p, std::vector<Follower> f, Value fill,
                               bool storeProduct, OpBuilder &b,
                               const CpuIsa &isa)
    : product(std::move(p)), followers(std::move(f)), fill(fill),
      storeProduct(storeProduct), b(b), loc(product.nest.op.getLoc()),
      e(b, loc), tile(tileShape(product, isa)) {
  ivs.assign(product.nest.sizes.size(), Value());
  packed = packedView(product, isa);
}

Value ProductEmitter::plus(Value x, int64_t y) {
  return y ? arith::AddIOp::create(b, loc, x, e.index(y)).getResult() : x;
}

Value ProductEmitter::add(Value x, Value y) {
  return arith::AddIOp::create(b, loc, x, y);
}

Value ProductEmitter::scalarBuffer(int64_t elements, Type type) {
  return memref::AllocOp::create(b, loc, MemRefType::get({elements}, type),
                                 b.getI64IntegerAttr(kBufferAlignment));
}

void ProductEmitter::loops(ArrayRef<int> which,
                           llvm::function_ref<void()> body) {
  if (which.empty())
    return body();
  int d = which.front();
  e.loop(0, product.nest.sizes[d], 1, {}, [&](Value iv, ValueRange) {
    ivs[d] = iv;
    loops(which.drop_front(), body);
    return SmallVector<Value>();
  });
}

Value ProductEmitter::convert(Value value, Operation *cast, bool isB) {
  Type element = getElementTypeOrSelf(value.getType());
  if (element == product.accumulator)
    return value;
  Type to = product.accumulator;
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    to = VectorType::get(vector.getShape(), to);
  if (isa<FloatType>(element))
    return arith::ExtFOp::create(b, loc, to, value);
  return isa<arith::ExtUIOp>(cast)
             ? arith::ExtUIOp::create(b, loc, to, value).getResult()
             : arith::ExtSIOp::create(b, loc, to, value).getResult();
}

Value ProductEmitter::loadA(Value row, Value k) {
  if (product.m >= 0)
    ivs[product.m] = row;
  ivs[product.k] = k;
  Value x = e.load(product.accessA(), ivs, -1, 1);
  return e.broadcast(convert(x, product.castA, false), tile.lanes);
}

Value ProductEmitter::loadB(Value k, int64_t vector) {
  Type element = product.accessB().element;
  auto type = VectorType::get({tile.lanes}, element);
  Value at;
  Value from = packBuffer;
  if (packed) {
    from = packedFlat;
    ivs[product.k] = k;
    // [batch.., outer N.., panel, outer K.., K, column]
    at = panelIndex;
    int64_t stride = tile.columns();
    Value sum;
    auto addTerm = [&](Value iv, int64_t size) {
      Value term = arith::MulIOp::create(b, loc, iv, e.index(stride));
      sum = sum ? add(sum, term) : term;
      stride *= size;
    };
    addTerm(k, product.sizeOf(product.k));
    for (int d : llvm::reverse(product.outerK))
      addTerm(ivs[d], product.nest.sizes[d]);
    addTerm(panelIndex,
            llvm::divideCeil(product.sizeOf(product.n), tile.columns()));
    for (int d : llvm::reverse(product.outerN))
      addTerm(ivs[d], product.nest.sizes[d]);
    for (int d : llvm::reverse(product.batch))
      addTerm(ivs[d], product.nest.sizes[d]);
    at = sum;
  } else {
    Value local = arith::SubIOp::create(b, loc, k, kBlockBase);
    at = arith::MulIOp::create(b, loc, local, e.index(tile.columns()));
  }
  at = plus(at, vector * tile.lanes);
  Value x = vector::LoadOp::create(b, loc, type, from, at);
  return convert(x, product.castB, true);
}

/// Copies B[kBase .. + length][column .. + width] to the pack buffer, with
/// zeros up to the width of a tile.
void ProductEmitter::packPiece(Value kBase, int64_t length, int64_t width) {
  Access access = product.accessB();
  int64_t columns = tile.columns();
  e.loop(0, length, 1, {}, [&](Value k, ValueRange) {
    ivs[product.k] = add(kBase, k);
    Value to = arith::MulIOp::create(b, loc, k, e.index(columns));
    for (int64_t at = 0; at < columns;) {
      int64_t w = std::min(columns - at, tile.lanes);
      while (at < width && at + w > width)
        w /= 2;
      ivs[product.n] = plus(column, at);
      Value x;
      Type element = access.element;
      if (at < width)
        x = e.load(access, ivs, product.n, w);
      else
        x = arith::ConstantOp::create(b, loc, b.getZeroAttr(element));
      Value place = plus(to, at);
      if (w == 1)
        memref::StoreOp::create(b, loc, x, packBuffer, place);
      else
        vector::StoreOp::create(b, loc, e.broadcast(x, w), packBuffer, place);
      at += w;
    }
    return SmallVector<Value>();
  });
}

Value ProductEmitter::zeros() {
  return arith::ConstantOp::create(
      b, loc,
      b.getZeroAttr(VectorType::get({tile.lanes}, product.accumulator)));
}

/// sums[set] += A[row .. + tileRows][k] * B[k][panel].
void ProductEmitter::step(SmallVector<Value> &sums, unsigned set, Value row,
                          int64_t tileRows, Value k) {
  SmallVector<Value> bs;
  for (int64_t v = 0; v < tile.vectors; ++v)
    bs.push_back(loadB(k, v));
  for (int64_t i = 0; i < tileRows; ++i) {
    Value x = loadA(plus(row, i), k);
    for (int64_t v = 0; v < tile.vectors; ++v) {
      Value &sum = sums[(set * tileRows + i) * tile.vectors + v];
      if (isa<FloatType>(product.accumulator)) {
        sum = math::FmaOp::create(b, loc, x, bs[v], sum);
      } else {
        Value p = arith::MulIOp::create(b, loc, x, bs[v]);
        sum = arith::AddIOp::create(b, loc, sum, p);
      }
    }
  }
}

SmallVector<Value> ProductEmitter::multiplyTile(Value row, int64_t tileRows,
                                                Value kBase, int64_t kLength,
                                                ArrayRef<Value> start) {
  // Few accumulators would wait for each other: keep several sets of sums.
  int64_t perSet = tileRows * tile.vectors;
  int64_t sets = std::max<int64_t>(1, 8 / perSet);
  if (!isa<FloatType>(product.accumulator) || kLength < 2 * sets)
    sets = 1;
  SmallVector<Value> sums(start);
  for (int64_t i = perSet; i < perSet * sets; ++i)
    sums.push_back(zeros());
  int64_t unroll = std::max<int64_t>(sets, kLength >= 8 ? 4 : 1);
  int64_t whole = kLength / unroll * unroll;
  sums = e.loop(0, whole, unroll, sums, [&](Value k, ValueRange carried) {
    SmallVector<Value> next(carried);
    for (int64_t u = 0; u < unroll; ++u)
      step(next, u % sets, row, tileRows, plus(add(kBase, k), u));
    return next;
  });
  for (int64_t k = whole; k < kLength; ++k)
    step(sums, 0, row, tileRows, plus(kBase, k));
  for (int64_t set = 1; set < sets; ++set)
    for (int64_t i = 0; i < perSet; ++i)
      sums[i] =
          isa<FloatType>(product.accumulator)
              ? arith::AddFOp::create(b, loc, sums[i], sums[set * perSet + i])
                    .getResult()
              : arith::AddIOp::create(b, loc, sums[i], sums[set * perSet + i])
                    .getResult();
  sums.resize(perSet);
  return sums;
}

/// The rest of the kernel on `width` finished elements of one row of C.
void ProductEmitter::finish(Value value, Value row, Value col, int64_t width) {
  if (product.m >= 0)
    ivs[product.m] = row;
  ivs[product.n] = col;
  const Access &c = product.accessC();
  auto castTo = [&](Type element) {
    if (getElementTypeOrSelf(value.getType()) == element)
      return;
    Type to = width == 1 ? element : Type(VectorType::get({width}, element));
    value = arith::TruncFOp::create(b, loc, to, value);
  };
  if (!fill) {
    Value init = convert(e.load(c, ivs, product.n, width), nullptr, false);
    value = e.combine(product.add, e.broadcast(init, width), value);
  }
  castTo(c.element);
  if (storeProduct)
    e.store(value, c, ivs, product.n, width);
  SmallVector<std::pair<Value, Value>> known = {{c.root, value}};
  for (Follower &follower : followers) {
    Nest &nest = follower.nest;
    SmallVector<Value> own(nest.sizes.size());
    int vectorLoop = -1;
    for (auto [d, loop] : llvm::enumerate(follower.loopOf)) {
      own[d] = loop < 0 ? e.index(0) : ivs[loop];
      if (loop == product.n && loop >= 0)
        vectorLoop = d;
    }
    SmallVector<Value> arguments;
    for (auto [i, access] : llvm::enumerate(nest.accesses)) {
      Value x;
      for (auto &[root, v] : known)
        if (!access.isScalar() && access.root == root)
          x = v;
      if (!x && !nest.body().getArgument(i).use_empty())
        x = e.load(access, own, vectorLoop, width);
      arguments.push_back(x);
    }
    SmallVector<Value> yields = e.body(nest, arguments, own, vectorLoop, width);
    for (auto [o, v] : llvm::enumerate(yields)) {
      Access &out = nest.accesses[nest.numInputs() + o];
      e.store(v, out, own, vectorLoop, width);
      known.push_back({out.root, v});
    }
  }
}

void ProductEmitter::finishFrom(Value buffer, Value bufferRow, Value row,
                                int64_t width) {
  Value base =
      arith::MulIOp::create(b, loc, bufferRow, e.index(tile.columns()));
  for (int64_t at = 0, w = tile.lanes; at < width;) {
    while (at + w > width)
      w /= 2;
    Value place = plus(base, at);
    Value x = w == 1 ? memref::LoadOp::create(b, loc, buffer, place).getResult()
                     : vector::LoadOp::create(
                           b, loc, VectorType::get({w}, product.accumulator),
                           buffer, place)
                           .getResult();
    finish(x, row, plus(column, at), w);
    at += w;
  }
}

void ProductEmitter::finishTile(ArrayRef<Value> sums, Value row,
                                int64_t tileRows, int64_t width) {
  if (width == tile.columns()) {
    for (int64_t i = 0; i < tileRows; ++i)
      for (int64_t v = 0; v < tile.vectors; ++v)
        finish(sums[i * tile.vectors + v], plus(row, i),
               plus(column, v * tile.lanes), tile.lanes);
    return;
  }
  for (int64_t i = 0; i < tileRows; ++i)
    for (int64_t v = 0; v < tile.vectors; ++v)
      vector::StoreOp::create(b, loc, sums[i * tile.vectors + v], tileBuffer,
                              e.index(i * tile.columns() + v * tile.lanes));
  for (int64_t i = 0; i < tileRows; ++i)
    finishFrom(tileBuffer, e.index(i), plus(row, i), width);
}

/// Cuts rows into tiles of nearly equal height.
void ProductEmitter::tiles(int64_t count, Value rowBase,
                           llvm::function_ref<void(Value, int64_t)> emitTile) {
  int64_t numTiles = llvm::divideCeil(count, tile.rows);
  int64_t height = count / numTiles, tall = count % numTiles;
  auto run = [&](int64_t low, int64_t high, int64_t rows) {
    e.loop(low, high, rows, {}, [&](Value row, ValueRange) {
      emitTile(row, rows);
      return SmallVector<Value>();
    });
  };
  run(0, tall * (height + 1), height + 1);
  run(tall * (height + 1), count, height);
}

/// One block of rows: all of K, cut into blocks where that helps.
void ProductEmitter::block(int64_t count, Value rowBase, int64_t width) {
  int64_t sizeK = product.sizeOf(product.k);
  bool fewRows = count <= 2 * tile.rows;
  int64_t length =
      (packed && fewRows) || sizeK <= 2 * kBlockK ? sizeK : kBlockK;
  bool single = product.outerK.empty() && length == sizeK;
  SmallVector<Value> start(tile.rows * tile.vectors, zeros());
  if (fill) {
    Value x = convert(fill, nullptr, false);
    for (Value &v : start)
      v = e.broadcast(x, tile.lanes);
  }
  auto startOf = [&](int64_t rows) {
    return ArrayRef<Value>(start).take_front(rows * tile.vectors);
  };
  if (single) {
    kBlockBase = e.index(0);
    if (!packed)
      packPiece(kBlockBase, length, width);
    tiles(count, rowBase, [&](Value row, int64_t rows) {
      Value at = add(rowBase, row);
      SmallVector<Value> sums =
          multiplyTile(at, rows, kBlockBase, length, startOf(rows));
      finishTile(sums, at, rows, width);
    });
    return;
  }
  auto sumAt = [&](Value row, int64_t i, int64_t v) {
    Value base =
        arith::MulIOp::create(b, loc, plus(row, i), e.index(tile.columns()));
    return plus(base, v * tile.lanes);
  };
  tiles(count, rowBase, [&](Value row, int64_t rows) {
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t v = 0; v < tile.vectors; ++v)
        vector::StoreOp::create(b, loc, start[0], sumBuffer, sumAt(row, i, v));
  });
  auto multiplyBlock = [&](Value kBase, int64_t kLength) {
    kBlockBase = kBase;
    if (!packed)
      packPiece(kBase, kLength, width);
    tiles(count, rowBase, [&](Value row, int64_t rows) {
      auto type = VectorType::get({tile.lanes}, product.accumulator);
      SmallVector<Value> sums;
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t v = 0; v < tile.vectors; ++v)
          sums.push_back(vector::LoadOp::create(b, loc, type, sumBuffer,
                                                sumAt(row, i, v)));
      sums = multiplyTile(add(rowBase, row), rows, kBase, kLength, sums);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t v = 0; v < tile.vectors; ++v)
          vector::StoreOp::create(b, loc, sums[i * tile.vectors + v], sumBuffer,
                                  sumAt(row, i, v));
    });
  };
  loops(product.outerK, [&] {
    int64_t whole = sizeK / length * length;
    e.loop(0, whole, length, {}, [&](Value kBase, ValueRange) {
      multiplyBlock(kBase, length);
      return SmallVector<Value>();
    });
    if (whole < sizeK)
      multiplyBlock(e.index(whole), sizeK - whole);
  });
  e.loop(0, count, 1, {}, [&](Value row, ValueRange) {
    finishFrom(sumBuffer, row, add(rowBase, row), width);
    return SmallVector<Value>();
  });
}

void ProductEmitter::rows(int64_t width) {
  loops(product.outerM, [&] {
    int64_t count = product.sizeOf(product.m);
    int64_t whole = count / kBlockM * kBlockM;
    e.loop(0, whole, kBlockM, {}, [&](Value row, ValueRange) {
      block(kBlockM, row, width);
      return SmallVector<Value>();
    });
    if (whole < count)
      block(count - whole, e.index(whole), width);
  });
}

void ProductEmitter::emit() {
  for (auto [d, size] : llvm::enumerate(product.nest.sizes))
    if (size == 1)
      ivs[d] = e.index(0);
  Operation *marker = arith::ConstantIndexOp::create(b, loc, 0);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(marker);
    e.setHome();
  }
  int64_t columns = tile.columns();
  int64_t kPiece = std::min(product.sizeOf(product.k), 2 * kBlockK);
  if (packed) {
    Access access = product.accessB();
    access.buffer = packed->getOperand(0);
    access.root = access.buffer;
    access.offset = 0;
    access.dynamicOffset = false;
    packedFlat = e.flat(access);
  } else {
    packBuffer = scalarBuffer(kPiece * columns, product.accessB().element);
  }
  int64_t rowsAtOnce = std::min(product.sizeOf(product.m), kBlockM);
  sumBuffer = scalarBuffer(rowsAtOnce * columns, product.accumulator);
  tileBuffer = scalarBuffer(tile.rows * columns, product.accumulator);
  loops(product.batch, [&] {
    loops(product.outerN, [&] {
      int64_t size = product.sizeOf(product.n);
      int64_t panels = size / columns;
      e.loop(0, panels, 1, {}, [&](Value index, ValueRange) {
        panelIndex = index;
        column = arith::MulIOp::create(b, loc, index, e.index(columns));
        rows(columns);
        return SmallVector<Value>();
      });
      if (size % columns) {
        panelIndex = e.index(panels);
        column = e.index(panels * columns);
        rows(size % columns);
      }
    });
  });
}

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

//===- ProductEmitter.cpp - Products as register tiles --------------------===//
// One panel of B (all of K, as many columns as a tile has) is used by every
// row of A before the next. K is cut into blocks whose panel piece stays in a
// near cache; between blocks the sums of the panel wait in a small buffer. B
// comes packed, or a piece is packed just before its use. What follows the
// product element by element is done on the finished tile. Where the CPU
// multiplies pairs of bf16, B is packed in pairs of neighbours in K.
//===----------------------------------------------------------------------===//
#include "passes/lower/kernels/ProductEmitter.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace cleave::kernels;

ProductEmitter::ProductEmitter(Product p, std::vector<Follower> f, Value fill,
                               bool storeProduct, OpBuilder &b,
                               const CpuIsa &isa)
    : product(std::move(p)), followers(std::move(f)), fill(fill),
      storeProduct(storeProduct), b(b), loc(product.nest.op.getLoc()),
      e(b, loc), tile(tileShape(product, isa)) {
  ivs.assign(product.nest.sizes.size(), Value());
  packed = packedView(product, isa);
  amx = packed && usesAmx(product, isa);
  dot = !amx && usesDot(product, isa);
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
  if (dot)
    return loadPairOfA();
  Value x = e.load(product.accessA(), ivs, -1, 1);
  return e.broadcast(convert(x, product.castA, false), tile.lanes);
}

/// Two neighbours of A along K, repeated over the lanes.
Value ProductEmitter::loadPairOfA() {
  const Access &a = product.accessA();
  auto vectorOf = [](int64_t length, Type element) {
    return VectorType::get({length}, element);
  };
  Type i32 = b.getI32Type();
  Value pair = vector::LoadOp::create(b, loc, vectorOf(2, a.element), e.flat(a),
                                      e.address(a, ivs));
  Value word = vector::BitCastOp::create(b, loc, vectorOf(1, i32), pair);
  return vector::BroadcastOp::create(b, loc, vectorOf(tile.lanes, i32), word);
}

/// Of row k of a panel in [batch.., outer N.., panel, outer K.., K, column].
Value ProductEmitter::packedAddress(Value k, Value panel, int64_t panelElements,
                                    int64_t columns) {
  Value sum = arith::MulIOp::create(b, loc, k, e.index(columns));
  auto addTerm = [&](Value iv, int64_t stride) {
    sum = add(sum, arith::MulIOp::create(b, loc, iv, e.index(stride)));
  };
  int64_t stride = columns * product.sizeOf(product.k);
  for (int d : llvm::reverse(product.outerK)) {
    addTerm(ivs[d], stride);
    stride *= product.nest.sizes[d];
  }
  addTerm(panel, panelElements);
  stride = panelElements * llvm::divideCeil(product.sizeOf(product.n), columns);
  for (const SmallVector<int> &loops : {product.outerN, product.batch})
    for (int d : llvm::reverse(loops)) {
      addTerm(ivs[d], stride);
      stride *= product.nest.sizes[d];
    }
  return sum;
}

Value ProductEmitter::loadB(Value k, int64_t vector) {
  Type element = product.accessB().element;
  int64_t length = tile.lanes * kStep();
  auto type = VectorType::get({length}, element);
  Value at;
  Value from = packBuffer;
  if (packed) {
    from = packedFlat;
    ivs[product.k] = k;
    at = packedAddress(k, plus(panelIndex, vector / tile.vectors),
                       tile.columns() * product.totalK(), tile.columns());
  } else {
    Value local = arith::SubIOp::create(b, loc, k, kBlockBase);
    at = arith::MulIOp::create(b, loc, local, e.index(tile.columns()));
  }
  at = plus(at, vector % tile.vectors * length);
  int64_t bytes = length * element.getIntOrFloatBitWidth() / 8;
  if (prefetches && vector * bytes % 64 == 0)
    memref::PrefetchOp::create(
        b, loc, from, plus(at, kPrefetch * length / bytes),
        /*isWrite=*/false, /*localityHint=*/2, /*isDataCache=*/true);
  Value x = vector::LoadOp::create(b, loc, type, from, at);
  if (!dot)
    return convert(x, product.castB, true);
  auto words = VectorType::get({tile.lanes}, b.getI32Type());
  return vector::BitCastOp::create(b, loc, words, x);
}

/// Stores `width` elements of B; with pairs, those of the next row of B too.
void ProductEmitter::storePacked(Value x, Value next, Value place,
                                 int64_t width) {
  if (width > 1) {
    x = e.broadcast(x, width);
    if (next)
      x = vector::InterleaveOp::create(b, loc, x, e.broadcast(next, width));
    vector::StoreOp::create(b, loc, x, packBuffer, place);
    return;
  }
  memref::StoreOp::create(b, loc, x, packBuffer, place);
  if (next)
    memref::StoreOp::create(b, loc, next, packBuffer, plus(place, 1));
}

/// Copies B[kBase .. + length][column .. + width] to the pack buffer, with
/// zeros up to the width of a tile.
void ProductEmitter::packPiece(Value kBase, int64_t length, int64_t width) {
  Access access = product.accessB();
  int64_t columns = tile.columns();
  auto elements = [&](Value k, int64_t at, int64_t w) -> Value {
    if (at >= width)
      return arith::ConstantOp::create(b, loc, b.getZeroAttr(access.element));
    ivs[product.k] = add(kBase, k);
    ivs[product.n] = plus(column, at);
    return e.load(access, ivs, product.n, w);
  };
  e.loop(0, length, kStep(), {}, [&](Value k, ValueRange) {
    Value to = arith::MulIOp::create(b, loc, k, e.index(columns));
    for (int64_t at = 0; at < columns;) {
      int64_t w = std::min(columns - at, tile.lanes);
      while (at < width && at + w > width)
        w /= 2;
      Value x = elements(k, at, w), next;
      if (dot)
        next = elements(plus(k, 1), at, w);
      storePacked(x, next, plus(to, at * kStep()), w);
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

Value ProductEmitter::multiplyAdd(Value x, Value y, Value sum) {
  if (dot) {
    auto type = VectorType::get({2 * tile.lanes}, b.getBF16Type());
    Value xs = LLVM::BitcastOp::create(b, loc, type, x);
    Value ys = LLVM::BitcastOp::create(b, loc, type, y);
    return LLVM::CallIntrinsicOp::create(
               b, loc, sum.getType(),
               b.getStringAttr("llvm.x86.avx512bf16.dpbf16ps.512"),
               ValueRange{sum, xs, ys})
        .getResult(0);
  }
  if (isa<FloatType>(product.accumulator))
    return math::FmaOp::create(b, loc, x, y, sum);
  return add(sum, arith::MulIOp::create(b, loc, x, y));
}

/// sums[set] += A[row .. + tileRows][k] * B[k][panel].
void ProductEmitter::step(SmallVector<Value> &sums, unsigned set, Value row,
                          int64_t tileRows, Value k) {
  SmallVector<Value> bs;
  for (int64_t v = 0; v < vectors(); ++v)
    bs.push_back(loadB(k, v));
  for (int64_t i = 0; i < tileRows; ++i) {
    Value x = loadA(plus(row, i), k);
    for (int64_t v = 0; v < vectors(); ++v) {
      Value &sum = sums[(set * tileRows + i) * vectors() + v];
      sum = multiplyAdd(x, bs[v], sum);
    }
  }
}

SmallVector<Value> ProductEmitter::multiplyTile(Value row, int64_t tileRows,
                                                Value kBase, int64_t kLength,
                                                ArrayRef<Value> start) {
  // Few accumulators would wait for each other: keep several sets of sums.
  int64_t perSet = tileRows * vectors();
  int64_t sets = std::max<int64_t>(1, 8 / perSet);
  int64_t steps = kLength / kStep();
  if (!isa<FloatType>(product.accumulator) || steps < 2 * sets)
    sets = 1;
  SmallVector<Value> sums(start);
  for (int64_t i = perSet; i < perSet * sets; ++i)
    sums.push_back(zeros());
  int64_t unroll = std::max<int64_t>(sets, steps >= 8 ? 4 : 1);
  int64_t whole = steps / unroll * unroll * kStep();
  sums = e.loop(
      0, whole, unroll * kStep(), sums, [&](Value k, ValueRange carried) {
        SmallVector<Value> next(carried);
        for (int64_t u = 0; u < unroll; ++u)
          step(next, u % sets, row, tileRows, plus(add(kBase, k), u * kStep()));
        return next;
      });
  for (int64_t k = whole; k < kLength; k += kStep())
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
  if (width == vectors() * tile.lanes) {
    for (int64_t i = 0; i < tileRows; ++i)
      for (int64_t v = 0; v < vectors(); ++v)
        finish(sums[i * vectors() + v], plus(row, i),
               plus(column, v * tile.lanes), tile.lanes);
    return;
  }
  for (int64_t i = 0; i < tileRows; ++i)
    for (int64_t v = 0; v < vectors(); ++v)
      vector::StoreOp::create(b, loc, sums[i * vectors() + v], tileBuffer,
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
  if (amx)
    return amxBlock(count, rowBase, width);
  int64_t sizeK = product.sizeOf(product.k);
  bool fewRows = count <= tile.rows;
  int64_t length =
      (packed && fewRows) || sizeK <= 2 * blockK() ? sizeK : blockK();
  prefetches = packed && count <= 8 * tile.rows;
  bool single = product.outerK.empty() && length == sizeK;
  SmallVector<Value> start(tile.rows * vectors(), zeros());
  if (fill) {
    Value x = convert(fill, nullptr, false);
    for (Value &v : start)
      v = e.broadcast(x, tile.lanes);
  }
  auto startOf = [&](int64_t rows) {
    return ArrayRef<Value>(start).take_front(rows * vectors());
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
      for (int64_t v = 0; v < vectors(); ++v)
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
        for (int64_t v = 0; v < vectors(); ++v)
          sums.push_back(vector::LoadOp::create(b, loc, type, sumBuffer,
                                                sumAt(row, i, v)));
      sums = multiplyTile(add(rowBase, row), rows, kBase, kLength, sums);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t v = 0; v < vectors(); ++v)
          vector::StoreOp::create(b, loc, sums[i * vectors() + v], sumBuffer,
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

/// Rows whose part of A stays in the second-level cache for all panels, but
/// enough of them for each pass over B.
int64_t ProductEmitter::blockRows() {
  int64_t count = product.sizeOf(product.m);
  int64_t bytes =
      product.accessA().element.getIntOrFloatBitWidth() / 8 * product.totalK();
  int64_t rows = kBytesOfA / bytes;
  rows = packed && rows >= 96 ? std::min(rows, kBlockM) : kBlockM;
  rows = rows / tile.rows * tile.rows;
  return count <= rows + tile.rows && count <= kBlockM ? count : rows;
}

/// Rows of a panel's piece: each visit costs a load and a store of the sums.
int64_t ProductEmitter::blockK() const {
  if (!packed)
    return kBlockK;
  int64_t bits = product.accessB().element.getIntOrFloatBitWidth();
  int64_t rows = kBytesOfPiece / (tile.columns() * bits / 8);
  return std::max(kBlockK, rows / 64 * 64);
}

/// Few rows need several panels to have enough independent sums, and enough
/// streams from memory.
int64_t ProductEmitter::panelsAtOnce(int64_t count) const {
  if (amx)
    return 2;
  if (!packed || count > tile.rows || !product.outerK.empty())
    return 1;
  int64_t most = tile.rows * tile.vectors;
  return std::clamp<int64_t>(most / (count * tile.vectors), 1, 4);
}

/// All panels of B for a block of rows.
void ProductEmitter::panels(int64_t count, Value rowBase) {
  int64_t columns = amx ? 16 : tile.columns();
  int64_t size = product.sizeOf(product.n), done = 0;
  auto run = [&](int64_t high) {
    e.loop(done, high, group, {}, [&](Value index, ValueRange) {
      panelIndex = index;
      column = arith::MulIOp::create(b, loc, index, e.index(columns));
      loops(product.outerM, [&] { block(count, rowBase, columns * group); });
      return SmallVector<Value>();
    });
    done = high;
  };
  group = panelsAtOnce(count);
  run(size / columns / group * group);
  group = 1;
  run(size / columns);
  if (size % columns == 0)
    return;
  panelIndex = e.index(done);
  column = e.index(done * columns);
  loops(product.outerM, [&] { block(count, rowBase, size % columns); });
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
  int64_t kPiece = std::min(product.sizeOf(product.k), 2 * blockK());
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
  int64_t rowsAtOnce = blockRows();
  sumBuffer = scalarBuffer(rowsAtOnce * columns, product.accumulator);
  tileBuffer =
      scalarBuffer((amx ? 32 : tile.rows) * columns, product.accumulator);
  loops(product.batch, [&] {
    loops(product.outerN, [&] {
      int64_t count = product.sizeOf(product.m);
      int64_t step = blockRows(), whole = count / step * step;
      e.loop(0, whole, step, {}, [&](Value row, ValueRange) {
        panels(step, row);
        return SmallVector<Value>();
      });
      if (whole < count)
        panels(count - whole, e.index(whole));
    });
  });
}

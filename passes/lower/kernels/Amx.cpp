//===- Amx.cpp - Products of bf16 on tile registers -----------------------===//
// Two by two tiles of 16 x 16 sums. A is read as it lies; B is packed in pairs
// of K, [N / 16][K / 2][16][2], as the tile product wants it. Finished sums go
// through a small buffer to the element-wise rest of the kernel.
//===----------------------------------------------------------------------===//
#include "mlir/Dialect/AMX/AMXDialect.h"
#include "passes/lower/kernels/ProductEmitter.h"

using namespace mlir;
using namespace cleave::kernels;

bool cleave::kernels::usesAmx(const Product &product, const CpuIsa &isa) {
  return isa.level == IsaLevel::amx && product.m >= 0 && product.n >= 0 &&
         product.k >= 0 && product.outerK.empty() &&
         product.accessA().element.isBF16() &&
         product.accessB().element.isBF16() && product.accumulator.isF32() &&
         product.accessA().strides[product.k] == 1 &&
         product.sizeOf(product.k) % 32 == 0 && product.sizeOf(product.n) >= 16;
}

/// Tiles of the given heights below each other, two panels wide where `width`
/// needs it.
void ProductEmitter::amxTiles(Value row, ArrayRef<int64_t> heights,
                              int64_t width) {
  Type bf16 = b.getBF16Type(), f32 = b.getF32Type();
  int64_t numPanels = width > 16 ? 2 : 1;
  auto tile2d = [](int64_t rows, int64_t columns, Type type) {
    return amx::TileType::get({rows, columns}, type);
  };
  const Access &a = product.accessA();
  Value from = e.flat(a);
  Value strideA = e.index(a.strides[product.m]), strideB = e.index(32);
  // Where the panel and the rows of A begin.
  int64_t sizeK = product.sizeOf(product.k);
  SmallVector<Value> panelAt, rowAt;
  ivs[product.k] = e.index(0);
  for (int64_t p = 0; p < numPanels; ++p)
    panelAt.push_back(packedAddress(e.index(0), plus(panelIndex, p),
                                    /*panelElements=*/16 * sizeK, 16));
  int64_t offset = 0;
  for (int64_t height : heights) {
    ivs[product.m] = plus(row, offset);
    rowAt.push_back(e.address(a, ivs));
    offset += height;
  }
  SmallVector<Value> sums;
  for (int64_t height : heights)
    for (int64_t p = 0; p < numPanels; ++p)
      sums.push_back(amx::TileZeroOp::create(b, loc, tile2d(height, 16, f32)));
  sums = e.loop(0, sizeK, 32, sums, [&](Value k, ValueRange carried) {
    SmallVector<Value> next(carried), as, bs;
    for (auto [at, height] : llvm::zip_equal(rowAt, heights))
      as.push_back(amx::TileLoadOp::create(b, loc, tile2d(height, 32, bf16),
                                           from, ValueRange{add(at, k)},
                                           strideA));
    // 16 rows of pairs for 32 of K: 16 * 32 elements.
    Value step = arith::MulIOp::create(b, loc, k, e.index(16));
    for (Value at : panelAt)
      bs.push_back(amx::TileLoadOp::create(b, loc, tile2d(16, 32, bf16),
                                           packedFlat,
                                           ValueRange{add(at, step)}, strideB));
    unsigned i = 0;
    for (Value x : as)
      for (Value y : bs) {
        next[i] =
            amx::TileMulFOp::create(b, loc, next[i].getType(), x, y, next[i]);
        ++i;
      }
    return next;
  });
  unsigned i = 0;
  offset = 0;
  for (int64_t height : heights) {
    for (int64_t p = 0; p < numPanels; ++p)
      amx::TileStoreOp::create(
          b, loc, tileBuffer,
          ValueRange{e.index(offset * tile.columns() + p * 16)}, sums[i++],
          e.index(tile.columns()));
    offset += height;
  }
  e.loop(0, offset, 1, {}, [&](Value r, ValueRange) {
    finishFrom(tileBuffer, r, add(row, r), width);
    return SmallVector<Value>();
  });
}

void ProductEmitter::amxBlock(int64_t count, Value rowBase, int64_t width) {
  int64_t whole = count / 32 * 32, rest = count - whole;
  e.loop(0, whole, 32, {}, [&](Value row, ValueRange) {
    amxTiles(add(rowBase, row), {16, 16}, width);
    return SmallVector<Value>();
  });
  if (rest == 0)
    return;
  SmallVector<int64_t> heights;
  if (rest > 16)
    heights.push_back(16);
  heights.push_back(rest > 16 ? rest - 16 : rest);
  amxTiles(plus(rowBase, whole), heights, width);
}

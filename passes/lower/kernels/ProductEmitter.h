//===- ProductEmitter.h - Code of one product -------------------*- C++ -*-===//
#ifndef CLEAVE_PASSES_LOWER_KERNELS_PRODUCTEMITTER_H
#define CLEAVE_PASSES_LOWER_KERNELS_PRODUCTEMITTER_H

#include "passes/lower/kernels/Product.h"

namespace cleave::kernels {

/// An element-wise nest that is applied to finished tiles.
struct Follower {
  Nest nest;
  llvm::SmallVector<int>
      loopOf; // per loop of the nest: one of the product, or -1
};

class ProductEmitter {
public:
  ProductEmitter(Product product, std::vector<Follower> followers,
                 mlir::Value fill, bool storeProduct, mlir::OpBuilder &b,
                 const CpuIsa &isa);
  void emit();

private:
  static constexpr int64_t kBlockK = 256; // a piece that is packed here, in L1
  static constexpr int64_t kBytesOfPiece = 96 * 1024; // a packed piece, in L2
  static constexpr int64_t kBlockM = 384; // most rows with sums in a buffer
  static constexpr int64_t kBytesOfA = 512 * 1024; // rows that stay in L2
  static constexpr int64_t kPrefetch = 4096;       // bytes ahead in a panel

  void loops(llvm::ArrayRef<int> which, llvm::function_ref<void()> body);
  void panels(int64_t count, mlir::Value rowBase);
  int64_t blockRows();
  int64_t blockK() const;
  void block(int64_t count, mlir::Value rowBase, int64_t width);
  void tiles(int64_t count, mlir::Value rowBase,
             llvm::function_ref<void(mlir::Value, int64_t)> emitTile);
  void packPiece(mlir::Value kBase, int64_t length, int64_t width);
  llvm::SmallVector<mlir::Value>
  multiplyTile(mlir::Value row, int64_t tileRows, mlir::Value kBase,
               int64_t kLength, llvm::ArrayRef<mlir::Value> start);
  void step(llvm::SmallVector<mlir::Value> &sums, unsigned set, mlir::Value row,
            int64_t tileRows, mlir::Value k);
  mlir::Value loadA(mlir::Value row, mlir::Value k);
  mlir::Value loadPairOfA();
  mlir::Value packedAddress(mlir::Value k, mlir::Value panel,
                            int64_t panelElements, int64_t columns);
  mlir::Value loadB(mlir::Value k, int64_t vector);
  void finish(mlir::Value value, mlir::Value row, mlir::Value column,
              int64_t width);
  void finishTile(llvm::ArrayRef<mlir::Value> sums, mlir::Value row,
                  int64_t tileRows, int64_t width);
  void finishFrom(mlir::Value buffer, mlir::Value bufferRow, mlir::Value row,
                  int64_t width);
  int64_t vectors() const { return tile.vectors * group; }
  int64_t panelsAtOnce(int64_t count) const;
  mlir::Value scalarBuffer(int64_t elements, mlir::Type type);
  mlir::Value multiplyAdd(mlir::Value x, mlir::Value y, mlir::Value sum);
  void storePacked(mlir::Value x, mlir::Value next, mlir::Value place,
                   int64_t width);
  /// Neighbours of K that one multiply-add takes.
  int64_t kStep() const { return dot ? 2 : 1; }
  mlir::Value convert(mlir::Value value, mlir::Operation *cast, bool isB);
  mlir::Value zeros();
  mlir::Value plus(mlir::Value x, int64_t y);
  mlir::Value add(mlir::Value x, mlir::Value y);

  Product product;
  std::vector<Follower> followers;
  mlir::Value fill;
  bool storeProduct;
  mlir::OpBuilder &b;
  mlir::Location loc;
  NestEmitter e;
  TileShape tile;

  llvm::SmallVector<mlir::Value> ivs; // per loop of the product
  mlir::Value column;                 // of the panel in C
  mlir::Value panelIndex;
  mlir::Operation *packed = nullptr; // the view of a packed argument
  mlir::Value packBuffer, sumBuffer, tileBuffer, packedFlat;
  mlir::Value kBlockBase;
  // AMX.
  void amxBlock(int64_t count, mlir::Value rowBase, int64_t width);
  void amxTiles(mlir::Value row, llvm::ArrayRef<int64_t> heights,
                int64_t width);
  bool amx = false;

  bool dot = false;        // dot products of pairs of bf16
  bool prefetches = false; // B comes from memory once
  int64_t group = 1;       // panels at once
};

} // namespace cleave::kernels

#endif // CLEAVE_PASSES_LOWER_KERNELS_PRODUCTEMITTER_H

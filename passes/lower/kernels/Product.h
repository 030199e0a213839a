//===- Product.h - Contractions as batch x M x N x K ------------*- C++ -*-===//
#ifndef CLEAVE_PASSES_LOWER_KERNELS_PRODUCT_H
#define CLEAVE_PASSES_LOWER_KERNELS_PRODUCT_H

#include "passes/lower/kernels/Nest.h"

namespace cleave::kernels {

/// A contraction: each loop is a batch, M, N or K loop, by which operands move
/// along it. One M and one N loop are cut into register tiles, N along the
/// vectors; the others are plain loops around the tiles.
struct Product {
  Nest nest;
  unsigned a = 0, b = 1; // operands; b moves along N
  llvm::SmallVector<int> batch, outerM, outerN, outerK;
  int m = -1, n = -1, k = -1; // -1: no such loop
  mlir::Type accumulator;     // f32, f64 or an integer
  mlir::Operation *castA = nullptr, *castB = nullptr;
  mlir::Operation *multiply = nullptr, *add = nullptr;

  const Access &accessA() const { return nest.accesses[a]; }
  const Access &accessB() const { return nest.accesses[b]; }
  const Access &accessC() const { return nest.accesses[2]; }
  int64_t sizeOf(int loop) const { return loop < 0 ? 1 : nest.sizes[loop]; }
  int64_t totalM() const;
  int64_t totalK() const;
};

/// `nest` as a product, or nothing where it is none.
std::optional<Product> asProduct(const Nest &nest);

/// Sizes of the register tile on one instruction set.
struct TileShape {
  int64_t lanes, vectors, rows; // a tile is rows x (lanes * vectors)
  int64_t columns() const { return lanes * vectors; }
};
TileShape tileShape(const Product &product, const CpuIsa &isa);

/// Whether register tiles beat the row loops for this product.
bool worthTiling(const Product &product, const CpuIsa &isa, bool packed);

/// Whether the product runs on tile registers, if B is packed for them.
bool usesAmx(const Product &product, const CpuIsa &isa);

/// Whether the product runs on dot products of pairs of bf16.
bool usesDot(const Product &product, const CpuIsa &isa);

/// Dims of B in the order that packed storage has them, or nothing where B is
/// not indexed dim by dim.
std::optional<llvm::SmallVector<int64_t>> packOrder(const Product &product);

/// The operation that stands for a packed argument: a view of its storage with
/// the type of the plain tensor, never read through.
inline constexpr llvm::StringLiteral kPackedView = "packed_view";

/// The view that B is, if its layout is the one this product reads.
mlir::Operation *packedView(const Product &product, const CpuIsa &isa);

/// Unpacks packed arguments that something else than a product reads.
void materialisePackedViews(mlir::func::FuncOp kernel, const CpuIsa &isa);

} // namespace cleave::kernels

#endif // CLEAVE_PASSES_LOWER_KERNELS_PRODUCT_H

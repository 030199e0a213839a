//===- Product.cpp - Contractions as batch x M x N x K --------------------===//
#include "passes/lower/kernels/Product.h"

using namespace mlir;
using namespace cleave::kernels;

int64_t Product::totalM() const {
  int64_t total = sizeOf(m);
  for (int d : outerM)
    total *= nest.sizes[d];
  return total;
}

int64_t Product::totalK() const {
  int64_t total = sizeOf(k);
  for (int d : outerK)
    total *= nest.sizes[d];
  return total;
}

/// The argument of the body that `factor` is, through at most one widening.
static BlockArgument legOf(Value factor, Operation *&cast) {
  cast = nullptr;
  if (Operation *op = factor.getDefiningOp()) {
    if (!isa<arith::ExtFOp, arith::ExtSIOp, arith::ExtUIOp>(op))
      return nullptr;
    cast = op;
    factor = op->getOperand(0);
  }
  return dyn_cast<BlockArgument>(factor);
}

/// Reads the body: add(acc, multiply(a, b)).
static bool matchBody(Product &product) {
  Nest &nest = product.nest;
  if (nest.op.getNumDpsInits() != 1 || nest.numInputs() != 2 ||
      nest.accesses[0].isScalar() || nest.accesses[1].isScalar())
    return false;
  std::optional<Combiner> combiner = nest.combiner(0);
  if (!combiner || !isa<arith::AddFOp, arith::AddIOp>(combiner->op))
    return false;
  product.add = combiner->op;
  product.multiply = combiner->term.getDefiningOp();
  if (!isa_and_nonnull<arith::MulFOp, arith::MulIOp>(product.multiply))
    return false;
  Operation *casts[2];
  BlockArgument legs[2];
  for (int i : {0, 1})
    legs[i] = legOf(product.multiply->getOperand(i), casts[i]);
  if (!legs[0] || !legs[1] || legs[0].getArgNumber() > 1 ||
      legs[1].getArgNumber() > 1 || legs[0] == legs[1])
    return false;
  product.castA = casts[legs[0].getArgNumber() == 0 ? 0 : 1];
  product.castB = casts[legs[0].getArgNumber() == 0 ? 1 : 0];
  Type type = product.add->getResult(0).getType();
  bool narrow = isa<FloatType>(type) && type.getIntOrFloatBitWidth() < 32;
  product.accumulator =
      narrow ? Type(Float32Type::get(type.getContext())) : type;
  return type.isInteger(32) || isa<FloatType>(type);
}

std::optional<Product> cleave::kernels::asProduct(const Nest &nest) {
  Product product;
  product.nest = nest;
  if (!matchBody(product))
    return std::nullopt;
  SmallVector<int> ms, ns;
  for (int d = 0, e = nest.sizes.size(); d < e; ++d) {
    bool inA = nest.accesses[0].strides[d], inB = nest.accesses[1].strides[d],
         inC = nest.accesses[2].strides[d];
    if (nest.sizes[d] == 1)
      continue;
    if (nest.parallel[d] != inC || (!inA && !inB) || nest.indexed[d])
      return std::nullopt;
    if (inC && inA && inB)
      product.batch.push_back(d);
    else if (inC)
      (inA ? ms : ns).push_back(d);
    else if (inA && inB)
      product.outerK.push_back(d);
    else
      return std::nullopt;
  }
  // Vectors run along the loop that C is contiguous in; call that side N.
  auto contiguous = [&](ArrayRef<int> loops) {
    return llvm::any_of(
        loops, [&](int d) { return nest.accesses[2].strides[d] == 1; });
  };
  if (contiguous(ms) || ns.empty()) {
    std::swap(ms, ns);
    std::swap(product.a, product.b);
    std::swap(product.castA, product.castB);
  }
  auto takeInner = [&](SmallVector<int> &loops, bool wantContiguous) {
    int best = -1;
    for (int d : loops)
      if (best < 0 || nest.sizes[d] > nest.sizes[best])
        best = d;
    for (int d : loops)
      if (wantContiguous && nest.accesses[2].strides[d] == 1)
        best = d;
    if (best >= 0)
      llvm::erase(loops, best);
    return best;
  };
  product.n = takeInner(ns, true);
  product.m = takeInner(ms, false);
  product.k = takeInner(product.outerK, false);
  product.outerM = ms;
  product.outerN = ns;
  return product;
}

TileShape cleave::kernels::tileShape(const Product &product,
                                     const CpuIsa &isa) {
  int64_t lanes = isa.vectorBytes() / registerBytes(product.accumulator);
  // 2 vectors of B and one broadcast of A stay beside the accumulators.
  return isa.numVectors() == 32 ? TileShape{lanes, 2, 12}
                                : TileShape{lanes, 2, 6};
}

bool cleave::kernels::usesDot(const Product &product, const CpuIsa &isa) {
  return isa.hasBf16Dot() && product.k >= 0 &&
         product.accessA().element.isBF16() &&
         product.accessB().element.isBF16() && product.accumulator.isF32() &&
         product.accessA().strides[product.k] == 1 &&
         product.sizeOf(product.k) % 2 == 0;
}

bool cleave::kernels::worthTiling(const Product &product, const CpuIsa &isa,
                                  bool packed) {
  TileShape tile = tileShape(product, isa);
  if (product.n < 0 || product.k < 0 || product.sizeOf(product.n) < tile.lanes)
    return false;
  if (packed)
    return true;
  // Packing has to pay: each packed element is used once per row.
  return product.totalM() >= 4;
}

//===- GeneratorReduce.cpp - Random reductions ----------------------------===//
#include "test/oracle/GeneratorImpl.h"
#include <cmath>

using namespace mlir;

namespace cleave::oracle {

using Values = llvm::SmallVector<Value>;

/// A way to reduce: its neutral element and its combiner.
struct ProgramGenerator::Reducer {
  double neutral = 0;
  /// Magnitude of the result, without that of the initial value.
  double bound = 0;
  /// The initial value adds to the bound; otherwise the larger one counts.
  bool adds = false;
  std::function<Value(Value, Value)> combine;
};

ProgramGenerator::Reducer ProgramGenerator::randomReducer(Bounded x,
                                                          int64_t terms) {
  Type type = x.element();
  auto with = [&](auto tag) {
    return [this](Value a, Value c) -> Value {
      return decltype(tag)::create(b, loc, a, c);
    };
  };
  if (isa<FloatType>(type)) {
    double infinity = HUGE_VAL;
    unsigned draw = random.below(8);
    if (draw < 3 && x.bound * terms + 16 <= exactLimit(type))
      return {0, x.bound * terms, true, with(arith::AddFOp())};
    if (draw == 3 && x.bound <= 1)
      return {1, 1, false, with(arith::MulFOp())};
    if (draw == 4)
      return {infinity, x.bound, false, with(arith::MinimumFOp())};
    if (draw == 5)
      return {-infinity, x.bound, false, with(arith::MaxNumFOp())};
    if (draw == 6)
      return {infinity, x.bound, false, with(arith::MinNumFOp())};
    return {-infinity, x.bound, false, with(arith::MaximumFOp())};
  }
  double least = -std::ldexp(1.0, type.getIntOrFloatBitWidth() - 1);
  switch (random.below(9)) {
  case 0:
    return {1, 0, false, with(arith::MulIOp())};
  case 1:
    return {least, 0, false, with(arith::MaxSIOp())};
  case 2:
    return {std::fmin(-least - 1, 0x1p62), 0, false, with(arith::MinSIOp())};
  case 3:
    return {0, 0, false, with(arith::MaxUIOp())};
  case 4:
    return {-1, 0, false, with(arith::MinUIOp())};
  case 5:
    return {-1, 0, false, with(arith::AndIOp())};
  case 6:
    return {0, 0, false, with(arith::OrIOp())};
  case 7:
    return {0, 0, false, with(arith::XOrIOp())};
  default:
    return {0, 0, false, with(arith::AddIOp())};
  }
}

/// A value of the pool and which of its dims are reduced, at least one.
bool ProgramGenerator::pickReduction(Bounded &x,
                                     llvm::SmallVector<bool> &isReduction,
                                     Shape &outShape, AffineMap &outMap) {
  Bounded *found = pickValue([](const Bounded &v) { return v.rank() > 0; });
  if (!found)
    return false;
  x = *found;
  int64_t n = x.rank(), sure = random.below(n);
  Loops kept;
  for (int64_t i = 0; i < n; ++i) {
    isReduction.push_back(i == sure || random.chance(35));
    if (!isReduction.back())
      kept.push_back(i);
  }
  if (random.chance(15))
    shuffle(kept);
  for (int64_t loop : kept)
    outShape.push_back(x.shape()[loop]);
  outMap = mapOf(n, kept);
  return true;
}

static double boundOf(double reduced, double init, bool adds) {
  return adds ? reduced + init : std::fmax(reduced, init);
}

bool ProgramGenerator::addReduce() {
  Bounded x;
  llvm::SmallVector<bool> isReduction;
  Shape outShape;
  AffineMap outMap;
  if (!pickReduction(x, isReduction, outShape, outMap))
    return false;
  Type element = x.element();
  if (random.chance(10))
    x = tame(x, 1);
  int64_t terms = numElements(x.shape());
  // Of the elements themselves, their squares, or a function of them.
  bool squares = isa<FloatType>(element) && random.chance(20) &&
                 x.bound * x.bound <= exactLimit(element);
  if (squares)
    x.bound *= x.bound;
  Reducer reducer = randomReducer(x, terms);
  Bounded init = initFor(outShape, element, reducer.neutral);
  bool isNeutral = std::isinf(init.bound);
  if (isNeutral && terms == 0)
    return false; // the result is infinite
  double bound =
      boundOf(reducer.bound, isNeutral ? 0 : init.bound, reducer.adds);
  if (isa<FloatType>(element) && bound > exactLimit(element))
    return false;
  bool inOrder = llvm::is_sorted(outMap.getResults(), [](auto x, auto y) {
    return cast<AffineDimExpr>(x).getPosition() <
           cast<AffineDimExpr>(y).getPosition();
  });
  if (!squares && inOrder && random.chance(40)) {
    llvm::SmallVector<int64_t> dims;
    for (auto [i, reduced] : llvm::enumerate(isReduction))
      if (reduced)
        dims.push_back(i);
    auto op = linalg::ReduceOp::create(
        b, loc, ValueRange{x.value}, ValueRange{init.value}, dims,
        [&](OpBuilder &inner, Location, ValueRange args) {
          OpBuilder::InsertPoint here = b.saveInsertionPoint();
          b.restoreInsertionPoint(inner.saveInsertionPoint());
          Value result = reducer.combine(args[0], args[1]);
          linalg::YieldOp::create(b, loc, result);
          b.restoreInsertionPoint(here);
        });
    add(op->getResult(0), bound);
    return true;
  }
  auto op = generic({x.value}, {init.value},
                    {b.getMultiDimIdentityMap(x.rank()), outMap}, isReduction,
                    [&](ValueRange args) -> Values {
                      Value in = args[0];
                      if (squares)
                        in = arith::MulFOp::create(b, loc, in, in);
                      return {random.chance(50) ? reducer.combine(args[1], in)
                                                : reducer.combine(in, args[1])};
                    });
  add(op.getResult(0), bound);
  return true;
}

/// Two reductions of different kinds in one op.
bool ProgramGenerator::addMultiReduce() {
  Bounded x;
  llvm::SmallVector<bool> isReduction;
  Shape outShape;
  AffineMap outMap;
  if (!pickReduction(x, isReduction, outShape, outMap))
    return false;
  int64_t terms = numElements(x.shape());
  Reducer first = randomReducer(x, terms), second = randomReducer(x, terms);
  Bounded inits[] = {initFor(outShape, x.element(), first.neutral),
                     initFor(outShape, x.element(), second.neutral)};
  auto op = generic({x.value}, {inits[0].value, inits[1].value},
                    {b.getMultiDimIdentityMap(x.rank()), outMap, outMap},
                    isReduction, [&](ValueRange args) -> Values {
                      Value a = first.combine(args[1], args[0]);
                      return {a, second.combine(args[2], args[0])};
                    });
  for (unsigned i = 0; i < 2; ++i) {
    const Reducer &reducer = i == 0 ? first : second;
    if (std::isinf(inits[i].bound) && terms == 0)
      continue;
    double init = std::isinf(inits[i].bound) ? 0 : inits[i].bound;
    double bound = boundOf(reducer.bound, init, reducer.adds);
    if (bound <= exactLimit(x.element()))
      add(op.getResult(i), bound);
  }
  return true;
}

/// The largest element of a dim and where it first occurs.
bool ProgramGenerator::addArgMax() {
  Bounded *found = pickValue([](const Bounded &v) {
    return v.rank() > 0 && !v.element().isInteger(1);
  });
  if (!found)
    return false;
  Bounded x = *found;
  int64_t n = x.rank(), dim = random.below(n);
  if (x.shape()[dim] == 0)
    return false;
  Loops kept;
  Shape outShape;
  llvm::SmallVector<bool> isReduction;
  for (int64_t i = 0; i < n; ++i) {
    isReduction.push_back(i == dim);
    if (i == dim)
      continue;
    kept.push_back(i);
    outShape.push_back(x.shape()[i]);
  }
  Type element = x.element(), index = b.getI32Type();
  bool isFloat = isa<FloatType>(element);
  double least = isFloat
                     ? -HUGE_VAL
                     : -std::ldexp(1.0, element.getIntOrFloatBitWidth() - 1);
  Bounded best = filled(outShape, element, least);
  Bounded where = filled(outShape, index, 0);
  AffineMap map = mapOf(n, kept);
  auto op = generic(
      {x.value}, {best.value, where.value},
      {b.getMultiDimIdentityMap(n), map, map}, isReduction,
      [&](ValueRange args) -> Values {
        Value at = linalg::IndexOp::create(b, loc, dim);
        at = arith::IndexCastOp::create(b, loc, index, at);
        Value larger =
            isFloat
                ? Value(arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT,
                                              args[0], args[1]))
                : Value(arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt,
                                              args[0], args[1]));
        Value value = arith::SelectOp::create(b, loc, larger, args[0], args[1]);
        return {value, arith::SelectOp::create(b, loc, larger, at, args[2])};
      });
  add(op.getResult(0), x.bound);
  add(op.getResult(1), 0);
  return true;
}

/// A combiner that is no reduction anybody knows: its order must be kept.
bool ProgramGenerator::addOrdered() {
  Bounded x;
  llvm::SmallVector<bool> isReduction;
  Shape outShape;
  AffineMap outMap;
  if (!pickReduction(x, isReduction, outShape, outMap))
    return false;
  bool isFloat = isa<FloatType>(x.element());
  Bounded init = filled(outShape, x.element(), 0);
  double bound = x.bound * numElements(x.shape());
  if (isFloat && bound > exactLimit(x.element()))
    return false;
  auto op = generic(
      {x.value}, {init.value}, {b.getMultiDimIdentityMap(x.rank()), outMap},
      isReduction, [&](ValueRange args) -> Values {
        if (isFloat)
          return {arith::SubFOp::create(b, loc, args[0], args[1])};
        Value scaled =
            arith::MulIOp::create(b, loc, args[1], scalar(x.element(), 3));
        return {arith::AddIOp::create(b, loc, scaled, args[0])};
      });
  add(op.getResult(0), bound);
  return true;
}

/// A sliding window along one dim: pooling, or a convolution.
bool ProgramGenerator::addWindow() {
  Bounded *found = pickValue([](const Bounded &v) {
    return v.rank() > 0 && !v.element().isInteger(1);
  });
  if (!found)
    return false;
  Bounded x = *found;
  Type element = x.element();
  int64_t n = x.rank(), dim = random.below(n), size = x.shape()[dim];
  if (size == 0)
    return false;
  int64_t width = random.between(1, std::min<int64_t>(size, 3));
  int64_t step = random.between(1, 2);
  Shape outShape(x.shape());
  outShape[dim] = (size - width) / step + 1;
  bool isFloat = isa<FloatType>(element), weighted = random.chance(50);
  x = tame(x, std::fmin(x.bound, exactLimit(element) / 16 / width));
  if (!x.value)
    return false;
  Bounded window =
      weighted ? fresh({width}, element) : Bounded{empty({width}, element), 1};
  window = weighted ? tame(window, 4) : window;
  llvm::SmallVector<AffineExpr> exprs;
  for (int64_t i = 0; i < n; ++i)
    exprs.push_back(b.getAffineDimExpr(i));
  AffineMap out = AffineMap::get(n + 1, 0, exprs, b.getContext());
  exprs[dim] = exprs[dim] * step + b.getAffineDimExpr(n);
  AffineMap in = AffineMap::get(n + 1, 0, exprs, b.getContext());
  llvm::SmallVector<bool> isReduction(n, false);
  isReduction.push_back(true);
  Bounded init = filled(outShape, element, weighted ? 0 : -3);
  double bound =
      weighted ? x.bound * window.bound * width : std::fmax(x.bound, 3);
  auto op = generic({x.value, window.value}, {init.value},
                    {in, mapOf(n + 1, {n}), out}, isReduction,
                    [&](ValueRange a) -> Values {
                      if (!isFloat) {
                        if (!weighted)
                          return {arith::MaxSIOp::create(b, loc, a[2], a[0])};
                        Value term = arith::MulIOp::create(b, loc, a[0], a[1]);
                        return {arith::AddIOp::create(b, loc, a[2], term)};
                      }
                      if (!weighted)
                        return {arith::MaximumFOp::create(b, loc, a[2], a[0])};
                      Value term = arith::MulFOp::create(b, loc, a[0], a[1]);
                      return {arith::AddFOp::create(b, loc, a[2], term)};
                    });
  add(op.getResult(0), bound);
  return true;
}

/// out[v, ...] = sum over b of x[b, ...] where ids[b] mod V is v.
bool ProgramGenerator::addScatterAdd() {
  Bounded *found = pickValue([](const Bounded &v) {
    return v.rank() > 0 && v.rank() < 4 && !v.element().isInteger(1);
  });
  if (!found)
    return false;
  Bounded x = *found;
  Type element = x.element(), i32 = b.getI32Type();
  int64_t rows = random.between(2, 7), n = x.rank() + 1; // loops: b, rest, v
  Shape outShape(x.shape());
  outShape[0] = rows;
  if (!fits(outShape) || rows * numElements(x.shape()) > options.maxPoints)
    return false;
  double bound = x.bound * x.shape()[0];
  if (bound > exactLimit(element))
    return false;
  Bounded ids = fresh({x.shape()[0]}, i32);
  Bounded init = filled(outShape, element, 0);
  Loops in, out;
  llvm::SmallVector<bool> isReduction(n, false);
  isReduction[0] = true;
  for (int64_t i = 0; i < n - 1; ++i) {
    in.push_back(i);
    out.push_back(i == 0 ? n - 1 : i);
  }
  auto op = generic(
      {x.value, ids.value}, {init.value},
      {mapOf(n, in), mapOf(n, {0}), mapOf(n, out)}, isReduction,
      [&](ValueRange a) -> Values {
        Value id = arith::RemUIOp::create(b, loc, a[1], scalar(i32, rows));
        Value row = linalg::IndexOp::create(b, loc, n - 1);
        row = arith::IndexCastOp::create(b, loc, i32, row);
        Value same =
            arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, id, row);
        Value term =
            arith::SelectOp::create(b, loc, same, a[0], scalar(element, 0));
        if (isa<FloatType>(element))
          return {arith::AddFOp::create(b, loc, a[2], term)};
        return {arith::AddIOp::create(b, loc, a[2], term)};
      });
  add(op.getResult(0), bound);
  return true;
}

//===----------------------------------------------------------------------===//
// Float programs
//===----------------------------------------------------------------------===//

bool ProgramGenerator::addSoftmax() {
  Bounded *found = pickValue([](const Bounded &v) { return v.rank() > 0; });
  if (!found)
    return false;
  Bounded x = tame(*found, 16);
  auto op = linalg::SoftmaxOp::create(
      b, loc, TypeRange{x.type()}, x.value, empty(x.shape(), x.element()),
      random.chance(70) ? x.rank() - 1 : random.below(x.rank()));
  add(op->getResult(0), 1);
  return true;
}

/// x / sqrt(mean of squares + 1) over the last dims.
bool ProgramGenerator::addNorm() {
  Bounded *found = pickValue([](const Bounded &v) { return v.rank() > 0; });
  if (!found)
    return false;
  Bounded x = tame(*found, 8);
  int64_t n = x.rank(), kept = random.below(n);
  Type element = x.element();
  Loops outer;
  llvm::SmallVector<bool> isReduction;
  for (int64_t i = 0; i < n; ++i) {
    isReduction.push_back(i >= kept);
    if (i < kept)
      outer.push_back(i);
  }
  Shape outShape(x.shape().take_front(kept));
  double terms = numElements(x.shape().drop_front(kept));
  AffineMap identity = b.getMultiDimIdentityMap(n), map = mapOf(n, outer);
  Bounded zero = filled(outShape, element, 0);
  auto sum = generic({x.value}, {zero.value}, {identity, map}, isReduction,
                     [&](ValueRange a) -> Values {
                       Value square = arith::MulFOp::create(b, loc, a[0], a[0]);
                       return {arith::AddFOp::create(b, loc, a[1], square)};
                     });
  auto scaled = generic(
      {x.value, sum.getResult(0)}, {empty(x.shape(), element)},
      {identity, map, identity}, llvm::SmallVector<bool>(n, false),
      [&](ValueRange a) -> Values {
        Value mean =
            arith::MulFOp::create(b, loc, a[1], scalar(element, 1 / terms));
        Value shifted = arith::AddFOp::create(b, loc, mean, scalar(element, 1));
        Value factor = math::RsqrtOp::create(b, loc, shifted);
        return {arith::MulFOp::create(b, loc, a[0], factor)};
      });
  add(scaled.getResult(0), x.bound);
  return true;
}

} // namespace cleave::oracle

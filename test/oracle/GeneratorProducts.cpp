//===- GeneratorProducts.cpp - Random products ---------------------------===//
#include "test/oracle/GeneratorImpl.h"
#include <cmath>

using namespace mlir;

namespace cleave::oracle {

using Values = llvm::SmallVector<Value>;

/// The named products, with one operand from the pool.
bool ProgramGenerator::addProduct() {
  Bounded *found = pickValue([](const Bounded &v) {
    return v.rank() >= 1 && v.rank() <= 3 && !v.element().isInteger(1);
  });
  if (!found)
    return false;
  Bounded x = *found;
  Type element = x.element();
  int64_t contracted = x.shape().back();
  double bound = std::floor(std::sqrt(exactLimit(element) / 2 / contracted));
  x = tame(x, std::fmin(bound, x.bound));
  if (!x.value)
    return false;
  int64_t columns = std::min<int64_t>(
      randomSize(),
      std::max<int64_t>(1, options.maxElements * contracted /
                               std::max<int64_t>(1, numElements(x.shape()))));
  auto multiply = [&](auto tag, llvm::ArrayRef<int64_t> other,
                      llvm::ArrayRef<int64_t> out, bool swap = false) {
    Bounded *pooled = pickValue([&](const Bounded &v) {
      return v.element() == element && v.shape() == other;
    });
    Bounded y = pooled && random.chance(50) ? *pooled : fresh(other, element);
    y = tame(y, std::fmin(bound, y.bound));
    if (!y.value || !fits(out))
      return false;
    Bounded init = initFor(out, element, 0);
    double total = x.bound * y.bound * contracted + init.bound;
    if (isa<FloatType>(element) && total > exactLimit(element))
      return false;
    auto op = decltype(tag)::create(b, loc, TypeRange{init.type()},
                                    swap ? ValueRange{y.value, x.value}
                                         : ValueRange{x.value, y.value},
                                    ValueRange{init.value});
    add(op->getResult(0), total);
    return true;
  };
  auto shape = x.shape();
  switch (shape.size()) {
  case 1:
    if (random.chance(30))
      return multiply(linalg::DotOp(), shape, {});
    if (random.chance(50))
      return multiply(linalg::VecmatOp(), {shape[0], columns}, {columns});
    return multiply(linalg::MatvecOp(), {columns, shape[0]}, {columns}, true);
  case 2:
    if (random.chance(20))
      return multiply(linalg::MatvecOp(), {shape[1]}, {shape[0]});
    return multiply(linalg::MatmulOp(), {shape[1], columns},
                    {shape[0], columns});
  default:
    return multiply(linalg::BatchMatmulOp(), {shape[0], shape[2], columns},
                    {shape[0], shape[1], columns});
  }
}

/// A product over any dims: each dim of the first operand is a batch, a row or
/// a contracted dim; the second has the batch and contracted ones and its own.
bool ProgramGenerator::addContraction() {
  Bounded *found = pickValue([](const Bounded &v) {
    return v.rank() >= 1 && !v.element().isInteger(1);
  });
  if (!found)
    return false;
  Bounded x = *found;
  Shape ranges(x.shape());
  Loops left, right, out;
  llvm::SmallVector<bool> isReduction;
  int64_t points = 1, terms = 1;
  for (int64_t i = 0; i < x.rank(); ++i) {
    unsigned role = random.below(4); // 0: row, 1: batch, else contracted
    left.push_back(i);
    isReduction.push_back(role > 1);
    if (role > 1)
      terms *= ranges[i];
    if (role != 0)
      right.push_back(i);
    if (role <= 1)
      out.push_back(i);
  }
  int64_t columns = random.below(3);
  for (int64_t i = 0; i < columns && right.size() < 4 && out.size() < 4; ++i) {
    right.push_back(ranges.size());
    out.push_back(ranges.size());
    ranges.push_back(random.between(1, 6));
    isReduction.push_back(false);
  }
  for (int64_t range : ranges)
    points *= std::max<int64_t>(range, 1);
  if (points > options.maxPoints)
    return false;
  if (random.chance(40))
    shuffle(right);
  if (random.chance(40))
    shuffle(out);
  auto shapeOfLoops = [&](const Loops &loops) {
    Shape shape;
    for (int64_t loop : loops)
      shape.push_back(ranges[loop]);
    return shape;
  };
  if (!fits(shapeOfLoops(out)) || !fits(shapeOfLoops(right)))
    return false;
  double bound = std::floor(std::sqrt(exactLimit(x.element()) / 2 / terms));
  x = tame(x, std::fmin(bound, x.bound));
  if (!x.value)
    return false;
  Bounded y = fresh(shapeOfLoops(right), x.element());
  y = tame(y, std::fmin(bound, y.bound));
  if (!y.value)
    return false;
  Bounded init = initFor(shapeOfLoops(out), x.element(), 0);
  double total = x.bound * y.bound * terms + init.bound;
  bool isFloat = isa<FloatType>(x.element());
  if (isFloat && total > exactLimit(x.element()))
    return false;
  int64_t n = ranges.size();
  bool fused = isFloat && random.chance(15);
  auto op = generic({x.value, y.value}, {init.value},
                    {mapOf(n, left), mapOf(n, right), mapOf(n, out)},
                    isReduction, [&](ValueRange a) -> Values {
                      if (fused)
                        return {math::FmaOp::create(b, loc, a[0], a[1], a[2])};
                      if (isFloat) {
                        Value product =
                            arith::MulFOp::create(b, loc, a[0], a[1]);
                        return {arith::AddFOp::create(b, loc, a[2], product)};
                      }
                      Value product = arith::MulIOp::create(b, loc, a[0], a[1]);
                      return {arith::AddIOp::create(b, loc, product, a[2])};
                    });
  add(op.getResult(0), total);
  return true;
}

/// `left` [rows, terms] times a fresh value; null if it would not be exact.
Bounded ProgramGenerator::timesFresh(Bounded left, int64_t columns) {
  if (!left.value || !fits({left.shape()[0], columns}))
    return {};
  Type element = left.element();
  int64_t rows = left.shape()[0], terms = left.shape()[1];
  Bounded init = tame(initFor({rows, columns}, element, 0), 16);
  double room = exactLimit(element) / 2;
  double most = std::floor(room / std::fmax(1, left.bound * terms));
  Bounded right = fits({terms, columns})
                      ? tame(fresh({terms, columns}, element), most)
                      : Bounded{};
  if (!right.value || !init.value)
    return {};
  auto op = linalg::MatmulOp::create(b, loc, TypeRange{init.type()},
                                     ValueRange{left.value, right.value},
                                     ValueRange{init.value});
  return {op.getResult(0), left.bound * right.bound * terms + init.bound};
}

/// A value that two or three products read; their results are added, and most
/// of the time multiplied once more: the value may move once for all of them.
bool ProgramGenerator::addShared() {
  Bounded *found = pickValue([](const Bounded &v) {
    return v.rank() == 2 && !v.element().isInteger(1);
  });
  if (!found)
    return false;
  Type element = found->element();
  Bounded x = tame(*found, std::fmin(found->bound, 4));
  int64_t columns = randomSize(), readers = random.between(2, 3);
  Bounded sum;
  for (int64_t i = 0; i < readers; ++i) {
    Bounded next = timesFresh(x, columns);
    if (next.value)
      next = tame(next, exactLimit(element) / 4);
    if (!next.value)
      return false;
    if (i > 0) {
      Value to = empty(sum.shape(), element);
      auto both = linalg::AddOp::create(b, loc, TypeRange{sum.type()},
                                        ValueRange{sum.value, next.value},
                                        ValueRange{to});
      next = {both.getResult(0), sum.bound + next.bound};
    }
    sum = next;
    add(sum.value, sum.bound);
  }
  if (!random.chance(70))
    return true;
  Bounded last =
      timesFresh(tame(sum, std::fmin(sum.bound, 4)), random.between(1, 6));
  if (last.value)
    add(last.value, last.bound);
  return true;
}

} // namespace cleave::oracle

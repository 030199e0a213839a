//===- GeneratorCompute.cpp - Random ops that compute ---------------------===//
#include "test/oracle/GeneratorImpl.h"
#include <cmath>

using namespace mlir;

namespace cleave::oracle {

using Values = llvm::SmallVector<Value>;

AffineMap ProgramGenerator::mapOf(int64_t numLoops,
                                  llvm::ArrayRef<int64_t> loops) {
  llvm::SmallVector<AffineExpr> results;
  for (int64_t loop : loops)
    results.push_back(b.getAffineDimExpr(loop));
  return AffineMap::get(numLoops, 0, results, b.getContext());
}

linalg::GenericOp
ProgramGenerator::generic(llvm::ArrayRef<Value> ins, llvm::ArrayRef<Value> outs,
                          llvm::ArrayRef<AffineMap> maps,
                          llvm::ArrayRef<bool> isReduction,
                          llvm::function_ref<Values(ValueRange)> body) {
  llvm::SmallVector<utils::IteratorType> iterators;
  for (bool reduction : isReduction)
    iterators.push_back(reduction ? utils::IteratorType::reduction
                                  : utils::IteratorType::parallel);
  llvm::SmallVector<Type> types(ValueRange(outs).getTypes());
  return linalg::GenericOp::create(
      b, loc, types, ins, outs, maps, iterators,
      [&](OpBuilder &inner, Location, ValueRange args) {
        OpBuilder::InsertPoint here = b.saveInsertionPoint();
        b.restoreInsertionPoint(inner.saveInsertionPoint());
        Values results = body(args);
        linalg::YieldOp::create(b, loc, results);
        b.restoreInsertionPoint(here);
      });
}

//===----------------------------------------------------------------------===//
// Scalars
//===----------------------------------------------------------------------===//

Value ProgramGenerator::compare(Value x, Value y) {
  if (isa<FloatType>(x.getType())) {
    static const arith::CmpFPredicate kinds[] = {
        arith::CmpFPredicate::OGT, arith::CmpFPredicate::OLE,
        arith::CmpFPredicate::OEQ, arith::CmpFPredicate::UNE};
    return arith::CmpFOp::create(b, loc, random.pick(kinds), x, y);
  }
  static const arith::CmpIPredicate kinds[] = {
      arith::CmpIPredicate::sgt, arith::CmpIPredicate::sle,
      arith::CmpIPredicate::eq, arith::CmpIPredicate::ult};
  return arith::CmpIOp::create(b, loc, random.pick(kinds), x, y);
}

/// Functions without jumps, for float programs; never far from what is exact.
Bounded ProgramGenerator::smoothUnary(Bounded x) {
  Type type = x.value.getType();
  auto clamp = [&](double bound) {
    if (x.bound <= bound)
      return;
    Value low = arith::MinimumFOp::create(b, loc, x.value, scalar(type, bound));
    x.value = arith::MaximumFOp::create(b, loc, low, scalar(type, -bound));
    x.bound = bound;
  };
  Value one = scalar(type, 1);
  switch (random.below(8)) {
  case 0:
    clamp(3);
    return {math::ExpOp::create(b, loc, x.value), std::exp(x.bound)};
  case 1:
    return {math::TanhOp::create(b, loc, x.value), 1};
  case 2:
    return {math::ErfOp::create(b, loc, x.value), 1};
  case 3: { // sigmoid
    clamp(8);
    Value e =
        math::ExpOp::create(b, loc, arith::NegFOp::create(b, loc, x.value));
    Value sum = arith::AddFOp::create(b, loc, one, e);
    return {arith::DivFOp::create(b, loc, one, sum), 1};
  }
  case 4: { // log(1 + x^2)
    clamp(8);
    Value square = arith::MulFOp::create(b, loc, x.value, x.value);
    Value sum = arith::AddFOp::create(b, loc, one, square);
    return {math::LogOp::create(b, loc, sum), 5};
  }
  case 5: { // 1 / sqrt(1 + x^2)
    clamp(8);
    Value square = arith::MulFOp::create(b, loc, x.value, x.value);
    Value sum = arith::AddFOp::create(b, loc, one, square);
    return {math::RsqrtOp::create(b, loc, sum), 1};
  }
  case 6: {
    Value abs = math::AbsFOp::create(b, loc, x.value);
    Value sum = arith::AddFOp::create(b, loc, one, abs);
    return {arith::DivFOp::create(b, loc, x.value, sum), 1};
  }
  default:
    return {arith::MulFOp::create(b, loc, x.value, scalar(type, 0.5)), x.bound};
  }
}

Bounded ProgramGenerator::floatUnary(Bounded x) {
  Type type = x.value.getType();
  double number = random.between(-3, 3);
  Value c = scalar(type, number);
  double limit = exactLimit(type);
  if (options.floats && random.chance(60))
    return smoothUnary(x);
  switch (random.below(8)) {
  case 0:
    return {arith::NegFOp::create(b, loc, x.value), x.bound};
  case 1:
    return {math::AbsFOp::create(b, loc, x.value), x.bound};
  case 2:
    if (x.bound + 3 <= limit)
      return {arith::AddFOp::create(b, loc, x.value, c), x.bound + 3};
    break;
  case 3:
    if (3 * x.bound <= limit)
      return {arith::MulFOp::create(b, loc, c, x.value), 3 * x.bound};
    break;
  case 4:
    return {arith::MaximumFOp::create(b, loc, x.value, c),
            std::fmax(x.bound, 3)};
  case 5:
    if (x.bound * x.bound <= limit)
      return {arith::MulFOp::create(b, loc, x.value, x.value),
              x.bound * x.bound};
    break;
  case 6: { // a branch in a body
    if (options.floats)
      break;
    Value condition = compare(x.value, c);
    auto branch = scf::IfOp::create(
        b, loc, condition,
        [&](OpBuilder &inner, Location l) {
          Value y = arith::NegFOp::create(inner, l, x.value);
          scf::YieldOp::create(inner, l, y);
        },
        [&](OpBuilder &inner, Location l) {
          scf::YieldOp::create(inner, l, c);
        });
    return {branch.getResult(0), std::fmax(x.bound, 3)};
  }
  default:
    break;
  }
  return {arith::MinimumFOp::create(b, loc, c, x.value), std::fmax(x.bound, 3)};
}

Bounded ProgramGenerator::intUnary(Bounded x) {
  Type type = x.value.getType();
  bool isBool = type.isInteger(1);
  Value c = scalar(type, isBool ? -1 : random.between(-7, 7));
  switch (random.below(isBool ? 3 : 10)) {
  case 0:
    return {arith::XOrIOp::create(b, loc, x.value, c)};
  case 1:
    return {arith::AndIOp::create(b, loc, x.value, c)};
  case 2:
    return {arith::OrIOp::create(b, loc, x.value, x.value)};
  case 3:
    return {arith::AddIOp::create(b, loc, x.value, c)};
  case 4:
    return {arith::MulIOp::create(b, loc, x.value, c)};
  case 5:
    return {arith::SubIOp::create(b, loc, c, x.value)};
  case 6:
    return {arith::MaxSIOp::create(b, loc, x.value, c)};
  case 7:
    return {arith::MinUIOp::create(b, loc, x.value, c)};
  case 8:
    return {arith::ShRSIOp::create(b, loc, x.value, scalar(type, 1))};
  default:
    return {arith::SelectOp::create(b, loc, compare(x.value, c), c, x.value)};
  }
}

Bounded ProgramGenerator::unary(Bounded x) {
  return isa<FloatType>(x.value.getType()) ? floatUnary(x) : intUnary(x);
}

Bounded ProgramGenerator::binary(Bounded x, Bounded y) {
  Type type = x.value.getType();
  auto pair = [&](auto tag, double bound) -> Bounded {
    return {decltype(tag)::create(b, loc, x.value, y.value), bound};
  };
  double larger = std::fmax(x.bound, y.bound), limit = exactLimit(type);
  if (isa<FloatType>(type)) {
    unsigned draw = random.below(7);
    if (draw == 0 && x.bound * y.bound <= limit)
      return pair(arith::MulFOp(), x.bound * y.bound);
    if (draw <= 2 && x.bound + y.bound <= limit)
      return pair(arith::AddFOp(), x.bound + y.bound);
    if (draw == 3 && x.bound + y.bound <= limit)
      return pair(arith::SubFOp(), x.bound + y.bound);
    if (draw == 4)
      return pair(arith::MaxNumFOp(), larger);
    if (draw == 5 && !options.floats)
      return {arith::SelectOp::create(b, loc, compare(x.value, y.value),
                                      x.value, y.value),
              larger};
    return pair(arith::MinimumFOp(), larger);
  }
  switch (random.below(9)) {
  case 0:
    return pair(arith::AndIOp(), 0);
  case 1:
    return pair(arith::OrIOp(), 0);
  case 2:
    return pair(arith::XOrIOp(), 0);
  case 3:
    return pair(arith::SubIOp(), 0);
  case 4:
    return pair(arith::MulIOp(), 0);
  case 5:
    return pair(arith::MaxUIOp(), 0);
  case 6:
    return pair(arith::MinSIOp(), 0);
  case 7:
    return {arith::SelectOp::create(b, loc, compare(x.value, y.value), x.value,
                                    y.value)};
  default:
    return pair(arith::AddIOp(), 0);
  }
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

/// Assigns each dim of the value a loop of its size, no loop twice.
bool ProgramGenerator::matchDims(const Bounded &value,
                                 llvm::ArrayRef<int64_t> ranges, Loops &loops) {
  loops.clear();
  for (int64_t size : value.shape()) {
    llvm::SmallVector<int64_t> candidates;
    for (auto [loop, range] : llvm::enumerate(ranges))
      if (range == size && !llvm::is_contained(loops, loop))
        candidates.push_back(loop);
    if (candidates.empty())
      return false;
    // In order most of the time: transposed accesses are the exception.
    loops.push_back(random.chance(70) ? candidates.front()
                                      : random.pick(candidates));
  }
  return true;
}

Bounded ProgramGenerator::operandFor(llvm::ArrayRef<int64_t> ranges,
                                     Type element, AffineMap &map) {
  Loops loops;
  int64_t n = ranges.size();
  Bounded *found = pickValue([&](const Bounded &value) {
    return value.element() == element && matchDims(value, ranges, loops);
  });
  if (found && random.chance(75)) {
    matchDims(*found, ranges, loops);
    if (static_cast<int64_t>(loops.size()) == found->rank()) {
      map = mapOf(n, loops);
      return *found;
    }
  }
  loops.clear();
  Shape shape;
  for (int64_t loop = 0; loop < n; ++loop)
    if (random.chance(75))
      loops.push_back(loop);
  if (random.chance(30))
    shuffle(loops);
  if (loops.size() > 4)
    loops.resize(4);
  for (int64_t loop : loops)
    shape.push_back(ranges[loop]);
  map = mapOf(n, loops);
  return fresh(shape, element);
}

/// Where a reduction starts: mostly its neutral element, else data, which must
/// count once however many ranks take part.
Bounded ProgramGenerator::initFor(llvm::ArrayRef<int64_t> shape, Type element,
                                  double neutral) {
  if (random.chance(75))
    return filled(shape, element, neutral);
  Bounded *found = pickValue([&](const Bounded &v) {
    return v.element() == element && v.shape() == shape && v.bound <= 16;
  });
  return found && random.chance(60) ? *found : fresh(shape, element);
}

//===----------------------------------------------------------------------===//
// Element by element
//===----------------------------------------------------------------------===//

bool ProgramGenerator::addElementwise() {
  Bounded *base = pickValue([](const Bounded &) { return true; });
  Bounded x = *base;
  Shape ranges(x.shape());
  int64_t n = ranges.size();
  Loops outLoops;
  for (int64_t i = 0; i < n; ++i)
    outLoops.push_back(i);
  if (random.chance(20))
    shuffle(outLoops);
  Shape outShape;
  for (int64_t loop : outLoops)
    outShape.push_back(ranges[loop]);
  llvm::SmallVector<Value> ins{x.value};
  llvm::SmallVector<AffineMap> maps{b.getMultiDimIdentityMap(n)};
  llvm::SmallVector<double> bounds{x.bound};
  int64_t more = random.below(3);
  for (int64_t i = 0; i < more; ++i) {
    AffineMap map;
    Bounded y = operandFor(ranges, x.element(), map);
    ins.push_back(y.value);
    maps.push_back(map);
    bounds.push_back(y.bound);
  }
  // A scalar from around the body.
  Value outside = random.chance(15) ? scalar(x.element(), 2) : Value();
  int numOuts = random.chance(12) ? 2 : 1;
  llvm::SmallVector<Value> outs;
  for (int i = 0; i < numOuts; ++i) {
    outs.push_back(empty(i == 0 ? outShape : ranges, x.element()));
    maps.push_back(i == 0 ? mapOf(n, outLoops) : b.getMultiDimIdentityMap(n));
  }
  Bounded results[2];
  auto op = generic(
      ins, outs, maps, llvm::SmallVector<bool>(n, false), [&](ValueRange args) {
        Bounded value{args[0], bounds[0]};
        for (size_t i = 1; i < bounds.size(); ++i)
          value = binary(value, {args[i], bounds[i]});
        if (outside)
          value = binary(value, {outside, 2});
        Values yields;
        for (int i = 0; i < numOuts; ++i) {
          results[i] =
              bounds.size() == 1 || random.chance(50) ? unary(value) : value;
          yields.push_back(results[i].value);
        }
        return yields;
      });
  for (int i = 0; i < numOuts; ++i)
    add(op.getResult(i), results[i].bound);
  return true;
}

bool ProgramGenerator::addNamedElementwise() {
  Bounded *found =
      pickValue([](const Bounded &v) { return !v.element().isInteger(1); });
  if (!found)
    return false;
  Bounded x = *found;
  Bounded *other =
      pickValue([&](const Bounded &v) { return v.type() == x.type(); });
  Bounded y = random.chance(60) ? *other : fresh(x.shape(), x.element());
  bool isFloat = isa<FloatType>(x.element());
  double limit = exactLimit(x.element());
  Value out = empty(x.shape(), x.element());
  auto two = [&](auto tag, double bound) {
    auto op =
        decltype(tag)::create(b, loc, TypeRange{x.type()},
                              ValueRange{x.value, y.value}, ValueRange{out});
    add(op->getResult(0), bound);
    return true;
  };
  auto one = [&](auto tag, double bound) {
    auto op = decltype(tag)::create(b, loc, TypeRange{x.type()},
                                    ValueRange{x.value}, ValueRange{out});
    add(op->getResult(0), bound);
    return true;
  };
  double larger = std::fmax(x.bound, y.bound);
  switch (random.below(isFloat ? 9 : 6)) {
  case 0:
  case 1:
    return x.bound + y.bound <= limit &&
           two(linalg::AddOp(), x.bound + y.bound);
  case 2:
    return x.bound + y.bound <= limit &&
           two(linalg::SubOp(), x.bound + y.bound);
  case 3:
    return x.bound * y.bound <= limit &&
           two(linalg::MulOp(), x.bound * y.bound);
  case 4:
    return two(linalg::MaxOp(), larger);
  case 5:
    return two(linalg::MinOp(), larger);
  case 6:
    return one(linalg::AbsOp(), x.bound);
  case 7:
    return one(linalg::NegFOp(), x.bound);
  default:
    return options.floats && one(linalg::TanhOp(), 1);
  }
}

/// To another type, by way of the ops that keep whole numbers as they are.
bool ProgramGenerator::addCast() {
  Bounded *found = pickValue([](const Bounded &) { return true; });
  Bounded x = *found;
  Type to = randomElement();
  if (to == x.element())
    return false;
  bool fromFloat = isa<FloatType>(x.element()), toFloat = isa<FloatType>(to);
  auto width = [](Type type) { return type.getIntOrFloatBitWidth(); };
  if (toFloat && fromFloat && x.bound > exactLimit(to))
    x = tame(x, exactLimit(to));
  if (fromFloat && !toFloat)
    x = tame(x, std::ldexp(1.0, std::min<int>(width(to) - 1, 20)) - 1);
  if (!x.value || (fromFloat && toFloat && width(x.element()) == width(to)))
    return false;
  double bound = x.bound;
  auto map = b.getMultiDimIdentityMap(x.rank());
  auto op = generic(
      {x.value}, {empty(x.shape(), to)}, {map, map},
      llvm::SmallVector<bool>(x.rank(), false), [&](ValueRange args) -> Values {
        Value v = args[0];
        Type from = v.getType();
        if (fromFloat && toFloat)
          return {width(to) > width(from)
                      ? Value(arith::ExtFOp::create(b, loc, to, v))
                      : Value(arith::TruncFOp::create(b, loc, to, v))};
        if (fromFloat)
          return {arith::FPToSIOp::create(b, loc, to, v)};
        if (!toFloat && width(to) > width(from))
          return {random.chance(50)
                      ? Value(arith::ExtSIOp::create(b, loc, to, v))
                      : Value(arith::ExtUIOp::create(b, loc, to, v))};
        if (!toFloat)
          return {arith::TruncIOp::create(b, loc, to, v)};
        if (width(from) == 1) {
          bound = 1;
          return {arith::UIToFPOp::create(b, loc, to, v)};
        }
        Value small = arith::RemSIOp::create(b, loc, v, scalar(from, 7));
        bound = 6;
        return {arith::SIToFPOp::create(b, loc, to, small)};
      });
  add(op.getResult(0), bound);
  return true;
}

/// A tensor of i1, sometimes returned or reduced as such, and a select on it.
bool ProgramGenerator::addCompareSelect() {
  Bounded *found =
      pickValue([](const Bounded &v) { return !v.element().isInteger(1); });
  if (!found)
    return false;
  Bounded x = *found;
  int64_t n = x.rank();
  AffineMap map, identity = b.getMultiDimIdentityMap(n);
  Bounded y = operandFor(x.shape(), x.element(), map);
  llvm::SmallVector<bool> parallel(n, false);
  auto mask = generic(
      {x.value, y.value}, {empty(x.shape(), b.getI1Type())},
      {identity, map, identity}, parallel,
      [&](ValueRange args) -> Values { return {compare(args[0], args[1])}; });
  add(mask.getResult(0), 1);
  if (random.chance(30))
    return true;
  auto chosen = generic(
      {mask.getResult(0), x.value, y.value}, {empty(x.shape(), x.element())},
      {identity, identity, map, identity}, parallel,
      [&](ValueRange args) -> Values {
        return {arith::SelectOp::create(b, loc, args[0], args[1], args[2])};
      });
  add(chosen.getResult(0), std::fmax(x.bound, y.bound));
  return true;
}

/// Keeps what lies on one side of a line through the index space: causal masks.
bool ProgramGenerator::addMask() {
  Bounded *found = pickValue([](const Bounded &v) { return v.rank() > 0; });
  if (!found)
    return false;
  Bounded x = *found;
  int64_t n = x.rank(), first = random.below(n), second = random.below(n);
  double other = random.between(-3, 3);
  auto map = b.getMultiDimIdentityMap(n);
  auto op = generic(
      {x.value}, {empty(x.shape(), x.element())}, {map, map},
      llvm::SmallVector<bool>(n, false), [&](ValueRange args) -> Values {
        Value i = linalg::IndexOp::create(b, loc, first);
        Value j =
            first != second
                ? Value(linalg::IndexOp::create(b, loc, second))
                : scalar(b.getIndexType(), random.between(0, x.shape()[first]));
        Value keep =
            arith::CmpIOp::create(b, loc,
                                  random.chance(50) ? arith::CmpIPredicate::sge
                                                    : arith::CmpIPredicate::ult,
                                  i, j);
        Value c = scalar(x.element(), other);
        return {arith::SelectOp::create(b, loc, keep, args[0], c)};
      });
  add(op.getResult(0), std::fmax(x.bound, 3));
  return true;
}

/// Integers over divisors that are never 0 where there is data: a compiler that
/// divides padding traps.
bool ProgramGenerator::addDivision() {
  Bounded *found = pickValue([](const Bounded &v) {
    return v.element().isInteger(32) || v.element().isInteger(64);
  });
  if (!found)
    return false;
  Bounded x = *found;
  int64_t n = x.rank();
  auto identity = b.getMultiDimIdentityMap(n);
  llvm::SmallVector<bool> parallel(n, false);
  Bounded y = fresh(x.shape(), x.element());
  auto divisor =
      generic({y.value}, {empty(x.shape(), x.element())}, {identity, identity},
              parallel, [&](ValueRange args) -> Values {
                Value one = scalar(x.element(), 1);
                return {arith::OrIOp::create(b, loc, args[0], one)};
              });
  bool remainder = random.chance(50);
  auto op = generic(
      {x.value, divisor.getResult(0)}, {empty(x.shape(), x.element())},
      {identity, identity, identity}, parallel, [&](ValueRange args) -> Values {
        if (remainder)
          return {arith::RemUIOp::create(b, loc, args[0], args[1])};
        return {arith::DivUIOp::create(b, loc, args[0], args[1])};
      });
  add(op.getResult(0), 0);
  return true;
}

//===----------------------------------------------------------------------===//
// Contractions
//===----------------------------------------------------------------------===//

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
      randomSize(), std::max<int64_t>(1, options.maxElements * contracted /
                                             numElements(x.shape())));
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
    points *= range;
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

} // namespace cleave::oracle

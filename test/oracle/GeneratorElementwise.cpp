//===- GeneratorElementwise.cpp - Random ops element by element ----------===//
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

/// arith and math on whole tensors, and a select on what they compare.
bool ProgramGenerator::addTensorArith() {
  Bounded *found =
      pickValue([](const Bounded &v) { return !v.element().isInteger(1); });
  if (!found)
    return false;
  Bounded x = *found;
  Bounded *other =
      pickValue([&](const Bounded &v) { return v.type() == x.type(); });
  Bounded y = random.chance(60) ? *other : fresh(x.shape(), x.element());
  auto two = [&](auto tag, double bound) {
    add(decltype(tag)::create(b, loc, x.value, y.value), bound);
    return true;
  };
  double larger = std::fmax(x.bound, y.bound), limit = exactLimit(x.element());
  bool isFloat = isa<FloatType>(x.element());
  if (!options.floats && random.chance(20)) {
    Value isLarger =
        isFloat ? Value(arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT,
                                              x.value, y.value))
                : arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                        x.value, y.value);
    add(isLarger, 1);
    add(arith::SelectOp::create(b, loc, isLarger, y.value, x.value), larger);
    return true;
  }
  if (!isFloat)
    switch (random.below(4)) {
    case 0:
      return two(arith::AddIOp(), 0);
    case 1:
      return two(arith::MulIOp(), 0);
    case 2:
      return two(arith::XOrIOp(), 0);
    default:
      return two(arith::MinSIOp(), 0);
    }
  switch (random.below(5)) {
  case 0:
    return x.bound + y.bound <= limit &&
           two(arith::AddFOp(), x.bound + y.bound);
  case 1:
    return x.bound * y.bound <= limit &&
           two(arith::MulFOp(), x.bound * y.bound);
  case 2:
    return two(arith::MaximumFOp(), larger);
  case 3:
    add(arith::NegFOp::create(b, loc, x.value), x.bound);
    return true;
  default:
    add(math::AbsFOp::create(b, loc, x.value), x.bound);
    return true;
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

} // namespace cleave::oracle

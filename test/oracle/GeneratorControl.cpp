//===- GeneratorControl.cpp - Calls and loops of random programs ----------===//
#include "test/oracle/GeneratorImpl.h"
#include <cmath>

using namespace mlir;

namespace cleave::oracle {

/// An element of a tensor as a scalar; null if there is none.
Value ProgramGenerator::elementOf(const Bounded &x) {
  llvm::SmallVector<Value> at;
  for (int64_t size : x.shape()) {
    if (size == 0)
      return {};
    at.push_back(scalar(b.getIndexType(), random.below(size)));
  }
  return tensor::ExtractOp::create(b, loc, x.value, at);
}

/// Combines each element of `x` with a scalar of its type.
Bounded ProgramGenerator::withScalar(Bounded x, Bounded number) {
  auto map = b.getMultiDimIdentityMap(x.rank());
  double bound = 0;
  auto op = generic({x.value}, {empty(x.shape(), x.element())}, {map, map},
                    llvm::SmallVector<bool>(x.rank(), false),
                    [&](ValueRange args) -> llvm::SmallVector<Value> {
                      Bounded result = binary({args[0], x.bound}, number);
                      bound = result.bound;
                      return {result.value};
                    });
  return {op.getResult(0), bound};
}

/// A private function of a few ops, called with values of the pool and, most
/// of the time, again with its own result or a fresh value. Some take or return
/// scalars.
bool ProgramGenerator::addCall() {
  if (nesting > 1 || numCallees >= 3)
    return false;
  Bounded *argument = pickValue([](const Bounded &v) { return v.rank() > 0; });
  if (!argument)
    return false;
  llvm::SmallVector<Bounded> inputs{tame(*argument, 4)};
  if (random.chance(40))
    inputs.push_back(tame(*pickValue([](const Bounded &) { return true; }), 4));
  Value number = random.chance(25) ? elementOf(inputs.front()) : Value();
  llvm::SmallVector<Type> types;
  for (const Bounded &input : inputs)
    types.push_back(input.type());
  if (number)
    types.push_back(number.getType());

  OpBuilder::InsertPoint here = b.saveInsertionPoint();
  std::vector<Bounded> outer = std::move(pool);
  bool outerInCallee = inCallee;
  b.setInsertionPointToEnd(module.getBody());
  std::string name = "f" + std::to_string(numCallees++);
  auto callee =
      func::FuncOp::create(b, loc, name, b.getFunctionType(types, {}));
  callee.setPrivate();
  Block *block = callee.addEntryBlock();
  b.setInsertionPointToEnd(block);
  pool.clear();
  for (size_t i = 0; i < inputs.size(); ++i)
    pool.push_back({block->getArgument(i), 4});
  if (number)
    pool.push_back(withScalar(pool.front(), {block->getArguments().back(), 4}));
  inCallee = true;
  ++nesting;
  addOps(random.between(1, 4));
  --nesting;
  inCallee = outerInCallee;
  llvm::SmallVector<Bounded> results{pool.back()};
  if (random.chance(30))
    results.push_back(random.pick(pool));
  if (random.chance(25))
    if (Value element = elementOf(pool.back()))
      results.push_back({element, pool.back().bound});
  llvm::SmallVector<Value> returned;
  for (const Bounded &result : results)
    returned.push_back(result.value);
  func::ReturnOp::create(b, loc, returned);
  callee.setType(b.getFunctionType(types, ValueRange(returned).getTypes()));
  pool = std::move(outer);
  b.restoreInsertionPoint(here);

  auto call = [&](llvm::ArrayRef<Bounded> with) {
    llvm::SmallVector<Value> operands;
    for (const Bounded &input : with)
      operands.push_back(input.value);
    if (number)
      operands.push_back(number);
    auto made = func::CallOp::create(b, loc, callee, operands);
    for (auto [value, result] : llvm::zip(made.getResults(), results)) {
      if (isa<RankedTensorType>(value.getType())) {
        add(value, result.bound);
        continue;
      }
      Bounded *x = pickValue([&, type = value.getType()](const Bounded &v) {
        return v.element() == type;
      });
      Bounded combined = x ? withScalar(*x, {value, result.bound}) : Bounded{};
      if (combined.value)
        add(combined.value, combined.bound);
    }
    return Bounded{made.getResult(0), results.front().bound};
  };
  Bounded first = call(inputs);
  if (random.chance(70)) {
    inputs.front() =
        first.type() == inputs.front().type()
            ? first
            : fresh(inputs.front().shape(), inputs.front().element());
    inputs.front() = tame(inputs.front(), 4);
    call(inputs);
  }
  return true;
}

/// A loop that keeps the types of its carried tensors; what it yields is
/// clamped, so that magnitudes do not grow with the trips. Some loops read or
/// write a slice at the induction variable.
bool ProgramGenerator::addLoop() {
  if (nesting > 1)
    return false;
  Bounded *first = pickValue([](const Bounded &v) { return v.rank() > 0; });
  if (!first)
    return false;
  Bounded init = tame(*first, 4);
  int64_t trips = random.between(1, 4);
  int64_t dim = random.below(init.rank());
  bool slices = random.chance(60) && trips <= init.shape()[dim] &&
                numElements(init.shape()) > 0;
  Value low = scalar(b.getIndexType(), 0), step = scalar(b.getIndexType(), 1);
  Value high = scalar(b.getIndexType(), trips);
  Bounded rows = slices && random.chance(50)
                     ? fresh(init.shape(), init.element())
                     : Bounded{};
  auto loop =
      scf::ForOp::create(b, loc, low, high, step, ValueRange{init.value});
  b.setInsertionPointToStart(loop.getBody());
  std::vector<Bounded> outer = pool;
  Bounded carried{loop.getRegionIterArg(0), 4};
  pool.push_back(carried);
  ++nesting;
  Bounded next = carried;
  if (slices) {
    auto type = init.type();
    llvm::SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0));
    llvm::SmallVector<OpFoldResult> extents,
        strides(type.getRank(), b.getIndexAttr(1));
    for (int64_t size : type.getShape())
      extents.push_back(b.getIndexAttr(size));
    offsets[dim] = loop.getInductionVar();
    extents[dim] = b.getIndexAttr(1);
    Value source = rows.value ? rows.value : carried.value;
    Bounded row{tensor::ExtractSliceOp::create(b, loc, source, offsets, extents,
                                               strides),
                4};
    pool.push_back(row);
    auto map = b.getMultiDimIdentityMap(type.getRank());
    double bound = 0;
    auto op = generic(
        {row.value}, {empty(row.shape(), row.element())}, {map, map},
        llvm::SmallVector<bool>(type.getRank(), false), [&](ValueRange args) {
          Bounded out = unary({args[0], 4});
          bound = out.bound;
          return llvm::SmallVector<Value>{out.value};
        });
    Bounded part = tame({op.getResult(0), bound}, 4);
    next = {tensor::InsertSliceOp::create(b, loc, part.value, carried.value,
                                          offsets, extents, strides),
            4};
    pool.push_back(next);
  }
  addOps(random.between(0, 3));
  Bounded *last =
      pickValue([&](const Bounded &v) { return v.type() == carried.type(); });
  if (random.chance(60) || !slices)
    next = *last;
  next = tame(next, 4);
  --nesting;
  scf::YieldOp::create(b, loc, next.value);
  pool = std::move(outer);
  b.setInsertionPointAfter(loop);
  add(loop.getResult(0), 4);
  return true;
}

/// One more product, in one of the ways that leave a sum a sum.
Value ProgramGenerator::accumulate(Value sum, Value left, Value right) {
  auto type = cast<RankedTensorType>(sum.getType());
  auto product = [&](Value init) {
    auto op = linalg::MatmulOp::create(
        b, loc, TypeRange{type}, ValueRange{left, right}, ValueRange{init});
    accumulated.push_back(op);
    return op.getResult(0);
  };
  if (random.chance(40))
    return product(sum);
  Value next = product(filled(type.getShape(), type.getElementType(), 0).value);
  Value to = empty(type.getShape(), type.getElementType());
  llvm::SmallVector<Value> both{sum, next};
  if (random.chance(60))
    return linalg::AddOp::create(b, loc, TypeRange{type}, both, ValueRange{to})
        .getResult(0);
  return linalg::SubOp::create(b, loc, TypeRange{type}, both, ValueRange{to})
      .getResult(0);
}

/// The trip's part of a stack of factors.
static Value partOf(OpBuilder &b, Location loc, Value stack, Value trip) {
  auto type = cast<RankedTensorType>(stack.getType());
  llvm::SmallVector<OpFoldResult> offsets(3, b.getIndexAttr(0)), extents,
      strides(3, b.getIndexAttr(1));
  for (int64_t size : type.getShape())
    extents.push_back(b.getIndexAttr(size));
  offsets[0] = trip;
  extents[0] = b.getIndexAttr(1);
  auto part = RankedTensorType::get(type.getShape().drop_front(),
                                    type.getElementType());
  return tensor::ExtractSliceOp::create(b, loc, part, stack, offsets, extents,
                                        strides);
}

/// A loop that carries `init`; `body` gives what is yielded.
Value ProgramGenerator::loopOver(
    int64_t trips, Value init,
    llvm::function_ref<Value(Value trip, Value carried)> body) {
  auto number = [&](int64_t n) { return scalar(b.getIndexType(), n); };
  auto loop = scf::ForOp::create(b, loc, number(0), number(trips), number(1),
                                 ValueRange{init});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value next = body(loop.getInductionVar(), loop.getRegionIterArg(0));
  scf::YieldOp::create(b, loc, next);
  return loop.getResult(0);
}

/// A loop, or two, one in the other, that add products to what they carry. The
/// second factor is one for all trips, or a part of a stack of them.
bool ProgramGenerator::addAccumulation() {
  Bounded *found = pickValue([](const Bounded &v) {
    return v.rank() == 2 && !v.element().isInteger(1);
  });
  if (!found || nesting > 0)
    return false;
  Type element = found->element();
  int64_t rows = found->shape()[0], terms = found->shape()[1];
  int64_t columns = randomSize();
  int64_t trips = random.chance(10) ? 0 : random.between(1, 3);
  int64_t inner = random.chance(30) ? random.between(1, 2) : 0;
  double bound = std::floor(
      std::sqrt(exactLimit(element) / 16 / std::max<int64_t>(terms, 1)));
  Bounded x = tame(*found, std::fmin(bound, found->bound));
  bool stacked = trips > 1 && terms * columns > 0 && random.chance(40);
  Shape factor{terms, columns};
  if (stacked)
    factor.insert(factor.begin(), trips);
  if (!x.value || !fits({rows, columns}) || !fits(factor))
    return false;
  Bounded y = tame(fresh(factor, element), std::fmin(bound, 4));
  Bounded init = tame(initFor({rows, columns}, element, 0), 16);
  if (!y.value)
    return false;
  Value sum = loopOver(trips, init.value, [&](Value trip, Value carried) {
    Value right = stacked ? partOf(b, loc, y.value, trip) : y.value;
    if (inner > 0)
      carried = loopOver(inner, carried, [&](Value, Value innerCarried) {
        return accumulate(innerCarried, x.value, right);
      });
    return accumulate(carried, x.value, right);
  });
  add(sum, init.bound + trips * (inner + 1) * x.bound * y.bound * terms);
  return true;
}

} // namespace cleave::oracle

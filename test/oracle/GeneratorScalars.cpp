//===- GeneratorScalars.cpp - Random scalar ops of bodies ----------------===//
#include "test/oracle/GeneratorImpl.h"
#include <cmath>

using namespace mlir;

namespace cleave::oracle {

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

} // namespace cleave::oracle

//===- EmitBody.cpp - Scalar bodies ---------------------------------------===//
#include "dsl/Emit.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <cmath>
#include <limits>

using namespace mlir;

namespace cleave::dsl {

Type elementType(Builder &b, Element type) {
  switch (type) {
  case f32:
    return b.getF32Type();
  case bf16:
    return b.getBF16Type();
  case f16:
    return b.getF16Type();
  case f64:
    return b.getF64Type();
  case i32:
    return b.getI32Type();
  case i64:
    return b.getI64Type();
  case i8:
    return b.getI8Type();
  case i1:
    return b.getI1Type();
  }
  llvm_unreachable("all element types are listed");
}

TypedAttr constantOf(Builder &b, Element type, double value) {
  Type scalar = elementType(b, type);
  if (isFloat(type))
    return b.getFloatAttr(scalar, value);
  unsigned bits = scalar.getIntOrFloatBitWidth();
  if (std::isinf(value))
    return b.getIntegerAttr(scalar, value > 0
                                        ? llvm::APInt::getSignedMaxValue(bits)
                                        : llvm::APInt::getSignedMinValue(bits));
  if (type == i1)
    return b.getBoolAttr(value != 0);
  return b.getIntegerAttr(scalar, static_cast<int64_t>(value));
}

double neutralOf(Reduction reduction) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (reduction) {
  case Reduction::Sum:
    return 0;
  case Reduction::Prod:
    return 1;
  case Reduction::Max:
    return -kInfinity;
  case Reduction::Min:
    return kInfinity;
  }
  llvm_unreachable("all reductions are listed");
}

namespace {

/// Two ops that say the same of floats and of integers.
template <typename FloatOp, typename IntegerOp>
Value either(OpBuilder &b, Location loc, Element type, Value x, Value y) {
  if (isFloat(type))
    return FloatOp::create(b, loc, x, y);
  return IntegerOp::create(b, loc, x, y);
}

Value castInteger(OpBuilder &b, Location loc, Element from, Type to, Value x) {
  unsigned width = x.getType().getIntOrFloatBitWidth();
  if (to.getIntOrFloatBitWidth() < width)
    return arith::TruncIOp::create(b, loc, to, x);
  if (from == i1)
    return arith::ExtUIOp::create(b, loc, to, x);
  return arith::ExtSIOp::create(b, loc, to, x);
}

Value castFloat(OpBuilder &b, Location loc, Type to, Value x) {
  unsigned from = x.getType().getIntOrFloatBitWidth();
  unsigned bits = to.getIntOrFloatBitWidth();
  if (from < bits)
    return arith::ExtFOp::create(b, loc, to, x);
  if (from > bits)
    return arith::TruncFOp::create(b, loc, to, x);
  // bf16 and f16 meet in f32.
  Value wide = arith::ExtFOp::create(b, loc, b.getF32Type(), x);
  return arith::TruncFOp::create(b, loc, to, wide);
}

/// Whether a number is not zero.
Value truth(OpBuilder &b, Location loc, Element from, Value x) {
  Value zero = arith::ConstantOp::create(b, loc, constantOf(b, from, 0));
  if (isFloat(from))
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, x, zero);
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, x, zero);
}

Value castTo(OpBuilder &b, Location loc, Element from, Element to, Value x) {
  Type type = elementType(b, to);
  if (from == to)
    return x;
  if (to == i1)
    return truth(b, loc, from, x);
  if (isFloat(from) && isFloat(to))
    return castFloat(b, loc, type, x);
  if (isFloat(from))
    return arith::FPToSIOp::create(b, loc, type, x);
  if (!isFloat(to))
    return castInteger(b, loc, from, type, x);
  if (from == i1)
    return arith::UIToFPOp::create(b, loc, type, x);
  return arith::SIToFPOp::create(b, loc, type, x);
}

/// Walks over the steps of one body.
class BodyEmitter {
public:
  BodyEmitter(OpBuilder &b, Location loc, const Body &body,
              ArrayRef<Value> arguments, ArrayRef<Value> tensors,
              const Shape &loops)
      : b(b), loc(loc), body(body), arguments(arguments), tensors(tensors),
        loops(loops) {}
  Value run() {
    for (const Step &step : body.steps)
      values.push_back(emit(step));
    return at(values.size() - 1);
  }

private:
  Value emit(const Step &step);
  Value arithmetic(const Step &step);
  Value comparison(const Step &step);
  Value function(const Step &step);
  Value index(const Step &step);
  Value load(const Step &step);
  Element typeOf(int step) const { return body.steps[step].type; }
  /// The value of a step. An index becomes an i64 where one is wanted.
  Value at(int step) {
    if (!values[step])
      values[step] =
          arith::IndexCastOp::create(b, loc, b.getI64Type(), indices.at(step));
    return values[step];
  }

  OpBuilder &b;
  Location loc;
  const Body &body;
  ArrayRef<Value> arguments, tensors;
  const Shape &loops;
  SmallVector<Value> values;
  /// Of index steps.
  llvm::DenseMap<int, Value> indices;
};

Value BodyEmitter::emit(const Step &step) {
  switch (step.fn) {
  case Fn::Argument:
    return arguments[step.a];
  case Fn::Index:
    return index(step);
  case Fn::Constant:
    return arith::ConstantOp::create(b, loc,
                                     constantOf(b, step.type, step.number));
  case Fn::Load:
    return load(step);
  case Fn::Cast:
    return castTo(b, loc, typeOf(step.a), step.type, at(step.a));
  case Fn::Select:
    return arith::SelectOp::create(b, loc, at(step.a), at(step.b), at(step.c));
  case Fn::Eq:
  case Fn::Ne:
  case Fn::Lt:
  case Fn::Le:
  case Fn::Gt:
  case Fn::Ge:
    return comparison(step);
  default:
    return step.fn >= Fn::Neg ? function(step) : arithmetic(step);
  }
}

Value BodyEmitter::index(const Step &step) {
  const DimSize *loop = find(loops, step.dim);
  Value index = linalg::IndexOp::create(
      b, loc, static_cast<int64_t>(loop - loops.data()));
  indices[values.size()] = index;
  return Value();
}

Value BodyEmitter::load(const Step &step) {
  SmallVector<Value> place;
  for (int link : step.at) {
    auto known = indices.find(link);
    place.push_back(
        known != indices.end()
            ? known->second
            : arith::IndexCastOp::create(b, loc, b.getIndexType(), at(link))
                  .getResult());
  }
  return tensor::ExtractOp::create(b, loc, tensors[step.a], place);
}

Value BodyEmitter::comparison(const Step &step) {
  using F = arith::CmpFPredicate;
  using I = arith::CmpIPredicate;
  constexpr F kFloat[] = {F::OEQ, F::UNE, F::OLT, F::OLE, F::OGT, F::OGE};
  constexpr I kInteger[] = {I::eq, I::ne, I::slt, I::sle, I::sgt, I::sge};
  int which = static_cast<int>(step.fn) - static_cast<int>(Fn::Eq);
  Value x = at(step.a), y = at(step.b);
  if (isFloat(typeOf(step.a)))
    return arith::CmpFOp::create(b, loc, kFloat[which], x, y);
  return arith::CmpIOp::create(b, loc, kInteger[which], x, y);
}

Value BodyEmitter::arithmetic(const Step &step) {
  Value x = at(step.a), y = at(step.b);
  Element type = step.type;
  switch (step.fn) {
  case Fn::Add:
    return either<arith::AddFOp, arith::AddIOp>(b, loc, type, x, y);
  case Fn::Sub:
    return either<arith::SubFOp, arith::SubIOp>(b, loc, type, x, y);
  case Fn::Mul:
    return either<arith::MulFOp, arith::MulIOp>(b, loc, type, x, y);
  case Fn::Div:
    return either<arith::DivFOp, arith::DivSIOp>(b, loc, type, x, y);
  case Fn::Rem:
    return either<arith::RemFOp, arith::RemSIOp>(b, loc, type, x, y);
  case Fn::Max:
    return either<arith::MaximumFOp, arith::MaxSIOp>(b, loc, type, x, y);
  case Fn::Min:
    return either<arith::MinimumFOp, arith::MinSIOp>(b, loc, type, x, y);
  case Fn::Pow:
    return math::PowFOp::create(b, loc, x, y);
  case Fn::And:
    return arith::AndIOp::create(b, loc, x, y);
  case Fn::Or:
    return arith::OrIOp::create(b, loc, x, y);
  case Fn::Xor:
    return arith::XOrIOp::create(b, loc, x, y);
  default:
    llvm_unreachable("no arithmetic step");
  }
}

Value BodyEmitter::function(const Step &step) {
  Value x = at(step.a);
  switch (step.fn) {
  case Fn::Neg:
    return arith::NegFOp::create(b, loc, x);
  case Fn::Exp:
    return math::ExpOp::create(b, loc, x);
  case Fn::Log:
    return math::LogOp::create(b, loc, x);
  case Fn::Sqrt:
    return math::SqrtOp::create(b, loc, x);
  case Fn::Rsqrt:
    return math::RsqrtOp::create(b, loc, x);
  case Fn::Tanh:
    return math::TanhOp::create(b, loc, x);
  case Fn::Erf:
    return math::ErfOp::create(b, loc, x);
  case Fn::Sin:
    return math::SinOp::create(b, loc, x);
  case Fn::Cos:
    return math::CosOp::create(b, loc, x);
  case Fn::Abs:
    if (isFloat(step.type))
      return math::AbsFOp::create(b, loc, x);
    return math::AbsIOp::create(b, loc, x);
  default:
    llvm_unreachable("no function step");
  }
}

} // namespace

Value emitBody(OpBuilder &b, Location loc, const Body &body,
               ArrayRef<Value> arguments, ArrayRef<Value> tensors,
               const Shape &loops) {
  return BodyEmitter(b, loc, body, arguments, tensors, loops).run();
}

Value emitCombiner(OpBuilder &b, Location loc, Reduction reduction,
                   Element type, Value value, Value current) {
  switch (reduction) {
  case Reduction::Sum:
    return either<arith::AddFOp, arith::AddIOp>(b, loc, type, value, current);
  case Reduction::Prod:
    return either<arith::MulFOp, arith::MulIOp>(b, loc, type, value, current);
  case Reduction::Max:
    return either<arith::MaximumFOp, arith::MaxSIOp>(b, loc, type, value,
                                                     current);
  case Reduction::Min:
    return either<arith::MinimumFOp, arith::MinSIOp>(b, loc, type, value,
                                                     current);
  }
  llvm_unreachable("all reductions are listed");
}

} // namespace cleave::dsl

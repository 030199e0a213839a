//===- ScalarOps.cpp - What arith and math ops compute --------------------===//
// One table: the name of an op and a function of its operands. What the op's
// definition leaves open (a shift by too much, a float that does not fit an
// integer) gives kOpen, a value nobody expects; what stops a CPU is an error.
//===----------------------------------------------------------------------===//
#include "test/oracle/ScalarOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/StringMap.h"
#include <bit>
#include <cmath>
#include <limits>

using namespace mlir;

namespace cleave::oracle {

static constexpr int64_t kOpen = 0x6b5d3a1f2e4c7789;

static Scalar ofInt(int64_t value) { return Scalar::ofInt(value); }
static Scalar ofFloat(double value) { return Scalar::ofFloat(value); }

//===----------------------------------------------------------------------===//
// Integers
//===----------------------------------------------------------------------===//

/// Checks what makes x86 raise SIGFPE.
static bool canDivide(const ScalarOp &op, const Scalar *a, bool isSigned,
                      std::string &error) {
  if (a[1].i == 0) {
    error = "division of an integer by zero";
    return false;
  }
  if (isSigned && a[1].i == -1 && op.in.bits > 1 &&
      a[0].i == wrap(1ll << (op.in.bits - 1), op.in.bits)) {
    error = "overflow in the division of the least integer by -1";
    return false;
  }
  return true;
}

static Scalar divideSigned(const ScalarOp &op, const Scalar *a,
                           std::string &error) {
  if (!canDivide(op, a, true, error))
    return ofInt(kOpen);
  return ofInt(a[1].i == -1 ? -a[0].i : a[0].i / a[1].i);
}

static Scalar remainderSigned(const ScalarOp &op, const Scalar *a,
                              std::string &error) {
  if (!canDivide(op, a, true, error))
    return ofInt(kOpen);
  return ofInt(a[1].i == -1 ? 0 : a[0].i % a[1].i);
}

static uint64_t zext(const ScalarOp &op, Scalar value) {
  return zeroExtend(value.i, op.in.bits);
}

static Scalar divideUnsigned(const ScalarOp &op, const Scalar *a,
                             std::string &error) {
  if (!canDivide(op, a, false, error))
    return ofInt(kOpen);
  return ofInt(zext(op, a[0]) / zext(op, a[1]));
}

static Scalar divideRounded(const ScalarOp &op, const Scalar *a, bool up,
                            std::string &error) {
  if (!canDivide(op, a, true, error))
    return ofInt(kOpen);
  __int128 x = a[0].i, y = a[1].i, q = x / y, r = x % y;
  if (r != 0 && ((r < 0) == (y < 0)) == up)
    q += up ? 1 : -1;
  return ofInt(static_cast<int64_t>(q));
}

static Scalar shift(const ScalarOp &op, const Scalar *a, char direction) {
  uint64_t by = zext(op, a[1]);
  if (by >= op.in.bits)
    return ofInt(kOpen);
  if (direction == 'l')
    return ofInt(static_cast<uint64_t>(a[0].i) << by);
  return direction == 's' ? ofInt(a[0].i >> by) : ofInt(zext(op, a[0]) >> by);
}

static bool compareInts(const ScalarOp &op, const Scalar *a) {
  int64_t x = a[0].i, y = a[1].i;
  uint64_t ux = zext(op, a[0]), uy = zext(op, a[1]);
  switch (static_cast<arith::CmpIPredicate>(op.predicate)) {
  case arith::CmpIPredicate::eq:
    return x == y;
  case arith::CmpIPredicate::ne:
    return x != y;
  case arith::CmpIPredicate::slt:
    return x < y;
  case arith::CmpIPredicate::sle:
    return x <= y;
  case arith::CmpIPredicate::sgt:
    return x > y;
  case arith::CmpIPredicate::sge:
    return x >= y;
  case arith::CmpIPredicate::ult:
    return ux < uy;
  case arith::CmpIPredicate::ule:
    return ux <= uy;
  case arith::CmpIPredicate::ugt:
    return ux > uy;
  case arith::CmpIPredicate::uge:
    return ux >= uy;
  }
  return false;
}

static Scalar power(const Scalar *a) {
  if (a[1].i < 0)
    return ofInt(a[0].i == 1 ? 1 : a[0].i == -1 ? (a[1].i & 1 ? -1 : 1) : 0);
  uint64_t result = 1, base = a[0].i;
  for (uint64_t e = a[1].i; e != 0; e >>= 1, base *= base)
    if (e & 1)
      result *= base;
  return ofInt(result);
}

//===----------------------------------------------------------------------===//
// Floats
//===----------------------------------------------------------------------===//

static double maximum(double x, double y) {
  if (std::isnan(x) || std::isnan(y))
    return std::numeric_limits<double>::quiet_NaN();
  return x == y ? (std::signbit(x) ? y : x) : std::fmax(x, y);
}
static double minimum(double x, double y) { return -maximum(-x, -y); }
static double maxNum(double x, double y) {
  return std::isnan(x) ? y : std::isnan(y) ? x : maximum(x, y);
}

static bool compareFloats(const ScalarOp &op, const Scalar *a) {
  double x = a[0].f, y = a[1].f;
  bool unordered = std::isnan(x) || std::isnan(y);
  using P = arith::CmpFPredicate;
  switch (static_cast<P>(op.predicate)) {
  case P::AlwaysFalse:
    return false;
  case P::AlwaysTrue:
    return true;
  case P::ORD:
    return !unordered;
  case P::UNO:
    return unordered;
  case P::OEQ:
    return !unordered && x == y;
  case P::OGT:
    return !unordered && x > y;
  case P::OGE:
    return !unordered && x >= y;
  case P::OLT:
    return !unordered && x < y;
  case P::OLE:
    return !unordered && x <= y;
  case P::ONE:
    return !unordered && x != y;
  case P::UEQ:
    return unordered || x == y;
  case P::UGT:
    return unordered || x > y;
  case P::UGE:
    return unordered || x >= y;
  case P::ULT:
    return unordered || x < y;
  case P::ULE:
    return unordered || x <= y;
  case P::UNE:
    return unordered || x != y;
  }
  return false;
}

static Scalar toInt(double value, double low, double high) {
  double whole = std::trunc(value);
  if (!(whole >= low && whole < high))
    return ofInt(kOpen);
  return ofInt(whole < 0x1p63
                   ? static_cast<int64_t>(whole)
                   : static_cast<int64_t>(static_cast<uint64_t>(whole)));
}

/// Straight to the narrow type, for an integer may have more than 53 bits.
template <typename Integer> static Scalar toFloat(Kind out, Integer value) {
  return ofFloat(out.cls == Kind::F32 ? static_cast<float>(value)
                                      : static_cast<double>(value));
}

static uint64_t floatBits(Kind kind, double value) {
  if (kind.cls == Kind::F64)
    return std::bit_cast<uint64_t>(value);
  uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  if (kind.cls == Kind::F32)
    return bits;
  if (kind.cls == Kind::BF16)
    return bits >> 16;
  return std::bit_cast<uint16_t>(static_cast<_Float16>(value));
}

static double floatOfBits(Kind kind, uint64_t bits) {
  if (kind.cls == Kind::F64)
    return std::bit_cast<double>(bits);
  if (kind.cls == Kind::F32)
    return std::bit_cast<float>(static_cast<uint32_t>(bits));
  if (kind.cls == Kind::BF16)
    return std::bit_cast<float>(static_cast<uint32_t>(bits << 16));
  return std::bit_cast<_Float16>(static_cast<uint16_t>(bits));
}

static Scalar bitcast(const ScalarOp &op, Scalar value) {
  uint64_t bits = op.in.isFloat() ? floatBits(op.in, value.f) : zext(op, value);
  if (op.out.isFloat())
    return ofFloat(floatOfBits(op.out, bits));
  return ofInt(static_cast<int64_t>(bits));
}

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

#define OP(expression)                                                         \
  [](const ScalarOp &op, const Scalar *a, std::string &error) -> Scalar {      \
    (void)op, (void)error;                                                     \
    return expression;                                                         \
  }
#define UNARY(function) OP(ofFloat(std::function(a[0].f)))

using Table = llvm::StringMap<ScalarFunction>;

static void addInteger(Table &table) {
  table["arith.addi"] = OP(ofInt(uint64_t(a[0].i) + uint64_t(a[1].i)));
  table["arith.subi"] = OP(ofInt(uint64_t(a[0].i) - uint64_t(a[1].i)));
  table["arith.muli"] = OP(ofInt(uint64_t(a[0].i) * uint64_t(a[1].i)));
  table["arith.divsi"] = divideSigned;
  table["arith.remsi"] = remainderSigned;
  table["arith.divui"] = divideUnsigned;
  table["arith.remui"] =
      OP(canDivide(op, a, false, error) ? ofInt(zext(op, a[0]) % zext(op, a[1]))
                                        : ofInt(kOpen));
  table["arith.ceildivsi"] = OP(divideRounded(op, a, true, error));
  table["arith.floordivsi"] = OP(divideRounded(op, a, false, error));
  table["arith.ceildivui"] = OP(
      !canDivide(op, a, false, error) ? ofInt(kOpen)
      : zext(op, a[0]) == 0 ? ofInt(0)
                            : ofInt((zext(op, a[0]) - 1) / zext(op, a[1]) + 1));
  table["arith.andi"] = OP(ofInt(a[0].i & a[1].i));
  table["arith.ori"] = OP(ofInt(a[0].i | a[1].i));
  table["arith.xori"] = OP(ofInt(a[0].i ^ a[1].i));
  table["arith.shli"] = OP(shift(op, a, 'l'));
  table["arith.shrsi"] = OP(shift(op, a, 's'));
  table["arith.shrui"] = OP(shift(op, a, 'u'));
  table["arith.maxsi"] = OP(a[0].i > a[1].i ? a[0] : a[1]);
  table["arith.minsi"] = OP(a[0].i < a[1].i ? a[0] : a[1]);
  table["arith.maxui"] = OP(zext(op, a[0]) > zext(op, a[1]) ? a[0] : a[1]);
  table["arith.minui"] = OP(zext(op, a[0]) < zext(op, a[1]) ? a[0] : a[1]);
  table["arith.cmpi"] = OP(ofInt(compareInts(op, a) ? -1 : 0));
  table["math.absi"] =
      OP(ofInt(a[0].i < 0 ? int64_t(-uint64_t(a[0].i)) : a[0].i));
  table["math.ipowi"] = OP(power(a));
  table["math.ctpop"] = OP(ofInt(std::popcount(zext(op, a[0]))));
  table["math.ctlz"] =
      OP(ofInt(std::countl_zero(zext(op, a[0])) - (64 - int(op.in.bits))));
  table["math.cttz"] =
      OP(ofInt(std::min<int>(std::countr_zero(zext(op, a[0])), op.in.bits)));
}

static void addFloat(Table &table) {
  table["arith.addf"] = OP(ofFloat(a[0].f + a[1].f));
  table["arith.subf"] = OP(ofFloat(a[0].f - a[1].f));
  table["arith.mulf"] = OP(ofFloat(a[0].f * a[1].f));
  table["arith.divf"] = OP(ofFloat(a[0].f / a[1].f));
  table["arith.remf"] = OP(ofFloat(std::fmod(a[0].f, a[1].f)));
  table["arith.negf"] = OP(ofFloat(-a[0].f));
  table["arith.maximumf"] = OP(ofFloat(maximum(a[0].f, a[1].f)));
  table["arith.minimumf"] = OP(ofFloat(minimum(a[0].f, a[1].f)));
  table["arith.maxnumf"] = OP(ofFloat(maxNum(a[0].f, a[1].f)));
  table["arith.minnumf"] = OP(ofFloat(-maxNum(-a[0].f, -a[1].f)));
  table["arith.cmpf"] = OP(ofInt(compareFloats(op, a) ? -1 : 0));
  table["math.fma"] =
      OP(ofFloat(op.out.cls == Kind::F32
                     ? std::fma(float(a[0].f), float(a[1].f), float(a[2].f))
                     : std::fma(a[0].f, a[1].f, a[2].f)));
  table["math.absf"] = UNARY(fabs);
  table["math.ceil"] = UNARY(ceil);
  table["math.floor"] = UNARY(floor);
  table["math.round"] = UNARY(round);
  table["math.roundeven"] = UNARY(nearbyint);
  table["math.trunc"] = UNARY(trunc);
  table["math.sqrt"] = UNARY(sqrt);
  table["math.rsqrt"] = OP(ofFloat(1.0 / std::sqrt(a[0].f)));
  table["math.cbrt"] = UNARY(cbrt);
  table["math.exp"] = UNARY(exp);
  table["math.exp2"] = UNARY(exp2);
  table["math.expm1"] = UNARY(expm1);
  table["math.log"] = UNARY(log);
  table["math.log2"] = UNARY(log2);
  table["math.log10"] = UNARY(log10);
  table["math.log1p"] = UNARY(log1p);
  table["math.sin"] = UNARY(sin);
  table["math.cos"] = UNARY(cos);
  table["math.tan"] = UNARY(tan);
  table["math.asin"] = UNARY(asin);
  table["math.acos"] = UNARY(acos);
  table["math.atan"] = UNARY(atan);
  table["math.sinh"] = UNARY(sinh);
  table["math.cosh"] = UNARY(cosh);
  table["math.tanh"] = UNARY(tanh);
  table["math.asinh"] = UNARY(asinh);
  table["math.acosh"] = UNARY(acosh);
  table["math.atanh"] = UNARY(atanh);
  table["math.erf"] = UNARY(erf);
  table["math.erfc"] = UNARY(erfc);
  table["math.atan2"] = OP(ofFloat(std::atan2(a[0].f, a[1].f)));
  table["math.powf"] = OP(ofFloat(std::pow(a[0].f, a[1].f)));
  table["math.fpowi"] = OP(ofFloat(std::pow(a[0].f, double(a[1].i))));
  table["math.copysign"] = OP(ofFloat(std::copysign(a[0].f, a[1].f)));
  table["math.clampf"] = OP(ofFloat(minimum(maximum(a[0].f, a[1].f), a[2].f)));
  table["math.isnan"] = OP(ofInt(std::isnan(a[0].f) ? -1 : 0));
  table["math.isinf"] = OP(ofInt(std::isinf(a[0].f) ? -1 : 0));
  table["math.isfinite"] = OP(ofInt(std::isfinite(a[0].f) ? -1 : 0));
}

static void addCasts(Table &table) {
  for (const char *same : {"arith.extsi", "arith.trunci", "arith.index_cast"})
    table[same] = OP(a[0]);
  for (const char *same : {"arith.extf", "arith.truncf"})
    table[same] = OP(a[0]);
  table["arith.extui"] = OP(ofInt(zext(op, a[0])));
  table["arith.index_castui"] = OP(ofInt(zext(op, a[0])));
  table["arith.sitofp"] = OP(toFloat(op.out, a[0].i));
  table["arith.uitofp"] = OP(toFloat(op.out, zext(op, a[0])));
  table["arith.fptosi"] = OP(toInt(a[0].f, -std::ldexp(1.0, op.out.bits - 1),
                                   std::ldexp(1.0, op.out.bits - 1)));
  table["arith.fptoui"] = OP(toInt(a[0].f, 0, std::ldexp(1.0, op.out.bits)));
  table["arith.bitcast"] = OP(bitcast(op, a[0]));
  table["arith.select"] = OP(a[0].i != 0 ? a[1] : a[2]);
}

static Table makeTable() {
  Table table;
  addInteger(table);
  addFloat(table);
  addCasts(table);
  return table;
}

std::optional<ScalarOp> scalarOp(Operation *op) {
  static const Table table = makeTable();
  auto found = table.find(op->getName().getStringRef());
  if (found == table.end() || op->getNumResults() != 1)
    return std::nullopt;
  Type first = op->getOperand(0).getType();
  auto in = Kind::of(getElementTypeOrSelf(first));
  auto out = Kind::of(getElementTypeOrSelf(op->getResult(0).getType()));
  if (!in || !out)
    return std::nullopt;
  ScalarOp result{found->second, *in, *out};
  if (auto predicate = op->getAttrOfType<IntegerAttr>("predicate"))
    result.predicate = predicate.getInt();
  return result;
}

} // namespace cleave::oracle

//===- Evaluator.cpp - What a kernel means, slowly ------------------------===//
#include "test/passes/lower/kernels/Evaluator.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <cmath>
#include <functional>

using namespace mlir;
using namespace cleave::kernels::test;

static int64_t wrap(int64_t value, unsigned width) {
  if (width >= 64)
    return value;
  if (width == 1)
    return value & 1;
  return int64_t(uint64_t(value) << (64 - width)) >> (64 - width);
}

static uint64_t asUnsigned(int64_t value, unsigned width) {
  return width >= 64 ? uint64_t(value)
                     : uint64_t(value) & ((uint64_t(1) << width) - 1);
}

static unsigned widthOf(Type type) {
  return type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
}

Scalar cleave::kernels::test::roundTo(Type type, Scalar value) {
  if (!isa<FloatType>(type)) {
    value.i = wrap(value.i, widthOf(type));
    return value;
  }
  if (type.isF64())
    return value;
  if (type.isF32()) {
    value.d = float(value.d);
    return value;
  }
  APFloat f(value.d);
  bool lost;
  f.convert(cast<FloatType>(type).getFloatSemantics(),
            APFloat::rmNearestTiesToEven, &lost);
  f.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
  value.d = f.convertToDouble();
  return value;
}

Datum cleave::kernels::test::makeDatum(Type type) {
  Datum datum;
  if (auto tensor = dyn_cast<RankedTensorType>(type)) {
    datum.element = tensor.getElementType();
    datum.shape.assign(tensor.getShape().begin(), tensor.getShape().end());
    datum.data.resize(tensor.getNumElements());
    return datum;
  }
  datum.element = type;
  datum.isScalar = true;
  datum.data.resize(1);
  return datum;
}

static int64_t linearIndex(ArrayRef<int64_t> shape, ArrayRef<int64_t> at) {
  int64_t linear = 0;
  for (auto [size, i] : llvm::zip_equal(shape, at))
    linear = linear * size + i;
  return linear;
}

/// Calls `body` with every index of `shape`, the last one fastest.
static void forEach(ArrayRef<int64_t> shape,
                    llvm::function_ref<void(ArrayRef<int64_t>)> body) {
  if (llvm::is_contained(shape, 0))
    return;
  SmallVector<int64_t> at(shape.size(), 0);
  while (true) {
    body(at);
    int64_t d = shape.size() - 1;
    while (d >= 0 && ++at[d] == shape[d])
      at[d--] = 0;
    if (d < 0)
      return;
  }
}

static Scalar fromAttribute(TypedAttr attr) {
  Scalar s;
  if (auto f = dyn_cast<FloatAttr>(attr))
    s.d = f.getValueAsDouble();
  else
    s.i = cast<IntegerAttr>(attr).getType().isInteger(1)
              ? int64_t(cast<IntegerAttr>(attr).getValue().getZExtValue())
              : cast<IntegerAttr>(attr).getValue().getSExtValue();
  return s;
}

static double maximum(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return NAN;
  return a == 0 && b == 0 ? (std::signbit(a) ? b : a) : std::fmax(a, b);
}

static double minimum(double a, double b) { return -maximum(-a, -b); }

static bool compare(arith::CmpFPredicate p, double a, double b) {
  using P = arith::CmpFPredicate;
  bool uno = std::isnan(a) || std::isnan(b);
  switch (p) {
  case P::AlwaysFalse:
    return false;
  case P::OEQ:
    return !uno && a == b;
  case P::OGT:
    return !uno && a > b;
  case P::OGE:
    return !uno && a >= b;
  case P::OLT:
    return !uno && a < b;
  case P::OLE:
    return !uno && a <= b;
  case P::ONE:
    return !uno && a != b;
  case P::ORD:
    return !uno;
  case P::UEQ:
    return uno || a == b;
  case P::UGT:
    return uno || a > b;
  case P::UGE:
    return uno || a >= b;
  case P::ULT:
    return uno || a < b;
  case P::ULE:
    return uno || a <= b;
  case P::UNE:
    return uno || a != b;
  case P::UNO:
    return uno;
  case P::AlwaysTrue:
    return true;
  }
  llvm_unreachable("unknown predicate");
}

static bool compare(arith::CmpIPredicate p, int64_t a, int64_t b,
                    unsigned width) {
  using P = arith::CmpIPredicate;
  uint64_t ua = asUnsigned(a, width), ub = asUnsigned(b, width);
  // An i1 is kept as 0 or 1 but is 0 or -1 when signed.
  if (width == 1) {
    a = -a;
    b = -b;
  }
  switch (p) {
  case P::eq:
    return a == b;
  case P::ne:
    return a != b;
  case P::slt:
    return a < b;
  case P::sle:
    return a <= b;
  case P::sgt:
    return a > b;
  case P::sge:
    return a >= b;
  case P::ult:
    return ua < ub;
  case P::ule:
    return ua <= ub;
  case P::ugt:
    return ua > ub;
  case P::uge:
    return ua >= ub;
  }
  llvm_unreachable("unknown predicate");
}

namespace {
using Unary = double (*)(double);
using Binary = double (*)(double, double);

class Interpreter {
public:
  std::string error;
  DenseMap<Value, Datum> values;

  /// Runs a block; returns the operands of its terminator.
  std::vector<Datum> block(Block &block);

private:
  Datum &get(Value v) { return values.find(v)->second; }
  Scalar scalar(Value v) { return get(v).data[0]; }
  void set(Value v, Scalar s) {
    Datum d = makeDatum(v.getType());
    d.data[0] = roundTo(v.getType(), s);
    values[v] = std::move(d);
  }
  void setF(Value v, double x) { set(v, {x, 0}); }
  void setI(Value v, int64_t x) { set(v, {0, x}); }
  int64_t fold(OpFoldResult f) {
    if (auto attr = dyn_cast<Attribute>(f))
      return cast<IntegerAttr>(attr).getInt();
    return scalar(cast<Value>(f)).i;
  }
  void operation(Operation &op);
  bool elementwise(Operation &op);
  bool floatOp(Operation &op);
  bool integerOp(Operation &op);
  bool castOp(Operation &op);
  bool tensorOp(Operation &op);
  void linalgOp(linalg::LinalgOp op);
  void loop(scf::ForOp op);

  SmallVector<int64_t> loopIndices;
};
} // namespace

static const llvm::StringMap<Unary> &unaries() {
  static const llvm::StringMap<Unary> table = {
      {"arith.negf", [](double x) { return -x; }},
      {"math.absf", [](double x) { return std::fabs(x); }},
      {"math.exp", [](double x) { return std::exp(x); }},
      {"math.exp2", [](double x) { return std::exp2(x); }},
      {"math.expm1", [](double x) { return std::expm1(x); }},
      {"math.log", [](double x) { return std::log(x); }},
      {"math.log2", [](double x) { return std::log2(x); }},
      {"math.log10", [](double x) { return std::log10(x); }},
      {"math.log1p", [](double x) { return std::log1p(x); }},
      {"math.tanh", [](double x) { return std::tanh(x); }},
      {"math.sinh", [](double x) { return std::sinh(x); }},
      {"math.cosh", [](double x) { return std::cosh(x); }},
      {"math.asinh", [](double x) { return std::asinh(x); }},
      {"math.acosh", [](double x) { return std::acosh(x); }},
      {"math.atanh", [](double x) { return std::atanh(x); }},
      {"math.sin", [](double x) { return std::sin(x); }},
      {"math.cos", [](double x) { return std::cos(x); }},
      {"math.tan", [](double x) { return std::tan(x); }},
      {"math.asin", [](double x) { return std::asin(x); }},
      {"math.acos", [](double x) { return std::acos(x); }},
      {"math.atan", [](double x) { return std::atan(x); }},
      {"math.erf", [](double x) { return std::erf(x); }},
      {"math.erfc", [](double x) { return std::erfc(x); }},
      {"math.cbrt", [](double x) { return std::cbrt(x); }},
      {"math.sqrt", [](double x) { return std::sqrt(x); }},
      {"math.rsqrt", [](double x) { return 1 / std::sqrt(x); }},
      {"math.floor", [](double x) { return std::floor(x); }},
      {"math.ceil", [](double x) { return std::ceil(x); }},
      {"math.round", [](double x) { return std::round(x); }},
      {"math.roundeven", [](double x) { return std::nearbyint(x); }},
      {"math.trunc", [](double x) { return std::trunc(x); }},
  };
  return table;
}

static const llvm::StringMap<Binary> &binaries() {
  static const llvm::StringMap<Binary> table = {
      {"arith.addf", [](double a, double b) { return a + b; }},
      {"arith.subf", [](double a, double b) { return a - b; }},
      {"arith.mulf", [](double a, double b) { return a * b; }},
      {"arith.divf", [](double a, double b) { return a / b; }},
      {"arith.remf", [](double a, double b) { return std::fmod(a, b); }},
      {"arith.maximumf", maximum},
      {"arith.minimumf", minimum},
      {"arith.maxnumf", [](double a, double b) { return std::fmax(a, b); }},
      {"arith.minnumf", [](double a, double b) { return std::fmin(a, b); }},
      {"math.powf", [](double a, double b) { return std::pow(a, b); }},
      {"math.atan2", [](double a, double b) { return std::atan2(a, b); }},
      {"math.copysign", [](double a, double b) { return std::copysign(a, b); }},
  };
  return table;
}

bool Interpreter::floatOp(Operation &op) {
  StringRef name = op.getName().getStringRef();
  if (auto it = unaries().find(name); it != unaries().end()) {
    setF(op.getResult(0), it->second(scalar(op.getOperand(0)).d));
    return true;
  }
  if (auto it = binaries().find(name); it != binaries().end()) {
    setF(op.getResult(0),
         it->second(scalar(op.getOperand(0)).d, scalar(op.getOperand(1)).d));
    return true;
  }
  if (isa<math::FmaOp>(op)) {
    double a = scalar(op.getOperand(0)).d, b = scalar(op.getOperand(1)).d,
           c = scalar(op.getOperand(2)).d;
    setF(op.getResult(0), std::fma(a, b, c));
    return true;
  }
  if (auto fpowi = dyn_cast<math::FPowIOp>(op)) {
    setF(op.getResult(0),
         std::pow(scalar(fpowi.getLhs()).d, double(scalar(fpowi.getRhs()).i)));
    return true;
  }
  if (auto cmp = dyn_cast<arith::CmpFOp>(op)) {
    setI(cmp, compare(cmp.getPredicate(), scalar(cmp.getLhs()).d,
                      scalar(cmp.getRhs()).d));
    return true;
  }
  return false;
}

bool Interpreter::integerOp(Operation &op) {
  if (op.getNumOperands() == 0 || op.getNumResults() != 1 ||
      !op.getOperand(0).getType().isIntOrIndex())
    return false;
  unsigned width = widthOf(op.getOperand(0).getType());
  int64_t a = scalar(op.getOperand(0)).i;
  int64_t b = op.getNumOperands() > 1 ? scalar(op.getOperand(1)).i : 0;
  // i1 is 0 or 1 here; two's complement makes it 0 or -1.
  int64_t sa = width == 1 ? -a : a, sb = width == 1 ? -b : b;
  uint64_t ua = asUnsigned(a, width), ub = asUnsigned(b, width);
  if (auto cmp = dyn_cast<arith::CmpIOp>(op)) {
    setI(cmp, compare(cmp.getPredicate(), a, b, width));
    return true;
  }
  using Fn = std::function<int64_t()>;
  const std::pair<StringRef, Fn> table[] = {
      {"arith.addi", [&] { return int64_t(uint64_t(a) + uint64_t(b)); }},
      {"arith.subi", [&] { return int64_t(uint64_t(a) - uint64_t(b)); }},
      {"arith.muli", [&] { return int64_t(uint64_t(a) * uint64_t(b)); }},
      {"arith.divsi", [&] { return sb ? sa / sb : 0; }},
      {"arith.remsi", [&] { return sb ? sa % sb : 0; }},
      {"arith.divui", [&] { return ub ? int64_t(ua / ub) : 0; }},
      {"arith.remui", [&] { return ub ? int64_t(ua % ub) : 0; }},
      {"arith.floordivsi",
       [&] {
         return sb ? sa / sb - ((sa % sb != 0) && ((sa < 0) != (sb < 0))) : 0;
       }},
      {"arith.ceildivsi",
       [&] {
         return sb ? sa / sb + ((sa % sb != 0) && ((sa < 0) == (sb < 0))) : 0;
       }},
      {"arith.andi", [&] { return a & b; }},
      {"arith.ori", [&] { return a | b; }},
      {"arith.xori", [&] { return a ^ b; }},
      {"arith.shli", [&] { return ub < width ? a << ub : 0; }},
      {"arith.shrsi", [&] { return ub < width ? sa >> ub : 0; }},
      {"arith.shrui", [&] { return ub < width ? int64_t(ua >> ub) : 0; }},
      {"arith.maxsi", [&] { return std::max(sa, sb); }},
      {"arith.minsi", [&] { return std::min(sa, sb); }},
      {"arith.maxui", [&] { return int64_t(std::max(ua, ub)); }},
      {"arith.minui", [&] { return int64_t(std::min(ua, ub)); }},
      {"math.absi", [&] { return sa < 0 ? int64_t(-uint64_t(sa)) : sa; }},
      {"math.ctpop", [&] { return int64_t(llvm::popcount(ua)); }},
      {"math.ctlz",
       [&] { return int64_t(llvm::countl_zero(ua) - (64 - int(width))); }},
  };
  for (const auto &[name, fn] : table)
    if (op.getName().getStringRef() == name) {
      setI(op.getResult(0), fn());
      return true;
    }
  if (isa<math::IPowIOp>(op)) {
    int64_t r = 1;
    if (b >= 0)
      for (int64_t k = 0; k < b; ++k)
        r = wrap(int64_t(uint64_t(r) * uint64_t(a)), width);
    else
      r = a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
    setI(op.getResult(0), r);
    return true;
  }
  return false;
}

bool Interpreter::castOp(Operation &op) {
  if (op.getNumOperands() != 1 || op.getNumResults() != 1 ||
      isa<RankedTensorType>(op.getResult(0).getType()))
    return false;
  Scalar s = scalar(op.getOperand(0));
  Type from = op.getOperand(0).getType();
  Value to = op.getResult(0);
  if (isa<arith::ExtFOp, arith::TruncFOp>(op))
    setF(to, s.d);
  else if (isa<arith::SIToFPOp>(op))
    setF(to, double(from.isInteger(1) ? -s.i : s.i));
  else if (isa<arith::UIToFPOp>(op))
    setF(to, double(asUnsigned(s.i, widthOf(from))));
  else if (isa<arith::FPToSIOp>(op))
    setI(to, int64_t(s.d));
  else if (isa<arith::FPToUIOp>(op))
    setI(to, int64_t(uint64_t(s.d)));
  else if (isa<arith::ExtSIOp>(op))
    setI(to, from.isInteger(1) ? -s.i : s.i);
  else if (isa<arith::ExtUIOp, arith::IndexCastUIOp>(op))
    setI(to, int64_t(asUnsigned(s.i, widthOf(from))));
  else if (isa<arith::TruncIOp, arith::IndexCastOp>(op))
    setI(to, s.i);
  else if (isa<arith::BitcastOp>(op) && from.isF32())
    setI(to, llvm::bit_cast<int32_t>(float(s.d)));
  else if (isa<arith::BitcastOp>(op) && from.isInteger(32))
    setF(to, llvm::bit_cast<float>(int32_t(s.i)));
  else
    return false;
  return true;
}

bool Interpreter::elementwise(Operation &op) {
  if (auto select = dyn_cast<arith::SelectOp>(op)) {
    set(select, scalar(select.getCondition()).i
                    ? scalar(select.getTrueValue())
                    : scalar(select.getFalseValue()));
    return true;
  }
  return castOp(op) || floatOp(op) || integerOp(op);
}

void Interpreter::linalgOp(linalg::LinalgOp op) {
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  SmallVector<Datum> inits;
  for (Value init : op.getDpsInits())
    inits.push_back(get(init));
  Block &body = *op.getBlock();
  auto saved = loopIndices;
  forEach(ranges, [&](ArrayRef<int64_t> at) {
    if (!error.empty())
      return;
    loopIndices.assign(at.begin(), at.end());
    auto element = [&](OpOperand &use) {
      return linearIndex(
          isa<RankedTensorType>(use.get().getType())
              ? cast<RankedTensorType>(use.get().getType()).getShape()
              : ArrayRef<int64_t>(),
          maps[use.getOperandNumber()].compose(at));
    };
    unsigned numInputs = op.getNumDpsInputs();
    for (OpOperand *use : op.getDpsInputOperands())
      set(body.getArgument(use->getOperandNumber()),
          get(use->get()).data[element(*use)]);
    for (auto [i, init] : llvm::enumerate(inits))
      set(body.getArgument(numInputs + i),
          init.data[element(*op.getDpsInitOperand(i))]);
    std::vector<Datum> yields = block(body);
    for (auto [i, yield] : llvm::enumerate(yields))
      inits[i].data[element(*op.getDpsInitOperand(i))] = yield.data[0];
  });
  loopIndices = saved;
  for (auto [result, init] : llvm::zip_equal(op->getResults(), inits))
    values[result] = init;
}

bool Interpreter::tensorOp(Operation &op) {
  auto type = op.getNumResults() == 1
                  ? dyn_cast<RankedTensorType>(op.getResult(0).getType())
                  : RankedTensorType();
  if (auto extract = dyn_cast<tensor::ExtractOp>(op)) {
    SmallVector<int64_t> at;
    for (Value v : extract.getIndices())
      at.push_back(scalar(v).i);
    Datum &from = get(extract.getTensor());
    set(extract, from.data[linearIndex(from.shape, at)]);
    return true;
  }
  if (!type)
    return false;
  Datum out = makeDatum(type);
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op)) {
    out.data = get(op.getOperand(0)).data;
  } else if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto dense = cast<DenseElementsAttr>(constant.getValue());
    int64_t i = 0;
    for (Attribute a : dense.getValues<Attribute>())
      out.data[i++] = fromAttribute(cast<TypedAttr>(a));
  } else if (auto splat = dyn_cast<tensor::SplatOp>(op)) {
    llvm::fill(out.data, scalar(splat.getInput()));
  } else if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
    Datum &from = get(slice.getSource());
    llvm::SmallBitVector dropped = slice.getDroppedDims();
    SmallVector<int64_t> full;
    for (OpFoldResult f : slice.getMixedSizes())
      full.push_back(fold(f));
    int64_t i = 0;
    forEach(full, [&](ArrayRef<int64_t> at) {
      SmallVector<int64_t> source;
      for (auto [d, x] : llvm::enumerate(at))
        source.push_back(fold(slice.getMixedOffsets()[d]) +
                         x * fold(slice.getMixedStrides()[d]));
      out.data[i++] = from.data[linearIndex(from.shape, source)];
    });
  } else if (auto insert = dyn_cast<tensor::InsertSliceOp>(op)) {
    out = get(insert.getDest());
    Datum &from = get(insert.getSource());
    SmallVector<int64_t> full;
    for (OpFoldResult f : insert.getMixedSizes())
      full.push_back(fold(f));
    int64_t i = 0;
    forEach(full, [&](ArrayRef<int64_t> at) {
      SmallVector<int64_t> target;
      for (auto [d, x] : llvm::enumerate(at))
        target.push_back(fold(insert.getMixedOffsets()[d]) +
                         x * fold(insert.getMixedStrides()[d]));
      out.data[linearIndex(out.shape, target)] = from.data[i++];
    });
  } else if (auto concat = dyn_cast<tensor::ConcatOp>(op)) {
    int64_t base = 0, dim = concat.getDim();
    for (Value input : concat.getInputs()) {
      Datum &from = get(input);
      int64_t i = 0;
      forEach(from.shape, [&](ArrayRef<int64_t> at) {
        SmallVector<int64_t> target(at);
        target[dim] += base;
        out.data[linearIndex(out.shape, target)] = from.data[i++];
      });
      base += from.shape[dim];
    }
  } else if (auto pad = dyn_cast<tensor::PadOp>(op)) {
    Datum from = get(pad.getSource());
    SmallVector<int64_t> low;
    for (OpFoldResult f : pad.getMixedLowPad())
      low.push_back(fold(f));
    int64_t i = 0;
    auto saved = loopIndices;
    forEach(out.shape, [&](ArrayRef<int64_t> at) {
      SmallVector<int64_t> source;
      bool inside = true;
      for (auto [d, x] : llvm::enumerate(at)) {
        source.push_back(x - low[d]);
        inside &= source[d] >= 0 && source[d] < from.shape[d];
        setI(pad.getBody()->getArgument(d), x);
      }
      out.data[i++] = inside ? from.data[linearIndex(from.shape, source)]
                             : block(*pad.getBody())[0].data[0];
    });
    loopIndices = saved;
  } else if (!isa<tensor::EmptyOp>(op)) {
    return false;
  }
  values[op.getResult(0)] = std::move(out);
  return true;
}

void Interpreter::loop(scf::ForOp op) {
  int64_t low = scalar(op.getLowerBound()).i,
          high = scalar(op.getUpperBound()).i, step = scalar(op.getStep()).i;
  std::vector<Datum> carried;
  for (Value init : op.getInitArgs())
    carried.push_back(get(init));
  for (int64_t i = low; i < high; i += step) {
    setI(op.getInductionVar(), i);
    for (auto [arg, d] : llvm::zip_equal(op.getRegionIterArgs(), carried))
      values[arg] = d;
    carried = block(*op.getBody());
  }
  for (auto [result, d] : llvm::zip_equal(op.getResults(), carried))
    values[result] = d;
}

void Interpreter::operation(Operation &op) {
  if (auto linalg = dyn_cast<linalg::LinalgOp>(op))
    return linalgOp(linalg);
  if (auto loopOp = dyn_cast<scf::ForOp>(op))
    return loop(loopOp);
  if (auto branch = dyn_cast<scf::IfOp>(op)) {
    bool taken = scalar(branch.getCondition()).i;
    std::vector<Datum> results =
        block(taken ? *branch.thenBlock() : *branch.elseBlock());
    for (auto [result, d] : llvm::zip_equal(op.getResults(), results))
      values[result] = d;
    return;
  }
  if (auto index = dyn_cast<linalg::IndexOp>(op))
    return setI(index, loopIndices[index.getDim()]);
  auto constant = dyn_cast<arith::ConstantOp>(op);
  if (constant && !isa<RankedTensorType>(constant.getType()))
    return set(constant, fromAttribute(cast<TypedAttr>(constant.getValue())));
  if (tensorOp(op) || elementwise(op))
    return;
  error =
      "the evaluator does not know '" + op.getName().getStringRef().str() + "'";
}

std::vector<Datum> Interpreter::block(Block &block) {
  for (Operation &op : block.without_terminator()) {
    operation(op);
    if (!error.empty())
      return {};
  }
  std::vector<Datum> results;
  for (Value v : block.getTerminator()->getOperands())
    results.push_back(get(v));
  return results;
}

std::vector<Datum> cleave::kernels::test::evaluate(func::FuncOp kernel,
                                                   std::vector<Datum> arguments,
                                                   std::string &error) {
  Interpreter interpreter;
  for (auto [value, datum] : llvm::zip_equal(kernel.getArguments(), arguments))
    interpreter.values[value] = datum;
  std::vector<Datum> results = interpreter.block(kernel.getBody().front());
  error = interpreter.error;
  return results;
}

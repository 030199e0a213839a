//===- Math.cpp - Math without calls --------------------------------------===//
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Conversion/MathToLibm/MathToLibm.h"
#include "mlir/Dialect/AMX/AMXDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "passes/lower/kernels/Internal.h"
#include <cmath>

using namespace mlir;
using namespace cleave::kernels;

namespace {
/// Builds arithmetic on f32 or integer scalars, or on vectors of one shape.
struct Arithmetic {
  OpBuilder &b;
  Location loc;
  Type like; // of the values

  Type with(Type element) const {
    auto vector = dyn_cast<VectorType>(like);
    return vector ? Type(vector.clone(element)) : element;
  }
  Value constant(TypedAttr attr) const {
    auto vector = dyn_cast<VectorType>(like);
    if (!vector)
      return arith::ConstantOp::create(b, loc, attr);
    return arith::ConstantOp::create(
        b, loc,
        DenseElementsAttr::get(vector.clone(attr.getType()), Attribute(attr)));
  }
  Value f(double value) const {
    return constant(b.getFloatAttr(getElementTypeOrSelf(like), value));
  }
  Value i(Type element, int64_t value) const {
    return constant(b.getIntegerAttr(element, value));
  }
  Value mul(Value x, Value y) const {
    return arith::MulFOp::create(b, loc, x, y);
  }
  Value sub(Value x, Value y) const {
    return arith::SubFOp::create(b, loc, x, y);
  }
  Value fma(Value x, Value y, Value z) const {
    return math::FmaOp::create(b, loc, x, y, z);
  }
  Value less(Value x, Value y) const {
    return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, x, y);
  }
  Value select(Value c, Value x, Value y) const {
    return arith::SelectOp::create(b, loc, c, x, y);
  }
};

/// exp in f32 within 2 units in the last place; results below 2^-125 are 0.
/// 2^n * p(r) with x = n ln2 + r. NaN goes through the arithmetic.
struct ExpandExp : OpRewritePattern<math::ExpOp> {
  ExpandExp(MLIRContext *context) : OpRewritePattern(context, 10) {}
  LogicalResult matchAndRewrite(math::ExpOp op,
                                PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return rewriter.notifyMatchFailure(op, "only f32");
    Arithmetic a{rewriter, op.getLoc(), op.getType()};
    Value x = op.getOperand();
    // Adding 1.5 * 2^23 + 126 rounds to an integer and leaves n + 126 in the
    // low bits, which moved to the exponent make 2^(n - 1).
    Value magic = a.f(12582912.0 + 126.0);
    Value t = a.fma(x, a.f(1.44269504088896341), magic);
    Value n = a.sub(t, magic);
    Value r = a.fma(n, a.f(-0.693359375), x);
    r = a.fma(n, a.f(2.12194440e-4), r);
    // 2 exp(r) on [-ln2/2, ln2/2]: least relative error, 3.1e-9.
    static const double coefficients[] = {0.002762886933404741,
                                          0.016737591993924796,
                                          0.08333679145491689,
                                          0.3333303995831745,
                                          0.9999998680762417,
                                          2.0,
                                          2.0};
    Value p = a.f(coefficients[0]);
    for (double c : ArrayRef(coefficients).drop_front())
      p = a.fma(p, r, a.f(c));
    Type i32 = rewriter.getI32Type();
    Value bits =
        arith::BitcastOp::create(rewriter, op.getLoc(), a.with(i32), t);
    bits = arith::ShLIOp::create(rewriter, op.getLoc(), bits, a.i(i32, 23));
    Value scale =
        arith::BitcastOp::create(rewriter, op.getLoc(), op.getType(), bits);
    Value y = a.mul(p, scale);
    y = a.select(a.less(x, a.f(-86.9)), a.f(0.0), y);
    y = a.select(a.less(a.f(88.7228317), x), a.f(INFINITY), y);
    rewriter.replaceOp(op, y);
    return success();
  }
};

/// maximumf and minimumf: NaN wins, and -0 is less than +0.
template <typename Op, bool isMax>
struct ExpandExtremum : OpRewritePattern<Op> {
  ExpandExtremum(MLIRContext *context) : OpRewritePattern<Op>(context, 10) {}
  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    auto type = dyn_cast<FloatType>(getElementTypeOrSelf(op.getType()));
    if (!type || (!type.isF32() && !type.isF64()))
      return rewriter.notifyMatchFailure(op, "only f32 and f64");
    Arithmetic a{rewriter, loc, op.getType()};
    // x86 gives the second operand where the comparison is false.
    auto pick = [&](Value x, Value y) {
      Value c = isMax ? a.less(y, x) : a.less(x, y);
      return a.select(c, x, y);
    };
    Value x = op.getLhs(), y = op.getRhs();
    FloatAttr constant;
    if (matchPattern(y, m_Constant(&constant)) || matchSplat(y, constant)) {
      if (!constant.getValue().isNaN() && !constant.getValue().isZero()) {
        rewriter.replaceOp(op, pick(y, x));
        return success();
      }
    }
    if (bitEnumContainsAny(op.getFastmath(), arith::FastMathFlags::nsz)) {
      // A NaN in y is picked already.
      Value isNaN =
          arith::CmpFOp::create(rewriter, loc, arith::CmpFPredicate::UNO, x, x);
      rewriter.replaceOp(op, a.select(isNaN, x, pick(x, y)));
      return success();
    }
    // Both orders agree but for zeros of two signs, which bits decide.
    Type integer = rewriter.getIntegerType(type.getWidth());
    auto bits = [&](Value v) -> Value {
      return arith::BitcastOp::create(rewriter, loc, a.with(integer), v);
    };
    Value p = bits(pick(x, y)), q = bits(pick(y, x));
    Value joined = isMax
                       ? arith::AndIOp::create(rewriter, loc, p, q).getResult()
                       : arith::OrIOp::create(rewriter, loc, p, q).getResult();
    Value ordered =
        arith::BitcastOp::create(rewriter, loc, op.getType(), joined);
    Value isNaN =
        arith::CmpFOp::create(rewriter, loc, arith::CmpFPredicate::UNO, x, y);
    Value sum = arith::AddFOp::create(rewriter, loc, x, y);
    rewriter.replaceOp(op, a.select(isNaN, sum, ordered));
    return success();
  }
  static bool matchSplat(Value v, FloatAttr &constant) {
    DenseElementsAttr dense;
    if (auto broadcast = v.getDefiningOp<vector::BroadcastOp>())
      return matchPattern(broadcast.getSource(), m_Constant(&constant));
    if (!matchPattern(v, m_Constant(&dense)) || !dense.isSplat())
      return false;
    constant = dense.getSplatValue<FloatAttr>();
    return true;
  }
};

/// Integer powers by squaring; a negative exponent gives 0 but for 1 and -1.
struct ExpandIPow : OpRewritePattern<math::IPowIOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::IPowIOp op,
                                PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Type element = getElementTypeOrSelf(op.getType());
    Arithmetic a{rewriter, loc, op.getType()};
    Value base = op.getLhs(), exponent = op.getRhs();
    Value zero = a.i(element, 0), one = a.i(element, 1);
    auto is = [&](arith::CmpIPredicate p, Value x, Value y) -> Value {
      return arith::CmpIOp::create(rewriter, loc, p, x, y);
    };
    using P = arith::CmpIPredicate;
    Value odd =
        is(P::ne, arith::AndIOp::create(rewriter, loc, exponent, one), zero);
    Value result = one, power = base, rest = exponent;
    for (unsigned bit = 0; bit < element.getIntOrFloatBitWidth(); ++bit) {
      Value set =
          is(P::ne, arith::AndIOp::create(rewriter, loc, rest, one), zero);
      Value next = arith::MulIOp::create(rewriter, loc, result, power);
      result = a.select(set, next, result);
      power = arith::MulIOp::create(rewriter, loc, power, power);
      rest = arith::ShRUIOp::create(rewriter, loc, rest, one);
    }
    Value minusOne = a.i(element, -1);
    Value small =
        a.select(is(P::eq, base, minusOne), a.select(odd, minusOne, one), zero);
    small = a.select(is(P::eq, base, one), one, small);
    rewriter.replaceOp(op, a.select(is(P::slt, exponent, zero), small, result));
    return success();
  }
};

/// Powers with an integer exponent through those with a real one.
struct ExpandFPowI : OpRewritePattern<math::FPowIOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::FPowIOp op,
                                PatternRewriter &rewriter) const override {
    Value exponent = arith::SIToFPOp::create(rewriter, op.getLoc(),
                                             op.getType(), op.getRhs());
    rewriter.replaceOpWithNewOp<math::PowFOp>(op, op.getLhs(), exponent);
    return success();
  }
};

/// log10 through log: both are within a few units in the last place.
struct ExpandLog10 : OpRewritePattern<math::Log10Op> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::Log10Op op,
                                PatternRewriter &rewriter) const override {
    if (!getElementTypeOrSelf(op.getType()).isF32())
      return rewriter.notifyMatchFailure(op, "only f32");
    Arithmetic a{rewriter, op.getLoc(), op.getType()};
    Value y = math::LogOp::create(rewriter, op.getLoc(), op.getOperand());
    rewriter.replaceOp(op, a.mul(y, a.f(0.434294481903251828)));
    return success();
  }
};
} // namespace

/// `type` with bf16 replaced by i16.
static Type asBits(Type type) {
  if (type.isBF16())
    return IntegerType::get(type.getContext(), 16);
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.clone(asBits(vector.getElementType()));
  if (auto memref = dyn_cast<MemRefType>(type))
    return MemRefType::Builder(memref).setElementType(
        asBits(memref.getElementType()));
  return type;
}

static Attribute asBits(Attribute attr) {
  if (auto type = dyn_cast<TypeAttr>(attr))
    return TypeAttr::get(asBits(type.getValue()));
  auto number = dyn_cast<FloatAttr>(attr);
  if (number && number.getType().isBF16())
    return IntegerAttr::get(asBits(number.getType()),
                            number.getValue().bitcastToAPInt());
  auto dense = dyn_cast<DenseElementsAttr>(attr);
  if (dense && dense.getElementType().isBF16())
    return dense.bitcast(asBits(dense.getElementType()));
  return attr;
}

/// LLVM rounds a bf16 that passes through a register by a call. Once no
/// arithmetic is left on them they are bits, so let them be 16-bit integers.
static void passBf16AsBits(ModuleOp module) {
  SmallVector<Operation *> casts;
  module.walk([&](Operation *op) {
    // Instructions on bf16 keep their type.
    if (isa<LLVM::LLVMDialect>(op->getDialect()))
      return;
    for (OpResult result : op->getResults())
      result.setType(asBits(result.getType()));
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (BlockArgument argument : block.getArguments())
          argument.setType(asBits(argument.getType()));
    for (NamedAttribute named : op->getAttrs())
      if (Attribute bits = asBits(named.getValue()); bits != named.getValue())
        op->setAttr(named.getName(), bits);
    if (auto f = dyn_cast<func::FuncOp>(op)) {
      SmallVector<Type> inputs;
      for (Type type : f.getArgumentTypes())
        inputs.push_back(asBits(type));
      f.setType(
          FunctionType::get(op->getContext(), inputs, f.getResultTypes()));
    }
    if (isa<arith::BitcastOp>(op))
      casts.push_back(op);
  });
  // Tile registers keep their type; a cast of the buffer costs nothing.
  module.walk([](amx::TileLoadOp load) {
    auto type = cast<MemRefType>(load.getBase().getType());
    OpBuilder b(load);
    auto bf16 = MemRefType::Builder(type).setElementType(
        load.getTileType().getElementType());
    if (type.getElementType() != load.getTileType().getElementType())
      load.getBaseMutable().assign(
          UnrealizedConversionCastOp::create(
              b, load.getLoc(), Type(MemRefType(bf16)), load.getBase())
              .getResult(0));
  });
  for (Operation *cast : casts)
    if (cast->getOperand(0).getType() == cast->getResult(0).getType()) {
      cast->getResult(0).replaceAllUsesWith(cast->getOperand(0));
      cast->erase();
    }
}

static bool isNarrowFloat(Type type) {
  Type element = getElementTypeOrSelf(type);
  return isa<FloatType>(element) && element.getIntOrFloatBitWidth() < 32;
}

/// Math on bf16 and f16 is done in f32 and rounded.
static void widenFunctions(Operation *root) {
  SmallVector<Operation *> ops;
  root->walk([&](Operation *op) {
    if (isa_and_nonnull<math::MathDialect>(op->getDialect()) &&
        op->getNumResults() == 1 && isNarrowFloat(op->getResult(0).getType()))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    OpBuilder b(op);
    auto wide = [&](Type type) -> Type {
      auto vector = dyn_cast<VectorType>(type);
      return vector ? Type(vector.clone(b.getF32Type())) : b.getF32Type();
    };
    for (OpOperand &operand : op->getOpOperands())
      if (isNarrowFloat(operand.get().getType()))
        operand.set(arith::ExtFOp::create(
            b, op->getLoc(), wide(operand.get().getType()), operand.get()));
    OpResult result = op->getResult(0);
    Type type = result.getType();
    result.setType(wide(type));
    b.setInsertionPointAfter(op);
    auto narrow = arith::TruncFOp::create(b, op->getLoc(), type, result);
    result.replaceAllUsesExcept(narrow.getResult(), narrow);
  }
}

static Type withElement(Type type, Type element) {
  auto vector = dyn_cast<VectorType>(type);
  return vector ? Type(vector.clone(element)) : element;
}

static Value constantLike(OpBuilder &b, Location loc, Type type,
                          TypedAttr element) {
  auto vector = dyn_cast<VectorType>(type);
  return arith::ConstantOp::create(
      b, loc,
      vector ? TypedAttr(DenseElementsAttr::get(vector, element)) : element);
}

/// f64 to f32, rounded to odd: an inexact result has its last bit set, so that
/// rounding it once more gives what rounding the f64 would have.
static Value roundToOdd(OpBuilder &b, Location loc, Value value) {
  Type f64 = value.getType();
  Type f32 = withElement(f64, b.getF32Type());
  Type i32 = withElement(f64, b.getI32Type());
  Value near = arith::TruncFOp::create(b, loc, f32, value);
  Value back = arith::ExtFOp::create(b, loc, f64, near);
  Value inexact =
      arith::CmpFOp::create(b, loc, arith::CmpFPredicate::ONE, back, value);
  Value grew = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT,
                                     math::AbsFOp::create(b, loc, back),
                                     math::AbsFOp::create(b, loc, value));
  Value bits = arith::BitcastOp::create(b, loc, i32, near);
  Value one = constantLike(b, loc, i32, b.getI32IntegerAttr(1));
  // Towards zero first; then the last bit tells that something was cut off.
  Value lower = arith::SelectOp::create(
      b, loc, grew, arith::SubIOp::create(b, loc, bits, one), bits);
  Value odd = arith::SelectOp::create(
      b, loc, inexact, arith::OrIOp::create(b, loc, lower, one), lower);
  return arith::BitcastOp::create(b, loc, f32, odd);
}

/// Casts between f64 and bf16 or f16 go through f32, which has instructions.
static void splitCasts(Operation *root) {
  auto isF64 = [](Value value) {
    return getElementTypeOrSelf(value.getType()).isF64();
  };
  SmallVector<Operation *> ops;
  root->walk([&](Operation *op) {
    bool widens = isa<arith::ExtFOp>(op) && isF64(op->getResult(0)) &&
                  isNarrowFloat(op->getOperand(0).getType());
    bool narrows = isa<arith::TruncFOp>(op) && isF64(op->getOperand(0)) &&
                   isNarrowFloat(op->getResult(0).getType());
    if (widens || narrows)
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    OpBuilder b(op);
    Value operand = op->getOperand(0);
    Value middle;
    if (isa<arith::TruncFOp>(op))
      middle = roundToOdd(b, op->getLoc(), operand);
    else
      middle = arith::ExtFOp::create(
          b, op->getLoc(), withElement(operand.getType(), b.getF32Type()),
          operand);
    op->setOperand(0, middle);
  }
}

/// Calls of the C library for functions of f64 that LLVM has no name for,
/// element by element.
static LogicalResult callLibm(func::FuncOp kernel) {
  SmallVector<Operation *> ops;
  kernel.walk([&](Operation *op) {
    if (isa<math::AcoshOp, math::AsinhOp, math::AtanhOp, math::CbrtOp,
            math::ErfOp, math::ErfcOp>(op) &&
        getElementTypeOrSelf(op->getResult(0).getType()).isF64())
      ops.push_back(op);
  });
  RewritePatternSet patterns(kernel.getContext());
  populateMathToLibmConversionPatterns(patterns);
  GreedyRewriteConfig config;
  config.setStrictness(GreedyRewriteStrictness::ExistingAndNewOps);
  return applyOpPatternsGreedily(ops, std::move(patterns), config);
}

void cleave::kernels::widenMath(Operation *root) {
  widenFunctions(root);
  splitCasts(root);
}

std::unique_ptr<Pass> cleave::kernels::createNarrowArithmetic() {
  arith::ArithEmulateUnsupportedFloatsOptions options;
  options.sourceTypeStrs = {"bf16", "f16"};
  return arith::createArithEmulateUnsupportedFloats(options);
}

LogicalResult cleave::kernels::expandMath(func::FuncOp kernel) {
  MLIRContext *context = kernel.getContext();
  widenMath(kernel);
  ModuleOp module = kernel->getParentOfType<ModuleOp>();
  PassManager narrow(context);
  narrow.addPass(createNarrowArithmetic());
  if (failed(narrow.run(module)))
    return failure();
  RewritePatternSet patterns(context);
  math::populateExpansionPatterns(patterns,
                                  {"sinh", "cosh", "tan", "asinh", "acosh",
                                   "atanh", "exp2", "powf", "rsqrt"});
  patterns.add<ExpandExp, ExpandIPow, ExpandFPowI, ExpandLog10,
               ExpandExtremum<arith::MaximumFOp, true>,
               ExpandExtremum<arith::MinimumFOp, false>>(context);
  populateMathPolynomialApproximationPatterns(
      patterns, [](StringRef name) { return name != "math.rsqrt"; });
  // Functions of f64 stay, for the C library: the approximations above are
  // made for f32, and some of them fail on f64.
  SmallVector<Operation *> ops;
  kernel.walk([&](Operation *op) {
    if (!isa_and_nonnull<math::MathDialect, arith::ArithDialect>(
            op->getDialect()) ||
        op->getNumResults() != 1)
      return;
    bool isMath = isa<math::MathDialect>(op->getDialect());
    bool isF64 = getElementTypeOrSelf(op->getResult(0).getType()).isF64();
    if (!isMath || !isF64 || isa<math::FPowIOp>(op))
      ops.push_back(op);
  });
  GreedyRewriteConfig config;
  config.setStrictness(GreedyRewriteStrictness::ExistingAndNewOps);
  if (failed(applyOpPatternsGreedily(ops, std::move(patterns), config)))
    return failure();
  if (failed(callLibm(kernel)))
    return failure();
  PassManager expand(context);
  arith::ArithExpandOpsPassOptions options;
  options.includeBf16 = true;
  expand.addPass(arith::createArithExpandOpsPass(options));
  if (failed(expand.run(module)))
    return failure();
  passBf16AsBits(module);
  return success();
}

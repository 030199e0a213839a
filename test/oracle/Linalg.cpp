//===- Linalg.cpp - Structured ops, point by point ------------------------===//
#include "test/oracle/InterpreterImpl.h"
#include <cmath>

using namespace mlir;

namespace cleave::oracle {

/// Adds `factor` times the expression to base and coefficients.
static bool addLinear(AffineExpr expr, int64_t factor, int64_t &base,
                      Shape &coefficients) {
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    base += factor * constant.getValue();
    return true;
  }
  if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    coefficients[dim.getPosition()] += factor;
    return true;
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return false;
  if (expr.getKind() == AffineExprKind::Add)
    return addLinear(binary.getLHS(), factor, base, coefficients) &&
           addLinear(binary.getRHS(), factor, base, coefficients);
  auto constant = dyn_cast<AffineConstantExpr>(binary.getRHS());
  if (expr.getKind() != AffineExprKind::Mul || !constant)
    return false;
  return addLinear(binary.getLHS(), factor * constant.getValue(), base,
                   coefficients);
}

/// The access of an operand; false if it leaves the operand's bounds.
static bool makeAccess(AffineMap map, llvm::ArrayRef<int64_t> shape,
                       llvm::ArrayRef<int64_t> ranges, Access &access) {
  access.map = map;
  access.coefficients.assign(ranges.size(), 0);
  int64_t stride = numElements(shape);
  bool isEmpty = llvm::is_contained(ranges, 0);
  for (auto [expr, size] : llvm::zip_equal(map.getResults(), shape)) {
    stride = size == 0 ? 0 : stride / size;
    int64_t base = 0;
    Shape coefficients(ranges.size(), 0);
    if (!addLinear(expr, 1, base, coefficients)) {
      access.isLinear = false;
      continue;
    }
    int64_t low = base, high = base;
    for (auto [c, range] : llvm::zip_equal(coefficients, ranges))
      (c < 0 ? low : high) += c * (range - 1);
    if (!isEmpty && (low < 0 || high >= size))
      return false;
    access.base += base * stride;
    for (auto [sum, c] : llvm::zip_equal(access.coefficients, coefficients))
      sum += c * stride;
  }
  return true;
}

/// Element of a non-linear access; -1 if out of bounds.
static int64_t elementAt(const Access &access, llvm::ArrayRef<int64_t> shape,
                         llvm::ArrayRef<int64_t> point) {
  int64_t element = 0;
  for (auto [expr, size] : llvm::zip_equal(access.map.getResults(), shape)) {
    int64_t at = evaluate(expr, point);
    if (at < 0 || at >= size)
      return -1;
    element = element * size + at;
  }
  return element;
}

llvm::Error Interpreter::runLinalg(linalg::LinalgOp op, Frame &frame) {
  std::unique_ptr<LinalgPlan> &plan = plans[op];
  if (!plan) {
    if (!op.hasPureTensorSemantics())
      return failAt(op, "the oracle knows tensors only");
    plan = std::make_unique<LinalgPlan>();
    plan->ranges = op.getStaticLoopRanges();
    auto body = bodyOf(op, op.getBlock());
    if (!body)
      return body.takeError();
    plan->body = *body;
    for (OpOperand &operand : op->getOpOperands()) {
      Access access;
      llvm::ArrayRef<int64_t> shape;
      if (auto type = dyn_cast<RankedTensorType>(operand.get().getType()))
        shape = type.getShape();
      if (!makeAccess(op.getMatchingIndexingMap(&operand), shape, plan->ranges,
                      access))
        return failAt(op, "operand " + Twine(operand.getOperandNumber()) +
                              " is read out of bounds");
      plan->accesses.push_back(std::move(access));
    }
  }
  for (int rank : active)
    if (llvm::Error error = runLinalgOnRank(op, *plan, rank, frame))
      return error;
  return llvm::Error::success();
}

namespace {
/// The operands of one op on one rank while the loops run.
struct Operands {
  llvm::SmallVector<const Tensor *, 4> tensors; // null: a scalar
  llvm::SmallVector<Scalar, 4> scalars;
  llvm::SmallVector<int64_t, 4> offsets;
};
} // namespace

/// Steps the loops and all linear offsets; false after the last point.
static bool nextPoint(Shape &point, llvm::ArrayRef<int64_t> ranges,
                      llvm::ArrayRef<Access> accesses, Operands &operands) {
  for (size_t d = point.size(); d-- > 0;) {
    bool more = ++point[d] < ranges[d];
    for (auto [offset, access] : llvm::zip(operands.offsets, accesses))
      offset += access.coefficients[d] * (more ? 1 : 1 - ranges[d]);
    if (more)
      return true;
    point[d] = 0;
  }
  return false;
}

llvm::Error Interpreter::runLinalgOnRank(linalg::LinalgOp op, LinalgPlan &plan,
                                         int rank, Frame &frame) {
  unsigned numInputs = op.getNumDpsInputs();
  std::vector<Tensor> outs;
  outs.reserve(op.getNumDpsInits());
  Operands operands;
  for (OpOperand &operand : op->getOpOperands()) {
    const Cell &cell = frame[operand.get()][rank];
    const Tensor *tensor = cell.tensor.get();
    if (operand.getOperandNumber() >= numInputs && tensor)
      tensor = &outs.emplace_back(*tensor);
    operands.tensors.push_back(tensor);
    operands.scalars.push_back(cell.scalar);
    operands.offsets.push_back(plan.accesses[operand.getOperandNumber()].base);
  }
  const Body &body = *plan.body;
  std::vector<Scalar> slots = body.makeSlots();
  llvm::SmallVector<const Tensor *> captured;
  capture(body, slots, captured, rank, frame);
  Shape point(plan.ranges.size(), 0);
  BodyContext context{point, captured, {}};
  int64_t points = numElements(plan.ranges);
  if (llvm::Error error = countSteps(op, points))
    return error;
  for (int64_t step = 0; step < points; ++step) {
    for (unsigned i = 0; i < operands.tensors.size(); ++i) {
      const Tensor *tensor = operands.tensors[i];
      if (tensor && !plan.accesses[i].isLinear) {
        operands.offsets[i] = elementAt(plan.accesses[i], tensor->shape, point);
        if (operands.offsets[i] < 0)
          return failAt(op, "operand " + Twine(i) + " is read out of bounds");
      }
      slots[body.arguments[i]] =
          tensor ? tensor->data[operands.offsets[i]] : operands.scalars[i];
    }
    body.run(slots, context);
    if (!context.error.empty())
      return failAt(op, context.error);
    for (unsigned i = 0; i < outs.size(); ++i)
      outs[i].data[operands.offsets[numInputs + i]] = slots[body.results[i]];
    nextPoint(point, plan.ranges, plan.accesses, operands);
  }
  for (auto [result, out] : llvm::zip(op->getResults(), outs))
    setTensor(result, rank, std::move(out), frame);
  return llvm::Error::success();
}

/// Softmax of `count` elements `stride` apart, each step rounded.
static void softmaxLine(Kind kind, const Scalar *in, Scalar *out, int64_t count,
                        int64_t stride) {
  double largest = -HUGE_VAL, sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    double x = in[i * stride].f;
    largest = std::isnan(x) || x > largest ? x : largest;
  }
  for (int64_t i = 0; i < count; ++i) {
    double e = roundTo(kind, in[i * stride].f - largest);
    out[i * stride].f = roundTo(kind, std::exp(e));
    sum = roundTo(kind, sum + out[i * stride].f);
  }
  for (int64_t i = 0; i < count; ++i)
    out[i * stride].f = roundTo(kind, out[i * stride].f / sum);
}

llvm::Error Interpreter::runSoftmax(linalg::SoftmaxOp op, Frame &frame) {
  for (int rank : active) {
    const Tensor &in = tensorIn(op.getInput(), rank, frame);
    Tensor out(in.kind, in.shape);
    if (llvm::Error error = countSteps(op, 4 * in.size()))
      return error;
    int64_t dim = op.getDimension(), stride = in.strides()[dim];
    for (int64_t i = 0; i < in.size(); ++i)
      if ((i / stride) % in.dim(dim) == 0)
        softmaxLine(in.kind, &in.data[i], &out.data[i], in.dim(dim), stride);
    setTensor(op->getResult(0), rank, std::move(out), frame);
  }
  return llvm::Error::success();
}

} // namespace cleave::oracle

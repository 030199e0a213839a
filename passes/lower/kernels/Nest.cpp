//===- Nest.cpp - Linalg ops as strided loop nests ------------------------===//
#include "passes/lower/kernels/Nest.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/AffineExprVisitor.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace cleave::kernels;

Value cleave::kernels::rootOf(Value buffer) {
  while (Operation *op = buffer.getDefiningOp()) {
    auto view = dyn_cast<ViewLikeOpInterface>(op);
    if (!view)
      break;
    buffer = view.getViewSource();
  }
  return buffer;
}

/// Adds `scale * expr` to strides and offset; false where it is not linear.
static bool addLinear(AffineExpr expr, int64_t scale, Access &access) {
  if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    access.strides[dim.getPosition()] += scale;
    return true;
  }
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    access.offset += scale * constant.getValue();
    return true;
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return false;
  if (binary.getKind() == AffineExprKind::Add)
    return addLinear(binary.getLHS(), scale, access) &&
           addLinear(binary.getRHS(), scale, access);
  auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS());
  if (binary.getKind() == AffineExprKind::Mul && factor)
    return addLinear(binary.getLHS(), scale * factor.getValue(), access);
  return false;
}

static std::optional<Access> analyseAccess(Value operand, AffineMap map) {
  Access access;
  access.buffer = operand;
  access.strides.assign(map.getNumDims(), 0);
  auto type = dyn_cast<MemRefType>(operand.getType());
  auto tensor = dyn_cast<RankedTensorType>(operand.getType());
  if (!type && !tensor) {
    access.element = operand.getType();
    return access;
  }
  if (tensor)
    type = MemRefType::get(tensor.getShape(), tensor.getElementType());
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)) ||
      llvm::is_contained(strides, ShapedType::kDynamic) ||
      !type.hasStaticShape())
    return std::nullopt;
  access.root = rootOf(operand);
  access.element = type.getElementType();
  access.dynamicOffset = offset == ShapedType::kDynamic;
  access.offset = access.dynamicOffset ? 0 : offset;
  for (auto [stride, expr] : llvm::zip_equal(strides, map.getResults()))
    if (!addLinear(expr, stride, access))
      return std::nullopt;
  return access;
}

/// Whether each op of the body works on vectors, or is handled by itself.
static bool bodyIsVectorisable(Block &body) {
  for (Operation &op : body.without_terminator()) {
    if (isa<linalg::IndexOp, arith::ConstantOp>(op))
      continue;
    if (auto load = dyn_cast<memref::LoadOp>(op)) {
      SmallVector<int64_t> strides;
      int64_t offset;
      if (failed(load.getMemRefType().getStridesAndOffset(strides, offset)) ||
          load.getType().isInteger(1))
        return false;
      continue;
    }
    if (op.getNumRegions() || op.getNumResults() != 1 ||
        !op.hasTrait<OpTrait::Elementwise>() ||
        !op.hasTrait<OpTrait::Vectorizable>() ||
        !op.getResult(0).getType().isIntOrIndexOrFloat())
      return false;
  }
  return true;
}

std::optional<Nest> cleave::kernels::analyse(linalg::LinalgOp op) {
  if (!op.hasPureBufferSemantics())
    return std::nullopt;
  return analyseTensors(op);
}

std::optional<Nest> cleave::kernels::analyseTensors(linalg::LinalgOp op) {
  if (op->getNumRegions() != 1 || !bodyIsVectorisable(*op.getBlock()))
    return std::nullopt;
  Nest nest;
  nest.op = op;
  nest.sizes = op.getStaticLoopRanges();
  if (llvm::is_contained(nest.sizes, ShapedType::kDynamic) ||
      llvm::is_contained(nest.sizes, 0))
    return std::nullopt;
  for (utils::IteratorType type : op.getIteratorTypesArray())
    nest.parallel.push_back(type == utils::IteratorType::parallel);
  for (auto [operand, map] :
       llvm::zip_equal(op->getOperands(), op.getIndexingMapsArray())) {
    std::optional<Access> access = analyseAccess(operand, map);
    if (!access)
      return std::nullopt;
    nest.accesses.push_back(*access);
  }
  nest.fills.assign(op.getNumDpsInits(), Value());
  nest.indexed.assign(nest.sizes.size(), false);
  op.getBlock()->walk(
      [&](linalg::IndexOp index) { nest.indexed[index.getDim()] = true; });
  return nest;
}

static bool isReductionOp(Operation *op) {
  return isa<arith::AddFOp, arith::AddIOp, arith::MulFOp, arith::MulIOp,
             arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp,
             arith::MinNumFOp, arith::MaxSIOp, arith::MinSIOp, arith::MaxUIOp,
             arith::MinUIOp, arith::AndIOp, arith::OrIOp, arith::XOrIOp>(op);
}

std::optional<Combiner> Nest::combiner(unsigned i) const {
  Block &block = body();
  BlockArgument carried = block.getArgument(numInputs() + i);
  Value yielded = block.getTerminator()->getOperand(i);
  Operation *join = yielded.getDefiningOp();
  if (!join || join->getBlock() != &block || !isReductionOp(join) ||
      !carried.hasOneUse() || *carried.getUsers().begin() != join ||
      !yielded.hasOneUse())
    return std::nullopt;
  Value other = join->getOperand(join->getOperand(0) == carried ? 1 : 0);
  return other == carried ? std::nullopt : std::optional(Combiner{join, other});
}

int64_t cleave::kernels::registerBytes(Type element) {
  if (element.isIndex())
    return 8;
  int64_t bytes = llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
  return isa<FloatType>(element) ? std::max<int64_t>(bytes, 4) : bytes;
}

bool cleave::kernels::sameAccess(const Access &a, const Access &b) {
  return a.root == b.root && a.offset == b.offset &&
         (!a.dynamicOffset && !b.dynamicOffset) && a.strides == b.strides;
}

//===- Reductions.cpp - Kinds of reductions and their neutral elements ----===//
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "passes/propagate/Rules.h"

using namespace mlir;

namespace cleave {

std::optional<ReductionKind> combinerKind(Operation *op) {
  using Result = std::optional<ReductionKind>;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case<arith::AddFOp, arith::AddIOp>(
          [](auto) { return ReductionKind::Sum; })
      .Case<arith::MulFOp, arith::MulIOp>(
          [](auto) { return ReductionKind::Prod; })
      .Case<arith::MaximumFOp, arith::MaxSIOp>(
          [](auto) { return ReductionKind::Max; })
      .Case<arith::MinimumFOp, arith::MinSIOp>(
          [](auto) { return ReductionKind::Min; })
      .Case<arith::MaxUIOp>([](auto) { return ReductionKind::UMax; })
      .Case<arith::MinUIOp>([](auto) { return ReductionKind::UMin; })
      .Case<arith::MaxNumFOp>([](auto) { return ReductionKind::MaxNum; })
      .Case<arith::MinNumFOp>([](auto) { return ReductionKind::MinNum; })
      .Case<arith::AndIOp>([](auto) { return ReductionKind::And; })
      .Case<arith::OrIOp>([](auto) { return ReductionKind::Or; })
      .Case<arith::XOrIOp>([](auto) { return ReductionKind::Xor; })
      .Default([](Operation *) { return std::nullopt; });
}

static TypedAttr neutralFloat(ReductionKind kind, FloatType type) {
  const llvm::fltSemantics &semantics = type.getFloatSemantics();
  switch (kind) {
  case ReductionKind::Sum:
    return FloatAttr::get(type, APFloat::getZero(semantics));
  case ReductionKind::Prod:
    return FloatAttr::get(type, APFloat::getOne(semantics));
  case ReductionKind::Max:
    return FloatAttr::get(type, APFloat::getInf(semantics, /*Negative=*/true));
  case ReductionKind::Min:
    return FloatAttr::get(type, APFloat::getInf(semantics));
  case ReductionKind::MaxNum:
  case ReductionKind::MinNum:
    return FloatAttr::get(type, APFloat::getNaN(semantics));
  default:
    // Bitwise and unsigned reductions are for integers.
    return nullptr;
  }
}

TypedAttr neutralElement(ReductionKind kind, Type elementType,
                         Builder &builder) {
  if (auto type = dyn_cast<FloatType>(elementType))
    return neutralFloat(kind, type);
  unsigned width =
      elementType.isIndex() ? 64 : elementType.getIntOrFloatBitWidth();
  auto get = [&](const APInt &value) {
    return builder.getIntegerAttr(elementType, value);
  };
  switch (kind) {
  case ReductionKind::Prod:
    return get(APInt(width, 1));
  case ReductionKind::Max:
    return get(APInt::getSignedMinValue(width));
  case ReductionKind::Min:
    return get(APInt::getSignedMaxValue(width));
  case ReductionKind::UMin:
  case ReductionKind::And:
    return get(APInt::getAllOnes(width));
  case ReductionKind::MaxNum:
  case ReductionKind::MinNum:
    // For floats.
    return nullptr;
  default:
    return get(APInt::getZero(width));
  }
}

bool isSplatOf(Value tensor, TypedAttr element) {
  Operation *op = tensor.getDefiningOp();
  if (!op || !element)
    return false;
  Value scalar;
  if (auto fill = dyn_cast<linalg::FillOp>(op))
    scalar = fill.getInputs()[0];
  else if (auto splat = dyn_cast<tensor::SplatOp>(op))
    scalar = splat.getInput();
  if (scalar) {
    TypedAttr constant;
    return matchPattern(scalar, m_Constant(&constant)) && constant == element;
  }
  DenseElementsAttr dense;
  if (!matchPattern(tensor, m_Constant(&dense)) || !dense.isSplat())
    return false;
  if (auto floats = dyn_cast<FloatAttr>(element))
    return dense.getSplatValue<FloatAttr>() == floats;
  return dense.getSplatValue<IntegerAttr>() == element;
}

Value keepOnlyFirst(OpBuilder &builder, Location loc, Value tensor,
                    ReductionKind kind, Value coordinate) {
  auto type = cast<RankedTensorType>(tensor.getType());
  TypedAttr neutral = neutralElement(kind, type.getElementType(), builder);
  if (isSplatOf(tensor, neutral))
    return tensor;
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  Value isFirst = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::eq,
                                        coordinate, zero);
  Value fallback = arith::ConstantOp::create(builder, loc, neutral);
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                        type.getElementType());
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> iterators(type.getRank(),
                                             utils::IteratorType::parallel);
  auto generic = linalg::GenericOp::create(
      builder, loc, type, tensor, empty, ArrayRef{identity, identity},
      iterators, [&](OpBuilder &b, Location bodyLoc, ValueRange args) {
        Value chosen =
            arith::SelectOp::create(b, bodyLoc, isFirst, args[0], fallback);
        linalg::YieldOp::create(b, bodyLoc, chosen);
      });
  return generic.getResult(0);
}

} // namespace cleave

//===- EmitNodes.cpp - Nodes as linalg and tensor ops ---------------------===//
#include "dsl/Emit.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <limits>

using namespace mlir;

namespace cleave::dsl {

RankedTensorType NodeEmitter::typeOf(const Node *node) {
  SmallVector<int64_t> shape;
  for (const DimSize &dim : node->shape)
    shape.push_back(dim.size);
  return RankedTensorType::get(shape, elementType(b, node->type));
}

Value NodeEmitter::empty(RankedTensorType type) {
  return tensor::EmptyOp::create(b, loc, type.getShape(),
                                 type.getElementType());
}

Value NodeEmitter::filled(RankedTensorType type, TypedAttr value) {
  Value scalar = arith::ConstantOp::create(b, loc, value);
  return linalg::FillOp::create(b, loc, scalar, empty(type)).getResult(0);
}

AffineMap NodeEmitter::mapOf(const Shape &tensor, const Shape &loops) {
  SmallVector<AffineExpr> results;
  for (const DimSize &dim : tensor)
    results.push_back(b.getAffineDimExpr(find(loops, dim.name) - loops.data()));
  return AffineMap::get(loops.size(), 0, results, b.getContext());
}

Value NodeEmitter::emit(const Node *node, Location location) {
  named = location;
  auto name = dyn_cast<NameLoc>(location);
  loc = name ? name.getChildLoc() : location;
  switch (node->kind) {
  case Kind::Map:
    return map(node);
  case Kind::Reduce:
    return reduce(node);
  case Kind::Dot:
    return dot(node);
  case Kind::Rename:
    return value(node->operands[0]);
  case Kind::Reshape:
    return reshape(node);
  case Kind::Slice:
    return slice(node);
  case Kind::Pad:
    return pad(node);
  case Kind::Concat:
    return concat(node);
  case Kind::Update:
    return update(node);
  case Kind::ArgMax:
    return argMax(node);
  case Kind::TopK:
    return topK(node);
  case Kind::Pick:
    return node->index == 0 ? value(node->operands[0])
                            : seconds.at(node->operands[0]);
  case Kind::AtTurn:
    return atTurn(node);
  case Kind::PutTurn:
    return putTurn(node);
  case Kind::Input:
  case Kind::Weight:
  case Kind::State:
  case Kind::Carried:
  case Kind::Loop:
    break;
  }
  llvm_unreachable("arguments of functions and of loops are there already");
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

Value NodeEmitter::generic(
    const Node *node, Value init,
    function_ref<Value(OpBuilder &, Location, Value, Value)> combine) {
  const Fused &fused = functions.fused(node);
  Shape loops = loopsOf(*node);
  // Operands of which a body reads any element stand outside of the loops.
  std::vector<bool> isLooped(fused.operands.size(), false);
  for (const Step &step : fused.body.steps)
    if (step.fn == Fn::Argument)
      isLooped[step.a] = true;
  SmallVector<Value> inputs, tensors;
  SmallVector<AffineMap> maps;
  SmallVector<int> places;
  for (auto [operand, looped] : llvm::zip(fused.operands, isLooped)) {
    tensors.push_back(value(operand));
    places.push_back(looped ? static_cast<int>(inputs.size()) : -1);
    if (!looped)
      continue;
    inputs.push_back(value(operand));
    maps.push_back(mapOf(operand->shape, loops));
  }
  maps.push_back(mapOf(node->shape, loops));
  SmallVector<utils::IteratorType> iterators;
  for (const DimSize &dim : loops)
    iterators.push_back(find(node->shape, dim.name)
                            ? utils::IteratorType::parallel
                            : utils::IteratorType::reduction);
  auto op = linalg::GenericOp::create(
      b, named, init.getType(), inputs, init, maps, iterators,
      [&](OpBuilder &inner, Location, ValueRange args) {
        Location bodyLoc = loc;
        SmallVector<Value> arguments;
        for (int place : places)
          arguments.push_back(place < 0 ? Value() : args[place]);
        Value element =
            emitBody(inner, bodyLoc, fused.body, arguments, tensors, loops);
        linalg::YieldOp::create(inner, bodyLoc,
                                combine(inner, bodyLoc, element, args.back()));
      });
  return op.getResult(0);
}

Value NodeEmitter::map(const Node *node) {
  const Fused &fused = functions.fused(node);
  if (fused.body.steps.size() == 1 && fused.body.steps[0].fn == Fn::Constant) {
    TypedAttr scalar = constantOf(b, node->type, fused.body.steps[0].number);
    return arith::ConstantOp::create(
        b, named, DenseElementsAttr::get(typeOf(node), Attribute(scalar)));
  }
  return generic(
      node, empty(typeOf(node)),
      [](OpBuilder &, Location, Value element, Value) { return element; });
}

Value NodeEmitter::reduce(const Node *node) {
  Value init = filled(typeOf(node),
                      constantOf(b, node->type, neutralOf(node->reduction)));
  return generic(
      node, init,
      [&](OpBuilder &inner, Location bodyLoc, Value element, Value current) {
        return emitCombiner(inner, bodyLoc, node->reduction, node->type,
                            element, current);
      });
}

Value NodeEmitter::dot(const Node *node) {
  const Node *left = node->operands[0], *right = node->operands[1];
  Shape loops = node->shape;
  for (const std::string &name : node->over)
    loops.push_back(*find(left->shape, name));
  Value init = filled(typeOf(node), constantOf(b, node->type, 0));
  AffineMap maps[] = {mapOf(left->shape, loops), mapOf(right->shape, loops),
                      mapOf(node->shape, loops)};
  return linalg::ContractOp::create(b, named, init.getType(),
                                    {value(left), value(right)}, init,
                                    b.getAffineMapArrayAttr(maps))
      .getResult(0);
}

//===----------------------------------------------------------------------===//
// Moves
//===----------------------------------------------------------------------===//

Value NodeEmitter::reshape(const Node *node) {
  const Node *from = node->operands[0];
  const Shape &a = from->shape, &z = node->shape;
  if (a.size() == z.size())
    return value(from);
  // Equal dims at both ends, and between them one on one side.
  size_t head = 0, tail = 0, least = std::min(a.size(), z.size());
  while (head < least && a[head] == z[head])
    ++head;
  while (tail + head < least &&
         a[a.size() - 1 - tail] == z[z.size() - 1 - tail])
    ++tail;
  bool expands = z.size() > a.size();
  size_t most = std::max(a.size(), z.size());
  // At least one dim stands for the many.
  if (head + tail == least)
    tail > 0 ? --tail : --head;
  SmallVector<ReassociationIndices> groups;
  for (size_t i = 0; i < most; ++i) {
    bool inMiddle = i > head && i < most - tail;
    if (!inMiddle)
      groups.emplace_back();
    groups.back().push_back(static_cast<int64_t>(i));
  }
  if (expands)
    return tensor::ExpandShapeOp::create(b, named, typeOf(node), value(from),
                                         groups);
  return tensor::CollapseShapeOp::create(b, named, typeOf(node), value(from),
                                         groups);
}

OpFoldResult NodeEmitter::position(const Node *node, int64_t most) {
  Value scalar = tensor::ExtractOp::create(b, loc, value(node), ValueRange());
  Value index = arith::IndexCastOp::create(b, loc, b.getIndexType(), scalar);
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value last = arith::ConstantIndexOp::create(b, loc, most);
  Value low = arith::MaxSIOp::create(b, loc, index, zero);
  return arith::MinSIOp::create(b, loc, low, last).getResult();
}

Value NodeEmitter::slice(const Node *node) {
  const Node *from = node->operands[0];
  int64_t rank = node->shape.size(), size = node->shape[node->axis].size;
  SmallVector<OpFoldResult> offsets(rank, b.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(rank, b.getIndexAttr(1));
  SmallVector<OpFoldResult> sizes =
      getAsIndexOpFoldResult(b.getContext(), typeOf(node).getShape());
  strides[node->axis] = b.getIndexAttr(node->stride);
  offsets[node->axis] =
      node->operands.size() == 1
          ? OpFoldResult(b.getIndexAttr(node->begin))
          : position(node->operands[1], from->shape[node->axis].size - size);
  return tensor::ExtractSliceOp::create(b, named, typeOf(node), value(from),
                                        offsets, sizes, strides);
}

Value NodeEmitter::pad(const Node *node) {
  const Node *from = node->operands[0];
  int64_t rank = node->shape.size();
  SmallVector<OpFoldResult> low(rank, b.getIndexAttr(0)), high = low;
  low[node->axis] = b.getIndexAttr(node->begin);
  high[node->axis] = b.getIndexAttr(node->shape[node->axis].size - node->begin -
                                    from->shape[node->axis].size);
  Value fill =
      arith::ConstantOp::create(b, loc, constantOf(b, node->type, node->fill));
  return tensor::PadOp::create(b, named, typeOf(node), value(from), low, high,
                               fill);
}

Value NodeEmitter::concat(const Node *node) {
  SmallVector<Value> parts;
  for (const Node *operand : node->operands)
    parts.push_back(value(operand));
  return tensor::ConcatOp::create(b, named, typeOf(node), node->axis, parts);
}

Value NodeEmitter::update(const Node *node) {
  const Node *fresh = node->operands[1];
  int64_t rank = node->shape.size();
  SmallVector<OpFoldResult> offsets(rank, b.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(rank, b.getIndexAttr(1));
  SmallVector<OpFoldResult> sizes =
      getAsIndexOpFoldResult(b.getContext(), typeOf(fresh).getShape());
  int64_t room = node->shape[node->axis].size - fresh->shape[node->axis].size;
  offsets[node->axis] = position(node->operands[2], room);
  return tensor::InsertSliceOp::create(b, named, value(fresh),
                                       value(node->operands[0]), offsets, sizes,
                                       strides);
}

//===----------------------------------------------------------------------===//
// Loops of the program
//===----------------------------------------------------------------------===//

/// Where a turn's part lies among those of all turns.
struct TurnPlace {
  SmallVector<OpFoldResult> offsets, sizes, strides;
  TurnPlace(OpBuilder &b, RankedTensorType stack, Value turn) {
    int64_t rank = stack.getRank();
    offsets.assign(rank, b.getIndexAttr(0));
    strides.assign(rank, b.getIndexAttr(1));
    sizes = getAsIndexOpFoldResult(b.getContext(), stack.getShape());
    offsets[0] = turn;
    sizes[0] = b.getIndexAttr(1);
  }
};

Value NodeEmitter::atTurn(const Node *node) {
  const Node *stack = node->operands[0];
  TurnPlace place(b, typeOf(stack), turns.at(node->region));
  return tensor::ExtractSliceOp::create(b, named, typeOf(node), value(stack),
                                        place.offsets, place.sizes,
                                        place.strides);
}

Value NodeEmitter::putTurn(const Node *node) {
  TurnPlace place(b, typeOf(node), turns.at(node->region));
  return tensor::InsertSliceOp::create(b, named, value(node->operands[1]),
                                       value(node->operands[0]), place.offsets,
                                       place.sizes, place.strides);
}

} // namespace cleave::dsl

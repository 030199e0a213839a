//===- EmitSearch.cpp - argmax and top_k ----------------------------------===//
// Reductions of two results, a value and its index. A generic op that carries
// both keeps the order of its loops, so of equal elements the first is found.
// top_k searches k times: each time for the largest that comes after the last
// one found, in the order of values and then of indices.
//===----------------------------------------------------------------------===//
#include "dsl/Emit.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <limits>

using namespace mlir;

namespace cleave::dsl {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The comparisons of one element with the best so far.
struct Compare {
  OpBuilder &b;
  Location loc;
  bool isFloat;

  Value greater(Value x, Value y) {
    if (isFloat)
      return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, x, y);
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, x, y);
  }
  Value equal(Value x, Value y) {
    if (isFloat)
      return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ, x, y);
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, x, y);
  }
  Value indexGreater(Value x, Value y) {
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sgt, x, y);
  }
  /// The index of a loop as i32.
  Value index(unsigned loop) {
    Value at = linalg::IndexOp::create(b, loc, static_cast<int64_t>(loop));
    return arith::IndexCastOp::create(b, loc, b.getI32Type(), at);
  }
};

SmallVector<utils::IteratorType> iteratorsOf(const Shape &loops,
                                             const std::string &over) {
  SmallVector<utils::IteratorType> iterators;
  for (const DimSize &dim : loops)
    iterators.push_back(dim.name == over ? utils::IteratorType::reduction
                                         : utils::IteratorType::parallel);
  return iterators;
}

} // namespace

Value NodeEmitter::argMax(const Node *node) {
  const Node *from = node->operands[0];
  const Shape &loops = from->shape;
  unsigned along = find(loops, node->over[0]) - loops.data();
  RankedTensorType indexType = typeOf(node);
  auto valueType =
      RankedTensorType::get(indexType.getShape(), elementType(b, from->type));
  Value inits[] = {filled(valueType, constantOf(b, from->type, -kInfinity)),
                   filled(indexType, constantOf(b, i32, 0))};
  AffineMap rows = mapOf(node->shape, loops);
  auto op = linalg::GenericOp::create(
      b, named, TypeRange{valueType, indexType}, value(from), inits,
      {mapOf(loops, loops), rows, rows}, iteratorsOf(loops, node->over[0]),
      [&](OpBuilder &inner, Location, ValueRange args) {
        Location bodyLoc = loc;
        Compare compare{inner, bodyLoc, isFloat(from->type)};
        Value better = compare.greater(args[0], args[1]);
        Value best =
            arith::SelectOp::create(inner, bodyLoc, better, args[0], args[1]);
        Value at = arith::SelectOp::create(inner, bodyLoc, better,
                                           compare.index(along), args[2]);
        linalg::YieldOp::create(inner, bodyLoc, ValueRange{best, at});
      });
  return op.getResult(1);
}

namespace {

/// One search of top_k: operands are an element, and the value and index that
/// were found last; results are the best value and index of this search.
void searchBody(OpBuilder &b, Location loc, ValueRange args, unsigned along) {
  Compare compare{b, loc, true};
  Value element = args[0], last = args[1], lastAt = args[2];
  Value best = args[3], bestAt = args[4];
  Value at = compare.index(along);
  Value isBelow = compare.greater(last, element);
  Value isBehind = arith::AndIOp::create(b, loc, compare.equal(element, last),
                                         compare.indexGreater(at, lastAt));
  Value isNext = arith::OrIOp::create(b, loc, isBelow, isBehind);
  Value zero = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(0));
  Value isFirst = compare.indexGreater(zero, bestAt);
  Value isBetter =
      arith::OrIOp::create(b, loc, compare.greater(element, best), isFirst);
  Value takes = arith::AndIOp::create(b, loc, isNext, isBetter);
  Value results[] = {arith::SelectOp::create(b, loc, takes, element, best),
                     arith::SelectOp::create(b, loc, takes, at, bestAt)};
  linalg::YieldOp::create(b, loc, results);
}

/// `row` as the i-th of the last dim of `all`.
Value insertAt(OpBuilder &b, Location loc, Value row, Value all, Value i) {
  auto type = cast<RankedTensorType>(all.getType());
  int64_t rank = type.getRank();
  SmallVector<OpFoldResult> offsets(rank, b.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(rank, b.getIndexAttr(1));
  SmallVector<OpFoldResult> sizes =
      getAsIndexOpFoldResult(b.getContext(), type.getShape());
  offsets[rank - 1] = i;
  sizes[rank - 1] = b.getIndexAttr(1);
  return tensor::InsertSliceOp::create(b, loc, row, all, offsets, sizes,
                                       strides);
}

} // namespace

Value NodeEmitter::topK(const Node *node) {
  const Node *from = node->operands[0];
  const Shape &loops = from->shape;
  unsigned along = loops.size() - 1;
  Shape rowShape(loops.begin(), loops.end() - 1);
  RankedTensorType valueType = typeOf(node);
  auto indexType = valueType.clone(b.getI32Type());
  auto rowValue = RankedTensorType::get(valueType.getShape().drop_back(),
                                        valueType.getElementType());
  auto rowIndex = rowValue.clone(b.getI32Type());
  AffineMap rows = mapOf(rowShape, loops);
  Value start[] = {empty(valueType), empty(indexType),
                   filled(rowValue, constantOf(b, node->type, kInfinity)),
                   filled(rowIndex, constantOf(b, i32, -1))};
  Value lowest = filled(rowValue, constantOf(b, node->type, -kInfinity));
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  Value k = arith::ConstantIndexOp::create(b, loc, node->shape.back().size);
  Value none = start[3];
  auto loop = scf::ForOp::create(
      b, named, zero, k, one, start,
      [&](OpBuilder &inner, Location, Value i, ValueRange carried) {
        Location at = loc;
        auto search = linalg::GenericOp::create(
            inner, at, TypeRange{rowValue, rowIndex},
            ValueRange{value(from), carried[2], carried[3]},
            ValueRange{lowest, none},
            {mapOf(loops, loops), rows, rows, rows, rows},
            iteratorsOf(loops, loops.back().name),
            [&](OpBuilder &body, Location bodyLoc, ValueRange args) {
              searchBody(body, bodyLoc, args, along);
            });
        Value best = search.getResult(0), bestAt = search.getResult(1);
        Value next[] = {insertAt(inner, at, best, carried[0], i),
                        insertAt(inner, at, bestAt, carried[1], i), best,
                        bestAt};
        scf::YieldOp::create(inner, at, next);
      });
  seconds[node] = loop.getResult(1);
  return loop.getResult(0);
}

} // namespace cleave::dsl

//===- GeneratorMove.cpp - Random ops that move elements ------------------===//
#include "test/oracle/GeneratorImpl.h"
#include <cmath>

using namespace mlir;

namespace cleave::oracle {

bool ProgramGenerator::addTranspose() {
  Bounded *found = pickValue([](const Bounded &v) { return v.rank() > 1; });
  if (!found)
    return false;
  Bounded x = *found;
  llvm::SmallVector<int64_t> order;
  Shape shape;
  for (int64_t i = 0; i < x.rank(); ++i)
    order.push_back(i);
  shuffle(order);
  for (int64_t dim : order)
    shape.push_back(x.shape()[dim]);
  auto op = linalg::TransposeOp::create(b, loc, x.value,
                                        empty(shape, x.element()), order);
  add(op->getResult(0), x.bound);
  return true;
}

bool ProgramGenerator::addBroadcast() {
  Bounded *found = pickValue([](const Bounded &v) { return v.rank() < 4; });
  if (!found)
    return false;
  Bounded x = *found;
  int64_t at = random.below(x.rank() + 1), size = randomSize();
  Shape shape(x.shape());
  shape.insert(shape.begin() + at, size);
  if (!fits(shape))
    return false;
  auto op = linalg::BroadcastOp::create(
      b, loc, x.value, empty(shape, x.element()), llvm::ArrayRef<int64_t>{at});
  add(op->getResult(0), x.bound);
  return true;
}

/// Splits one dim in two or three, or adds dims of size 1.
bool ProgramGenerator::addExpand() {
  Bounded *found = pickValue([](const Bounded &v) { return v.rank() < 4; });
  if (!found)
    return false;
  Bounded x = *found;
  int64_t split = x.rank() == 0 ? 0 : random.below(x.rank());
  Shape shape;
  llvm::SmallVector<ReassociationIndices> groups;
  for (int64_t i = 0; i < x.rank(); ++i) {
    int64_t size = x.shape()[i];
    ReassociationIndices &group = groups.emplace_back();
    int64_t parts = i == split ? random.between(2, 4 - x.rank() + 1) : 1;
    for (int64_t p = 1; p < parts; ++p) {
      llvm::SmallVector<int64_t> divisors;
      for (int64_t d = 1; d <= std::max<int64_t>(size, 3); ++d)
        if (size % d == 0)
          divisors.push_back(d);
      int64_t d = random.pick(divisors);
      group.push_back(shape.size());
      shape.push_back(d);
      size /= d;
    }
    group.push_back(shape.size());
    shape.push_back(size);
  }
  if (x.rank() == 0)
    shape.push_back(1);
  auto type = RankedTensorType::get(shape, x.element());
  add(tensor::ExpandShapeOp::create(b, loc, type, x.value, groups), x.bound);
  return true;
}

bool ProgramGenerator::addCollapse() {
  Bounded *found = pickValue([](const Bounded &v) { return v.rank() > 1; });
  if (!found)
    return false;
  Bounded x = *found;
  int64_t first = random.below(x.rank() - 1);
  int64_t last = random.between(first + 1, x.rank() - 1);
  llvm::SmallVector<ReassociationIndices> groups;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (i <= first || i > last)
      groups.emplace_back();
    groups.back().push_back(i);
  }
  add(tensor::CollapseShapeOp::create(b, loc, x.value, groups), x.bound);
  return true;
}

namespace {
struct Slices {
  llvm::SmallVector<OpFoldResult> offsets, sizes, strides;
  Shape shape;
};
} // namespace

/// MLIR takes no static slice of an empty dim.
static bool hasElements(const Bounded &v) {
  return v.rank() > 0 && numElements(v.shape()) > 0;
}

/// A strided box inside a shape; whole along most dims.
static Slices randomSlices(OpBuilder &b, Random &random,
                           llvm::ArrayRef<int64_t> shape) {
  Slices result;
  for (int64_t size : shape) {
    int64_t offset = 0, stride = 1, count = size;
    if (size > 1 && random.chance(60)) {
      stride = random.chance(30) ? random.between(2, 3) : 1;
      offset = random.between(0, size - 1);
      int64_t most = (size - 1 - offset) / stride + 1;
      count = random.between(1, most);
    }
    result.offsets.push_back(b.getIndexAttr(offset));
    result.sizes.push_back(b.getIndexAttr(count));
    result.strides.push_back(b.getIndexAttr(stride));
    result.shape.push_back(count);
  }
  return result;
}

bool ProgramGenerator::addExtractSlice() {
  Bounded *found = pickValue(hasElements);
  if (!found)
    return false;
  Bounded x = *found;
  Slices slices = randomSlices(b, random, x.shape());
  Shape shape;
  bool dropsUnits = random.chance(25);
  for (int64_t size : slices.shape)
    if (!dropsUnits || size != 1)
      shape.push_back(size);
  auto type = RankedTensorType::get(shape, x.element());
  add(tensor::ExtractSliceOp::create(b, loc, type, x.value, slices.offsets,
                                     slices.sizes, slices.strides),
      x.bound);
  return true;
}

bool ProgramGenerator::addInsertSlice() {
  Bounded *found = pickValue(hasElements);
  if (!found)
    return false;
  Bounded into = *found;
  Slices slices = randomSlices(b, random, into.shape());
  Bounded *same = pickValue([&](const Bounded &v) {
    return v.element() == into.element() &&
           v.shape() == llvm::ArrayRef<int64_t>(slices.shape);
  });
  Bounded part =
      same && random.chance(70) ? *same : fresh(slices.shape, into.element());
  add(tensor::InsertSliceOp::create(b, loc, part.value, into.value,
                                    slices.offsets, slices.sizes,
                                    slices.strides),
      std::fmax(part.bound, into.bound));
  return true;
}

bool ProgramGenerator::addConcat() {
  Bounded *found = pickValue([](const Bounded &v) { return v.rank() > 0; });
  if (!found)
    return false;
  Bounded x = *found;
  int64_t dim = random.below(x.rank());
  Bounded *other = pickValue([&](const Bounded &v) {
    if (v.element() != x.element() || v.rank() != x.rank())
      return false;
    for (int64_t i = 0; i < x.rank(); ++i)
      if (i != dim && v.shape()[i] != x.shape()[i])
        return false;
    return true;
  });
  llvm::SmallVector<Value> parts{x.value, other->value};
  double bound = std::fmax(x.bound, other->bound);
  if (random.chance(40)) {
    Shape shape(x.shape());
    shape[dim] = random.between(1, 3);
    Bounded more = fresh(shape, x.element());
    bound = std::fmax(bound, more.bound);
    parts.insert(parts.begin() + random.below(3), more.value);
  }
  int64_t total = 0;
  for (Value part : parts)
    total += numElements(cast<RankedTensorType>(part.getType()).getShape());
  if (total > options.maxElements)
    return false;
  add(tensor::ConcatOp::create(b, loc, dim, parts), bound);
  return true;
}

bool ProgramGenerator::addPad() {
  Bounded *found = pickValue([](const Bounded &v) { return v.rank() > 0; });
  if (!found)
    return false;
  Bounded x = *found;
  llvm::SmallVector<OpFoldResult> low, high;
  Shape shape(x.shape());
  for (int64_t &size : shape) {
    int64_t before = random.chance(40) ? random.between(0, 4) : 0;
    int64_t after = random.chance(40) ? random.between(0, 4) : 0;
    low.push_back(b.getIndexAttr(before));
    high.push_back(b.getIndexAttr(after));
    size += before + after;
  }
  if (!fits(shape))
    return false;
  double number = random.between(-3, 3);
  Value value = scalar(x.element(), number);
  add(tensor::PadOp::create(b, loc, RankedTensorType::get(shape, x.element()),
                            x.value, low, high, value),
      std::fmax(x.bound, 3));
  return true;
}

/// Rows of a table by ids; the ids are first brought into range, sometimes by
/// an op of their own, whose padding then holds no row number.
bool ProgramGenerator::addEmbedding() {
  Bounded *found = pickValue([](const Bounded &v) { return v.rank() > 0; });
  if (!found || found->rank() > 3 || found->shape()[0] == 0)
    return false;
  Bounded table = *found;
  Type i32 = b.getI32Type();
  int64_t rows = table.shape()[0];
  Bounded *pooled = pickValue([&](const Bounded &v) {
    return v.element() == i32 && v.rank() + table.rank() - 1 <= 4;
  });
  Bounded ids = pooled && random.chance(60)
                    ? *pooled
                    : fresh({random.between(1, 7)}, i32);
  Shape shape(ids.shape());
  llvm::append_range(shape, table.shape().drop_front());
  if (!fits(shape))
    return false;
  auto toRow = [&](Value id) -> Value {
    return arith::RemUIOp::create(b, loc, id, scalar(i32, rows));
  };
  bool apart = random.chance(50);
  if (apart) {
    auto map = b.getMultiDimIdentityMap(ids.rank());
    auto op = generic({ids.value}, {empty(ids.shape(), i32)}, {map, map},
                      llvm::SmallVector<bool>(ids.rank(), false),
                      [&](ValueRange args) -> llvm::SmallVector<Value> {
                        return {toRow(args[0])};
                      });
    ids.value = op.getResult(0);
    add(ids.value, 0);
  }
  int64_t n = shape.size();
  Loops idLoops;
  for (int64_t i = 0; i < ids.rank(); ++i)
    idLoops.push_back(i);
  auto op =
      generic({ids.value}, {empty(shape, table.element())},
              {mapOf(n, idLoops), b.getMultiDimIdentityMap(n)},
              llvm::SmallVector<bool>(n, false),
              [&](ValueRange args) -> llvm::SmallVector<Value> {
                Value row = apart ? args[0] : toRow(args[0]);
                llvm::SmallVector<Value> at{arith::IndexCastUIOp::create(
                    b, loc, b.getIndexType(), row)};
                for (int64_t i = ids.rank(); i < n; ++i)
                  at.push_back(linalg::IndexOp::create(b, loc, i));
                return {tensor::ExtractOp::create(b, loc, table.value, at)};
              });
  add(op.getResult(0), table.bound);
  return true;
}

/// Elements or slices at positions that a constant, or a tensor, gives.
bool ProgramGenerator::addGather() {
  Bounded *found = pickValue(hasElements);
  if (!found)
    return false;
  Bounded source = *found;
  llvm::SmallVector<int64_t> dims;
  for (int64_t i = 0; i < source.rank(); ++i)
    if (dims.empty() ? i + 1 == source.rank() || random.chance(50)
                     : random.chance(25))
      dims.push_back(i);
  Shape batch;
  for (int64_t i = random.below(3); i > 0; --i)
    batch.push_back(random.between(1, 4));
  bool keepsUnits = random.chance(50);
  Shape shape(batch);
  for (int64_t i = 0; i < source.rank(); ++i)
    if (!llvm::is_contained(dims, i))
      shape.push_back(source.shape()[i]);
    else if (keepsUnits)
      shape.push_back(1);
  if (!fits(shape) || shape.size() > 5)
    return false;
  Shape indexShape(batch);
  indexShape.push_back(dims.size());
  Type index = b.getIndexType();
  Value indices;
  if (random.chance(50)) {
    llvm::SmallVector<Attribute> numbers;
    for (int64_t i = 0; i < numElements(indexShape); ++i)
      numbers.push_back(
          b.getIndexAttr(random.below(source.shape()[dims[i % dims.size()]])));
    auto type = RankedTensorType::get(indexShape, index);
    indices = arith::ConstantOp::create(b, loc, type,
                                        DenseElementsAttr::get(type, numbers));
  } else {
    int64_t least = source.shape()[dims.front()];
    for (int64_t dim : dims)
      least = std::min(least, source.shape()[dim]);
    Bounded ids = fresh(indexShape, b.getI32Type());
    auto map = b.getMultiDimIdentityMap(indexShape.size());
    auto op =
        generic({ids.value}, {empty(indexShape, index)}, {map, map},
                llvm::SmallVector<bool>(indexShape.size(), false),
                [&](ValueRange args) -> llvm::SmallVector<Value> {
                  Value row = arith::RemUIOp::create(
                      b, loc, args[0], scalar(b.getI32Type(), least));
                  return {arith::IndexCastUIOp::create(b, loc, index, row)};
                });
    indices = op.getResult(0);
  }
  auto type = RankedTensorType::get(shape, source.element());
  add(tensor::GatherOp::create(b, loc, type, source.value, indices, dims,
                               /*unique=*/false),
      source.bound);
  return true;
}

/// A tensor from its indices, and sometimes from elements of another.
bool ProgramGenerator::addGenerate() {
  Bounded *found = pickValue(hasElements);
  if (!found)
    return false;
  Bounded source = *found;
  Shape shape = randomShape(source.rank());
  Type element = source.element();
  auto type = RankedTensorType::get(shape, element);
  bool mirrors = random.chance(50);
  double other = random.between(-3, 3);
  auto op = tensor::GenerateOp::create(
      b, loc, type, ValueRange(),
      [&](OpBuilder &inner, Location, ValueRange indices) {
        OpBuilder::InsertPoint here = b.saveInsertionPoint();
        b.restoreInsertionPoint(inner.saveInsertionPoint());
        llvm::SmallVector<Value> at;
        for (auto [i, size] : llvm::zip(indices, source.shape())) {
          Value bound = scalar(b.getIndexType(), size);
          Value inside = arith::RemUIOp::create(b, loc, i, bound);
          if (mirrors)
            inside = arith::SubIOp::create(
                b, loc, scalar(b.getIndexType(), size - 1), inside);
          at.push_back(inside);
        }
        Value value = tensor::ExtractOp::create(b, loc, source.value, at);
        Value below = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                            indices.front(), at.back());
        Value result = arith::SelectOp::create(b, loc, below, value,
                                               scalar(element, other));
        tensor::YieldOp::create(b, loc, result);
        b.restoreInsertionPoint(here);
      });
  add(op, std::fmax(source.bound, 3));
  return true;
}

} // namespace cleave::oracle

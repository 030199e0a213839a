//===- NestEmitter.cpp - Scalar and vector code of loop nests -------------===//
// A body is emitted for `width` neighbouring iterations of one loop at a time.
// Values that do not change along it stay scalars until a vector meets them,
// so work that is the same for a whole row is done once.
//===----------------------------------------------------------------------===//
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/IRMapping.h"
#include "passes/lower/kernels/Nest.h"

using namespace mlir;
using namespace cleave::kernels;

Value NestEmitter::index(int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

Value NestEmitter::address(const Access &access, ValueRange ivs) {
  Value sum;
  int64_t offset = access.offset;
  for (auto [stride, iv] : llvm::zip_equal(access.strides, ivs)) {
    if (stride == 0)
      continue;
    if (std::optional<int64_t> known = getConstantIntValue(iv)) {
      offset += stride * *known;
      continue;
    }
    Value term =
        stride == 1 ? iv : arith::MulIOp::create(b, loc, iv, index(stride));
    sum = sum ? arith::AddIOp::create(b, loc, sum, term).getResult() : term;
  }
  if (!sum)
    return index(offset);
  return offset ? arith::AddIOp::create(b, loc, sum, index(offset)).getResult()
                : sum;
}

Value NestEmitter::flat(const Access &access) {
  Value &flat = flats[access.buffer];
  if (flat)
    return flat;
  OpBuilder::InsertionGuard guard(b);
  if (home.isSet())
    b.restoreInsertionPoint(home);
  auto type = cast<MemRefType>(access.buffer.getType());
  // Long enough for every address that the nest forms.
  int64_t length = 1;
  SmallVector<int64_t> strides;
  int64_t offset;
  (void)type.getStridesAndOffset(strides, offset);
  for (auto [size, stride] : llvm::zip_equal(type.getShape(), strides))
    length += (size - 1) * stride;
  if (access.dynamicOffset) {
    auto layout =
        StridedLayoutAttr::get(b.getContext(), ShapedType::kDynamic, {1});
    auto meta = memref::ExtractStridedMetadataOp::create(b, loc, access.buffer);
    flat = memref::ReinterpretCastOp::create(
        b, loc, MemRefType::get({length}, access.element, layout),
        meta.getBaseBuffer(), OpFoldResult(meta.getOffset()),
        ArrayRef<OpFoldResult>{b.getIndexAttr(length)},
        ArrayRef<OpFoldResult>{b.getIndexAttr(1)});
  } else {
    // Address 0 is the begin of the allocation; offsets are in `address`.
    flat = memref::ReinterpretCastOp::create(
        b, loc, MemRefType::get({length + access.offset}, access.element),
        access.buffer, OpFoldResult(b.getIndexAttr(0)),
        ArrayRef<OpFoldResult>{b.getIndexAttr(length + access.offset)},
        ArrayRef<OpFoldResult>{b.getIndexAttr(1)});
  }
  if (access.element.isInteger(1)) {
    // A vector of i1 in memory would be bits; the buffer has one byte each.
    auto flatType = cast<MemRefType>(flat.getType());
    flat = UnrealizedConversionCastOp::create(
               b, loc,
               MemRefType::get(flatType.getShape(), b.getI8Type(),
                               flatType.getLayout()),
               flat)
               .getResult(0);
  }
  return flat;
}

static Type widened(Type element, int64_t width) {
  return width == 1 ? element : Type(VectorType::get({width}, element));
}

Value NestEmitter::broadcast(Value value, int64_t width) {
  if (width == 1 || isa<VectorType>(value.getType()))
    return value;
  return vector::BroadcastOp::create(
      b, loc, VectorType::get({width}, value.getType()), value);
}

Value NestEmitter::load(const Access &access, ValueRange ivs, int loop,
                        int64_t width) {
  if (access.isScalar())
    return access.buffer;
  Value from = flat(access);
  Value at = address(access, ivs);
  int64_t stride = loop < 0 ? 0 : access.strides[loop];
  bool isBool = access.element.isInteger(1);
  Type element = isBool ? b.getI8Type() : access.element;
  Value result;
  if (width == 1 || stride == 0) {
    result = memref::LoadOp::create(b, loc, from, at);
  } else if (stride == 1) {
    result = vector::LoadOp::create(b, loc, VectorType::get({width}, element),
                                    from, at);
  } else {
    SmallVector<Value> elements;
    for (int64_t lane = 0; lane < width; ++lane) {
      Value one = arith::AddIOp::create(b, loc, at, index(lane * stride));
      elements.push_back(memref::LoadOp::create(b, loc, from, one));
    }
    result = vector::FromElementsOp::create(
        b, loc, VectorType::get({width}, element), elements);
  }
  if (!isBool)
    return result;
  Value zero =
      arith::ConstantOp::create(b, loc, b.getZeroAttr(result.getType()));
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, result, zero);
}

void NestEmitter::store(Value value, const Access &access, ValueRange ivs,
                        int loop, int64_t width, bool bypass) {
  Value to = flat(access);
  Value at = address(access, ivs);
  value = broadcast(value, width);
  if (access.element.isInteger(1))
    value =
        arith::ExtUIOp::create(b, loc, widened(b.getI8Type(), width), value);
  int64_t stride = loop < 0 ? 0 : access.strides[loop];
  if (width == 1) {
    memref::StoreOp::create(b, loc, value, to, at);
  } else if (stride == 1) {
    auto store = vector::StoreOp::create(b, loc, value, to, at);
    store.setNontemporal(bypass);
    if (bypass)
      store.setAlignment(width * access.element.getIntOrFloatBitWidth() / 8);
  } else {
    for (int64_t lane = 0; lane < width; ++lane) {
      Value one = arith::AddIOp::create(b, loc, at, index(lane * stride));
      Value element = vector::ExtractOp::create(b, loc, value, lane);
      memref::StoreOp::create(b, loc, element, to, one);
    }
  }
}

/// A load in a body (a gather): one vector where neighbouring iterations read
/// neighbouring elements, a scalar where all read one, else lane by lane.
Value NestEmitter::emitLoad(Operation *op, IRMapping &map, Value laneIndex,
                            Value firstLane, int64_t width) {
  auto load = cast<memref::LoadOp>(op);
  SmallVector<Value> indices;
  bool uniform = true, contiguous = width > 1;
  for (auto [i, original] : llvm::enumerate(load.getIndices())) {
    Value v = map.lookupOrDefault(original);
    indices.push_back(v);
    if (!isa<VectorType>(v.getType()))
      continue;
    uniform = false;
    bool isLast = i + 1 == load.getIndices().size();
    contiguous &= isLast && laneIndex && v == laneIndex;
  }
  Value from = load.getMemRef();
  if (uniform)
    return memref::LoadOp::create(b, loc, from, indices);
  SmallVector<int64_t> strides;
  int64_t offset;
  if (contiguous &&
      succeeded(load.getMemRefType().getStridesAndOffset(strides, offset)) &&
      strides.back() == 1) {
    indices.back() = firstLane;
    return vector::LoadOp::create(
        b, loc, VectorType::get({width}, load.getType()), from, indices);
  }
  SmallVector<Value> elements;
  for (int64_t lane = 0; lane < width; ++lane) {
    SmallVector<Value> at;
    for (Value v : indices)
      at.push_back(isa<VectorType>(v.getType())
                       ? vector::ExtractOp::create(b, loc, v, lane).getResult()
                       : v);
    elements.push_back(memref::LoadOp::create(b, loc, from, at));
  }
  return vector::FromElementsOp::create(
      b, loc, VectorType::get({width}, load.getType()), elements);
}

IRMapping NestEmitter::emitBody(const Nest &nest, ArrayRef<Value> arguments,
                                ValueRange ivs, int loop, int64_t width) {
  IRMapping map;
  Block &block = nest.body();
  for (auto [argument, value] :
       llvm::zip_equal(block.getArguments(), arguments))
    if (value)
      map.map(argument, value);
  Value laneIndex;
  for (Operation &op : block.without_terminator()) {
    if (auto index = dyn_cast<linalg::IndexOp>(op)) {
      Value iv = ivs[index.getDim()];
      if (int(index.getDim()) == loop && width > 1) {
        if (!laneIndex) {
          auto type = VectorType::get({width}, b.getIndexType());
          Value step = vector::StepOp::create(b, loc, type);
          laneIndex = arith::AddIOp::create(b, loc, broadcast(iv, width), step);
        }
        iv = laneIndex;
      }
      map.map(index.getResult(), iv);
      continue;
    }
    // An op whose operands were left out is not needed.
    if (llvm::any_of(op.getOperands(), [&](Value v) {
          auto argument = dyn_cast<BlockArgument>(v);
          bool isLocal = argument ? argument.getOwner() == &block
                                  : v.getDefiningOp()->getBlock() == &block;
          return isLocal && !map.contains(v);
        }))
      continue;
    if (isa<memref::LoadOp>(op)) {
      map.map(op.getResult(0), emitLoad(&op, map, laneIndex,
                                        loop < 0 ? Value() : ivs[loop], width));
      continue;
    }
    bool isVector = llvm::any_of(op.getOperands(), [&](Value v) {
      return isa<VectorType>(map.lookupOrDefault(v).getType());
    });
    if (!isVector) {
      b.clone(op, map);
      continue;
    }
    OperationState state(loc, op.getName());
    for (Value v : op.getOperands())
      state.operands.push_back(broadcast(map.lookupOrDefault(v), width));
    state.types.push_back(VectorType::get({width}, op.getResult(0).getType()));
    state.attributes = llvm::to_vector(op.getAttrs());
    map.map(op.getResult(0), b.create(state)->getResult(0));
  }
  return map;
}

SmallVector<Value> NestEmitter::body(const Nest &nest,
                                     ArrayRef<Value> arguments, ValueRange ivs,
                                     int loop, int64_t width) {
  IRMapping map = emitBody(nest, arguments, ivs, loop, width);
  SmallVector<Value> yields;
  for (Value v : nest.body().getTerminator()->getOperands())
    yields.push_back(map.lookupOrDefault(v));
  return yields;
}

Value NestEmitter::bodyValue(const Nest &nest, Value wanted,
                             ArrayRef<Value> arguments, ValueRange ivs,
                             int loop, int64_t width) {
  return emitBody(nest, arguments, ivs, loop, width).lookupOrDefault(wanted);
}

Value NestEmitter::combine(Operation *combiner, Value x, Value y) {
  OperationState state(loc, combiner->getName());
  state.addOperands({x, y});
  state.addTypes(x.getType());
  state.attributes = llvm::to_vector(combiner->getAttrs());
  Operation *op = b.create(state);
  // Which of two zeros an extremum over many elements is, is left open.
  if (isa<arith::MaximumFOp, arith::MinimumFOp>(op))
    op->setAttr("fastmath", arith::FastMathFlagsAttr::get(
                                b.getContext(), arith::FastMathFlags::nsz));
  return op->getResult(0);
}

Value NestEmitter::reduceLanes(Operation *combiner, Value value) {
  while (auto type = dyn_cast<VectorType>(value.getType())) {
    int64_t width = type.getNumElements();
    if (width == 1)
      return vector::ExtractOp::create(b, loc, value, 0);
    auto half = [&](int64_t from) -> Value {
      return vector::ExtractStridedSliceOp::create(
          b, loc, value, ArrayRef<int64_t>{from}, ArrayRef<int64_t>{width / 2},
          ArrayRef<int64_t>{1});
    };
    value = combine(combiner, half(0), half(width / 2));
  }
  return value;
}

SmallVector<Value> NestEmitter::loop(
    int64_t low, int64_t high, int64_t step, ValueRange carried,
    llvm::function_ref<SmallVector<Value>(Value, ValueRange)> emit) {
  if (high - low <= step)
    return low < high ? emit(index(low), carried) : SmallVector<Value>(carried);
  auto loop =
      scf::ForOp::create(b, loc, index(low), index(high), index(step), carried);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  if (!carried.empty() || loop.getBody()->empty()) {
    SmallVector<Value> next =
        emit(loop.getInductionVar(), loop.getRegionIterArgs());
    scf::YieldOp::create(b, loc, next);
  } else {
    emit(loop.getInductionVar(), {});
  }
  return llvm::to_vector_of<Value>(loop.getResults());
}

//===- TensorOps.cpp - Ops that move elements -----------------------------===//
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "test/oracle/InterpreterImpl.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace cleave::oracle {

/// Element at `index`, or -1 if it lies outside.
static int64_t elementOf(llvm::ArrayRef<int64_t> shape,
                         llvm::ArrayRef<int64_t> index) {
  int64_t element = 0;
  for (auto [at, size] : llvm::zip_equal(index, shape)) {
    if (at < 0 || at >= size)
      return -1;
    element = element * size + at;
  }
  return element;
}

namespace {
/// offsets + index * strides, over all indices below sizes.
struct Window {
  Shape offsets, sizes, strides;

  template <typename Visit>
  bool forEach(llvm::ArrayRef<int64_t> shape, Visit visit) const {
    if (numElements(sizes) == 0)
      return true;
    Shape index(sizes.size(), 0);
    int64_t i = 0;
    do {
      Shape at(sizes.size());
      for (size_t d = 0; d < at.size(); ++d)
        at[d] = offsets[d] + index[d] * strides[d];
      int64_t element = elementOf(shape, at);
      if (element < 0)
        return false;
      visit(element, i++);
    } while (nextIndex(index, sizes));
    return true;
  }
};
} // namespace

/// A copy with another shape.
static Tensor reshaped(const Tensor &tensor, Type type) {
  Tensor result = tensor;
  result.shape.assign(shapeOf(type).begin(), shapeOf(type).end());
  return result;
}

static void concat(tensor::ConcatOp op, llvm::ArrayRef<const Tensor *> inputs,
                   Tensor &result) {
  int64_t at = 0;
  for (const Tensor *input : inputs) {
    Window window{Shape(input->rank(), 0), input->shape,
                  Shape(input->rank(), 1)};
    window.offsets[op.getDim()] = at;
    at += input->dim(op.getDim());
    window.forEach(result.shape, [&](int64_t to, int64_t from) {
      result.data[to] = input->data[from];
    });
  }
}

/// Result dims: those of the indices but the last, then the source's, with or
/// without the gathered ones.
static bool gatherElements(tensor::GatherOp op, const Tensor &source,
                           const Tensor &indices, Tensor &result) {
  llvm::ArrayRef<int64_t> gathered = op.getGatherDims();
  size_t batch = indices.rank() - 1;
  bool keepsUnits =
      result.rank() == static_cast<int64_t>(batch) + source.rank();
  if (result.size() == 0)
    return true;
  Shape index(result.rank(), 0);
  int64_t i = 0;
  do {
    int64_t row = 0;
    for (size_t d = 0; d < batch; ++d)
      row = row * indices.dim(d) + index[d];
    Shape at(source.rank(), 0);
    size_t next = batch;
    for (int64_t d = 0; d < source.rank(); ++d) {
      bool isGathered = llvm::is_contained(gathered, d);
      if (keepsUnits || !isGathered)
        at[d] = index[next++];
    }
    for (auto [k, d] : llvm::enumerate(gathered))
      at[d] = indices.data[row * gathered.size() + k].i;
    int64_t element = elementOf(source.shape, at);
    if (element < 0)
      return false;
    result.data[i++] = source.data[element];
  } while (nextIndex(index, result.shape));
  return true;
}

llvm::Error
Interpreter::runBodyPerElement(Operation *op, Block &block, Tensor &result,
                               int rank, Frame &frame,
                               llvm::function_ref<bool(const Shape &)> where) {
  auto body = bodyOf(op, &block);
  if (!body)
    return body.takeError();
  if (llvm::Error error = countSteps(op, result.size()))
    return error;
  std::vector<Scalar> slots = (*body)->makeSlots();
  llvm::SmallVector<const Tensor *> captured;
  capture(**body, slots, captured, rank, frame);
  Shape index(result.rank(), 0);
  BodyContext context{index, captured, {}};
  for (Scalar &element : result.data) {
    if (where(index)) {
      for (auto [slot, at] : llvm::zip((*body)->arguments, index))
        slots[slot].i = at;
      (*body)->run(slots, context);
      if (!context.error.empty())
        return failAt(op, context.error);
      element = slots[(*body)->results.front()];
    }
    nextIndex(index, result.shape);
  }
  return llvm::Error::success();
}

llvm::Error Interpreter::runTensorOnRank(Operation *op, int rank, Frame &frame,
                                         bool &known) {
  Value out = op->getNumResults() == 1 ? op->getResult(0) : Value();
  auto define = [&](Tensor tensor) -> llvm::Error {
    setTensor(out, rank, std::move(tensor), frame);
    return llvm::Error::success();
  };
  auto emptyOut = [&] {
    auto type = cast<RankedTensorType>(out.getType());
    return Tensor(*Kind::of(type.getElementType()), type.getShape());
  };
  auto outOfBounds = [&]() -> llvm::Error {
    return failAt(op, "goes out of bounds");
  };
  return llvm::TypeSwitch<Operation *, llvm::Error>(op)
      .Case(
          [&](tensor::EmptyOp) { return define(poisonTensor(out.getType())); })
      .Case<tensor::ExpandShapeOp, tensor::CollapseShapeOp, tensor::CastOp>(
          [&](auto reshape) {
            return define(reshaped(
                tensorIn(reshape->getOperand(0), rank, frame), out.getType()));
          })
      .Case([&](tensor::ExtractSliceOp slice) -> llvm::Error {
        const Tensor &source = tensorIn(slice.getSource(), rank, frame);
        Window window{indicesIn(slice.getMixedOffsets(), rank, frame),
                      indicesIn(slice.getMixedSizes(), rank, frame),
                      indicesIn(slice.getMixedStrides(), rank, frame)};
        Tensor result = emptyOut();
        bool inside =
            window.forEach(source.shape, [&](int64_t from, int64_t to) {
              result.data[to] = source.data[from];
            });
        return inside ? define(std::move(result)) : outOfBounds();
      })
      .Case([&](tensor::InsertSliceOp slice) -> llvm::Error {
        const Tensor &source = tensorIn(slice.getSource(), rank, frame);
        Window window{indicesIn(slice.getMixedOffsets(), rank, frame),
                      indicesIn(slice.getMixedSizes(), rank, frame),
                      indicesIn(slice.getMixedStrides(), rank, frame)};
        Tensor result = tensorIn(slice.getDest(), rank, frame);
        bool inside =
            window.forEach(result.shape, [&](int64_t to, int64_t from) {
              result.data[to] = source.data[from];
            });
        return inside ? define(std::move(result)) : outOfBounds();
      })
      .Case([&](tensor::ConcatOp join) -> llvm::Error {
        llvm::SmallVector<const Tensor *> inputs;
        for (Value input : join.getInputs())
          inputs.push_back(&tensorIn(input, rank, frame));
        Tensor result = emptyOut();
        concat(join, inputs, result);
        return define(std::move(result));
      })
      .Case([&](tensor::PadOp pad) -> llvm::Error {
        const Tensor &source = tensorIn(pad.getSource(), rank, frame);
        Shape low = indicesIn(pad.getMixedLowPad(), rank, frame);
        Tensor result = emptyOut();
        auto sourceElement = [&](const Shape &index) {
          Shape at(index);
          for (auto [i, l] : llvm::zip_equal(at, low))
            i -= l;
          return elementOf(source.shape, at);
        };
        Shape index(result.rank(), 0);
        for (Scalar &element : result.data) {
          int64_t from = sourceElement(index);
          if (from >= 0)
            element = source.data[from];
          nextIndex(index, result.shape);
        }
        if (llvm::Error error = runBodyPerElement(
                op, pad.getRegion().front(), result, rank, frame,
                [&](const Shape &at) { return sourceElement(at) < 0; }))
          return error;
        return define(std::move(result));
      })
      .Case([&](tensor::GenerateOp generate) -> llvm::Error {
        Tensor result = emptyOut();
        if (llvm::Error error =
                runBodyPerElement(op, generate.getBody().front(), result, rank,
                                  frame, [](const Shape &) { return true; }))
          return error;
        return define(std::move(result));
      })
      .Case([&](tensor::GatherOp gather) -> llvm::Error {
        Tensor result = emptyOut();
        bool inside =
            gatherElements(gather, tensorIn(gather.getSource(), rank, frame),
                           tensorIn(gather.getIndices(), rank, frame), result);
        return inside ? define(std::move(result)) : outOfBounds();
      })
      .Case([&](tensor::SplatOp splat) -> llvm::Error {
        Tensor result = emptyOut();
        llvm::fill(result.data, frame[splat.getInput()][rank].scalar);
        return define(std::move(result));
      })
      .Case([&](tensor::FromElementsOp from) -> llvm::Error {
        Tensor result = emptyOut();
        for (auto [element, value] : llvm::zip(result.data, from.getElements()))
          element = frame[value][rank].scalar;
        return define(std::move(result));
      })
      .Case([&](tensor::InsertOp insert) -> llvm::Error {
        Tensor result = tensorIn(insert.getDest(), rank, frame);
        Shape at =
            indicesIn(getAsOpFoldResult(insert.getIndices()), rank, frame);
        int64_t element = elementOf(result.shape, at);
        if (element < 0)
          return outOfBounds();
        result.data[element] = frame[insert.getScalar()][rank].scalar;
        return define(std::move(result));
      })
      .Case([&](tensor::ExtractOp extract) -> llvm::Error {
        const Tensor &source = tensorIn(extract.getTensor(), rank, frame);
        Shape at =
            indicesIn(getAsOpFoldResult(extract.getIndices()), rank, frame);
        int64_t element = elementOf(source.shape, at);
        if (element < 0)
          return outOfBounds();
        Scalar value = source.data[element];
        this->define(out, frame)[rank].scalar = value;
        return llvm::Error::success();
      })
      .Case([&](tensor::DimOp dim) -> llvm::Error {
        int64_t index = frame[dim.getIndex()][rank].scalar.i;
        auto shape = shapeOf(dim.getSource().getType());
        if (index < 0 || index >= static_cast<int64_t>(shape.size()))
          return outOfBounds();
        this->define(out, frame)[rank].scalar.i = shape[index];
        return llvm::Error::success();
      })
      .Default([&](Operation *) -> llvm::Error {
        known = false;
        return llvm::Error::success();
      });
}

llvm::Error Interpreter::runTensor(Operation *op, Frame &frame, bool &known) {
  known = isa<tensor::TensorDialect>(op->getDialect());
  if (!known)
    return llvm::Error::success();
  for (int rank : active) {
    if (llvm::Error error = runTensorOnRank(op, rank, frame, known))
      return error;
    if (!known)
      return failAt(op, "the oracle does not know this op");
  }
  return llvm::Error::success();
}

} // namespace cleave::oracle

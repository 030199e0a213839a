//===- RuntimeAbi.cpp - The runtime's functions and structs in IR ---------===//
#include "passes/lower/RuntimeAbi.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace cleave;

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

namespace {
/// The LLVM type of a C type that abi.def may use.
template <typename T> struct TypeOf;
template <> struct TypeOf<void> {
  static Type get(MLIRContext *c) { return LLVM::LLVMVoidType::get(c); }
};
template <> struct TypeOf<int32_t> {
  static Type get(MLIRContext *c) { return IntegerType::get(c, 32); }
};
template <> struct TypeOf<int64_t> {
  static Type get(MLIRContext *c) { return IntegerType::get(c, 64); }
};
template <typename T> struct TypeOf<T *> {
  static Type get(MLIRContext *c) { return LLVM::LLVMPointerType::get(c); }
};
template <typename R, typename... P> struct TypeOf<R(P...)> {
  static LLVM::LLVMFunctionType get(MLIRContext *c) {
    return LLVM::LLVMFunctionType::get(TypeOf<R>::get(c),
                                       {TypeOf<P>::get(c)...});
  }
};
} // namespace

void cleave::declareRuntime(ModuleOp module) {
  OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
  Location loc = UnknownLoc::get(module.getContext());
#define CLEAVE_ABI(name, result, parameters)                                   \
  LLVM::LLVMFuncOp::create(                                                    \
      b, loc, "cleave_rt_" #name,                                              \
      TypeOf<result parameters>::get(module.getContext()));
#include "cleave/abi.def"
}

//===----------------------------------------------------------------------===//
// Structs
//===----------------------------------------------------------------------===//

// The data below lists the fields in order; a new field changes the size.
static_assert(sizeof(CleaveAxisRef) == 3 * 8 && sizeof(CleaveAxes) == 2 * 8);
static_assert(sizeof(CleaveComm) == 4 * 4 + 2 * 16 + 9 * 8 + 8 + 2 * 8);
// Enums of both sides count alike.
static_assert(CLEAVE_XOR == static_cast<int>(ReductionKind::Xor) &&
              CLEAVE_MAXNUM == static_cast<int>(ReductionKind::MaxNum));

std::optional<CleaveDtype> cleave::dtypeOf(Type element) {
  if (element.isF32())
    return CLEAVE_F32;
  if (element.isBF16())
    return CLEAVE_BF16;
  if (element.isF16())
    return CLEAVE_F16;
  if (element.isF64())
    return CLEAVE_F64;
  if (element.isIndex() || element.isInteger(64))
    return CLEAVE_I64;
  if (element.isInteger(32))
    return CLEAVE_I32;
  if (element.isInteger(16))
    return CLEAVE_I16;
  if (element.isInteger(8))
    return CLEAVE_I8;
  if (element.isInteger(1))
    return CLEAVE_I1;
  return std::nullopt;
}

std::string cleave::sourceOf(Location loc) {
  std::string text;
  loc->walk([&](Location inner) {
    auto file = dyn_cast<FileLineColLoc>(inner);
    if (!file)
      return WalkResult::advance();
    text = (file.getFilename().getValue() + ":" + Twine(file.getLine()) + ":" +
            Twine(file.getColumn()))
               .str();
    return WalkResult::interrupt();
  });
  return text;
}

namespace {
/// The varying fields of a CleaveComm.
struct CommFields {
  CleaveCommKind kind = CLEAVE_ALL_REDUCE;
  Type tensor;
  int64_t reduction = 0, swapped = 0;
  AxisList axes, source;
  int64_t outer = 1, dim0 = 1, middle = 1, dim1 = 1, inner = 1;
  int64_t inSize = 0, outSize = 0, offset = 0, stride = 0, peer = 0;
};
} // namespace

static int64_t product(ArrayRef<int64_t> sizes) {
  int64_t result = 1;
  for (int64_t size : sizes)
    result *= size;
  return result;
}

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

/// [outer, dim0, inner] around one dim.
static void splitAround(CommFields &fields, Value input, int64_t dim) {
  ArrayRef<int64_t> shape = shapeOf(input);
  fields.outer = product(shape.take_front(dim));
  fields.dim0 = shape[dim];
  fields.inner = product(shape.drop_front(dim + 1));
}

static void splitAround(CommFields &fields, comm::AllToAllOp op) {
  ArrayRef<int64_t> shape = shapeOf(op.getInput());
  int64_t split = op.getSplitDim(), concat = op.getConcatDim();
  auto [first, second] = std::minmax(split, concat);
  fields.swapped = concat < split;
  fields.outer = product(shape.take_front(first));
  fields.middle = product(shape.slice(first + 1, second - first - 1));
  fields.inner = product(shape.drop_front(second + 1));
  fields.dim0 = shape[split];
  fields.dim1 = shape[concat];
}

static CommFields fieldsOf(Operation *op, const Mesh &mesh) {
  CommFields f;
  auto axes = [&](AxesAttr attr) { return toAxes(mesh, attr); };
  auto numElements = [](Value value) { return product(shapeOf(value)); };
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](comm::AllReduceOp c) {
        f.kind = CLEAVE_ALL_REDUCE;
        f.reduction = static_cast<int64_t>(c.getKind());
        f.dim0 = numElements(c.getInput());
        f.axes = axes(c.getAxes());
      })
      .Case([&](comm::AllGatherOp c) {
        f.kind = CLEAVE_ALL_GATHER;
        splitAround(f, c.getInput(), c.getDim());
        f.axes = axes(c.getAxes());
      })
      .Case([&](comm::ReduceScatterOp c) {
        f.kind = CLEAVE_REDUCE_SCATTER;
        f.reduction = static_cast<int64_t>(c.getKind());
        splitAround(f, c.getInput(), c.getDim());
        f.axes = axes(c.getAxes());
      })
      .Case([&](comm::AllToAllOp c) {
        f.kind = CLEAVE_ALL_TO_ALL;
        splitAround(f, c);
        f.axes = axes(c.getAxes());
      })
      .Case([&](comm::PermuteOp c) {
        f.kind = CLEAVE_PERMUTE;
        f.dim0 = numElements(c.getInput());
        f.axes = axes(c.getAxes());
        f.source = axes(c.getSource());
      })
      .Case([&](comm::RealignOp c) {
        f.kind = CLEAVE_REALIGN;
        splitAround(f, c.getInput(), c.getDim());
        f.dim1 = shapeOf(c.getResult())[c.getDim()];
        f.inSize = c.getInSize();
        f.outSize = c.getOutSize();
        f.offset = c.getOffset();
        f.stride = c.getStride();
        f.axes = axes(c.getAxes());
        f.source = axes(c.getSource());
      })
      .Case([&](comm::SendOp c) {
        f.kind = CLEAVE_SEND;
        f.dim0 = numElements(c.getInput());
        f.peer = c.getDelta();
        f.axes = axes(c.getAxes());
      })
      .Case([&](comm::RecvOp c) {
        f.kind = CLEAVE_RECV;
        f.dim0 = numElements(c.getResult());
        f.peer = c.getDelta();
        f.axes = axes(c.getAxes());
      });
  f.tensor = op->getNumResults() ? op->getResult(0).getType()
                                 : op->getOperand(0).getType();
  return f;
}

/// "all_reduce over 'tp'"; what the runtime says when it waits in vain.
static std::string commName(Operation *op, const Mesh &mesh,
                            ArrayRef<AxisRef> axes) {
  std::string text = op->getName().stripDialect().str() + " over ";
  for (auto [i, ref] : llvm::enumerate(axes)) {
    text += i ? ", '" : "'";
    text += mesh.axes[ref.axis].name;
    if (ref != mesh.whole(ref.axis))
      text += ":(" + std::to_string(ref.pre) + ")" + std::to_string(ref.size);
    text += "'";
  }
  return axes.empty() ? text + "no axes" : text;
}

static std::string commCause(Operation *op) {
  std::string source = sourceOf(op->getLoc());
  auto cause = op->getAttrOfType<comm::CauseAttr>("cause");
  std::string text;
  if (cause && !cause.getValue().empty())
    text = "'" + cause.getValue().str() + "'";
  else if (op->getNumResults())
    text = "'" + valueName(op->getResult(0)) + "'";
  return source.empty() ? text : text + " (" + source + ")";
}

FailureOr<Datum> cleave::commDatum(Operation *op, const Mesh &mesh,
                                   StaticData &data) {
  CommFields f = fieldsOf(op, mesh);
  Type element = cast<RankedTensorType>(f.tensor).getElementType();
  std::optional<CleaveDtype> dtype = dtypeOf(element);
  if (!dtype)
    return op->emitOpError()
           << "moves elements of type " << element
           << "; ranks exchange f32, bf16, f16, f64, i64, i32, i16, i8 and i1";
  using D = Datum;
  return D::record(
      {D::i32(f.kind), D::i32(*dtype), D::i32(f.reduction), D::i32(f.swapped),
       data.axes(f.axes), data.axes(f.source), D::i64(f.outer), D::i64(f.dim0),
       D::i64(f.middle), D::i64(f.dim1), D::i64(f.inner), D::i64(f.inSize),
       D::i64(f.outSize), D::i64(f.offset), D::i64(f.stride), D::i64(f.peer),
       data.string(commName(op, mesh, f.axes)), data.string(commCause(op))});
}

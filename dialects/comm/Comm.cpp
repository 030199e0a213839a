//===- Comm.cpp - Ops and verifiers of the comm dialect -------------------===//
#include "dialects/comm/Comm.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace cleave;

#include "dialects/comm/CommDialect.cpp.inc"
#include "dialects/comm/CommEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/comm/CommAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/comm/CommOps.cpp.inc"

namespace cleave::comm {

void CommDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/comm/CommAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/comm/CommOps.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Verifiers
//===----------------------------------------------------------------------===//

/// C1 of every op: the mesh exists and has the axes. Gives the number of
/// members.
static LogicalResult verifyGroup(Operation *op, FlatSymbolRefAttr name,
                                 AxesAttr axes, int64_t &members) {
  auto emit = [&] { return op->emitOpError(); };
  FailureOr<MeshOp> meshOp = requireMesh(emit, op, name, "in its group");
  if (failed(meshOp))
    return failure();
  Mesh mesh = toMesh(*meshOp);
  AxisList seen;
  if (failed(verifyAxes(emit, mesh, axes.getRefs(), seen)))
    return failure();
  members = axesSize(seen);
  return success();
}

static LogicalResult verifyDim(Operation *op, StringRef what, int64_t dim,
                               RankedTensorType type) {
  if (dim >= 0 && dim < type.getRank())
    return success();
  InFlightDiagnostic diag = op->emitOpError()
                            << "has " << what << " " << dim << ", but " << type;
  if (type.getRank() == 0)
    return diag << " has no dims";
  return diag << " has dims 0 to " << type.getRank() - 1;
}

static LogicalResult verifyKind(Operation *op, Reduction kind, Type type) {
  return verifyReductionKind([&] { return op->emitOpError(); }, toKind(kind),
                             type);
}

/// `large` is `small` with n times as much along `dim`.
static LogicalResult verifyScaled(Operation *op, RankedTensorType small,
                                  RankedTensorType large, int64_t dim,
                                  int64_t n, StringRef largeName) {
  if (failed(verifyDim(op, "dim", dim, small)))
    return failure();
  SmallVector<int64_t> expected(small.getShape());
  if (llvm::MulOverflow(expected[dim], n, expected[dim]))
    return op->emitOpError() << "has " << n << " members with "
                             << small.getDimSize(dim) << " each along dim "
                             << dim << ", which is more than 63 bits can count";
  auto type = RankedTensorType::get(expected, small.getElementType());
  if (large == type)
    return success();
  return op->emitOpError() << "has " << n << " members, so its " << largeName
                           << " must be " << type << ", got " << large;
}

static RankedTensorType tensorOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

LogicalResult AllReduceOp::verifySymbolUses(SymbolTableCollection &) {
  int64_t n;
  // C1
  if (failed(verifyGroup(*this, getMeshAttr(), getAxes(), n)))
    return failure();
  // C2
  return verifyKind(*this, getKind(), tensorOf(getInput()).getElementType());
}

LogicalResult AllGatherOp::verifySymbolUses(SymbolTableCollection &) {
  int64_t n;
  // C1, C2, C3
  if (failed(verifyGroup(*this, getMeshAttr(), getAxes(), n)) ||
      failed(verifyDim(*this, "dim", getDim(), tensorOf(getInput()))))
    return failure();
  return verifyScaled(*this, tensorOf(getInput()), tensorOf(getResult()),
                      getDim(), n, "result");
}

LogicalResult ReduceScatterOp::verifySymbolUses(SymbolTableCollection &) {
  int64_t n;
  // C1, C2, C3, C4
  if (failed(verifyGroup(*this, getMeshAttr(), getAxes(), n)) ||
      failed(verifyDim(*this, "dim", getDim(), tensorOf(getInput()))) ||
      failed(verifyScaled(*this, tensorOf(getResult()), tensorOf(getInput()),
                          getDim(), n, "input")))
    return failure();
  return verifyKind(*this, getKind(), tensorOf(getInput()).getElementType());
}

LogicalResult AllToAllOp::verifySymbolUses(SymbolTableCollection &) {
  int64_t n;
  RankedTensorType input = tensorOf(getInput());
  // C1, C2
  if (failed(verifyGroup(*this, getMeshAttr(), getAxes(), n)) ||
      failed(verifyDim(*this, "split dim", getSplitDim(), input)) ||
      failed(verifyDim(*this, "concat dim", getConcatDim(), input)))
    return failure();
  if (getSplitDim() == getConcatDim())
    return emitOpError() << "splits and concatenates the same dim "
                         << getSplitDim() << "; the two must differ";
  // C3
  if (input.getDimSize(getSplitDim()) % n != 0)
    return emitOpError() << "splits a dim of size "
                         << input.getDimSize(getSplitDim()) << ", which " << n
                         << " members do not divide";
  // C4
  SmallVector<int64_t> shape(input.getShape());
  shape[getSplitDim()] /= n;
  auto split = RankedTensorType::get(shape, input.getElementType());
  return verifyScaled(*this, split, tensorOf(getResult()), getConcatDim(), n,
                      "result");
}

LogicalResult PermuteOp::verifySymbolUses(SymbolTableCollection &) {
  int64_t n, sources;
  // C1
  if (failed(verifyGroup(*this, getMeshAttr(), getAxes(), n)) ||
      failed(verifyGroup(*this, getMeshAttr(), getSource(), sources)))
    return failure();
  // C2
  if (n != sources)
    return emitOpError() << "permutes " << sources << " source members to " << n
                         << "; both must be as many";
  return success();
}

/// n blocks hold `size` indices.
static LogicalResult verifyCovers(Operation *op, StringRef what, int64_t block,
                                  int64_t n, int64_t size) {
  if (size < 0)
    return op->emitOpError() << "has the " << what << " size " << size
                             << ", but sizes start at 0";
  if (size == 0 || (size - 1) / n < block)
    return success();
  return op->emitOpError() << "has " << n << " " << what << " blocks of "
                           << block << ", which do not cover size " << size;
}

LogicalResult RealignOp::verifySymbolUses(SymbolTableCollection &) {
  int64_t n, sources;
  RankedTensorType input = tensorOf(getInput());
  RankedTensorType result = tensorOf(getResult());
  // C1
  if (failed(verifyGroup(*this, getMeshAttr(), getAxes(), n)) ||
      failed(verifyGroup(*this, getMeshAttr(), getSource(), sources)) ||
      failed(verifyDim(*this, "dim", getDim(), input)))
    return failure();
  // C2
  SmallVector<int64_t> expected(input.getShape());
  if (result.getRank() == input.getRank())
    expected[getDim()] = result.getDimSize(getDim());
  if (result != RankedTensorType::get(expected, input.getElementType()))
    return emitOpError() << "turns " << input << " into " << result
                         << ", which differ in more than dim " << getDim();
  // C3
  if (failed(verifyCovers(*this, "input", input.getDimSize(getDim()), sources,
                          getInSize())) ||
      failed(verifyCovers(*this, "result", result.getDimSize(getDim()), n,
                          getOutSize())))
    return failure();
  // C4
  if (static_cast<int64_t>(getStride()) < 1)
    return emitOpError() << "has stride " << static_cast<int64_t>(getStride())
                         << ", but strides start at 1";
  return success();
}

LogicalResult SliceOp::verifySymbolUses(SymbolTableCollection &) {
  int64_t n;
  // C1, C2, C3
  if (failed(verifyGroup(*this, getMeshAttr(), getAxes(), n)) ||
      failed(verifyDim(*this, "dim", getDim(), tensorOf(getInput()))))
    return failure();
  return verifyScaled(*this, tensorOf(getResult()), tensorOf(getInput()),
                      getDim(), n, "input");
}

LogicalResult CoordinateOp::verifySymbolUses(SymbolTableCollection &) {
  int64_t n;
  // C1
  return verifyGroup(*this, getMeshAttr(), getAxes(), n);
}

static LogicalResult verifyTransfer(Operation *op, FlatSymbolRefAttr name,
                                    AxesAttr axes, int64_t delta) {
  int64_t n;
  // C1
  if (failed(verifyGroup(op, name, axes, n)))
    return failure();
  if (axes.getRefs().size() != 1)
    return op->emitOpError() << "goes along " << axes.getRefs().size()
                             << " axes, but a transfer goes along one";
  // C2
  if (n == 1)
    return op->emitOpError() << "goes along an axis of size 1, which has no "
                                "other rank";
  if (delta == 0 || delta >= n || delta <= -n)
    return op->emitOpError()
           << "goes " << delta << " ranks along an axis of " << n
           << "; the distance must lie in 1 to " << n - 1 << ", either way";
  return success();
}

LogicalResult SendOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyTransfer(*this, getMeshAttr(), getAxes(), getDelta());
}

LogicalResult RecvOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyTransfer(*this, getMeshAttr(), getAxes(), getDelta());
}

} // namespace cleave::comm

//===- Comm.cpp - Ops and verifiers of the comm dialect -------------------===//
#include "dialects/comm/Comm.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

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

/// C1 of every op: the mesh exists and has the axes. Gives the mesh and the
/// number of members.
static LogicalResult verifyGroup(Operation *op, FlatSymbolRefAttr name,
                                 AxesAttr axes, Mesh &mesh, int64_t &members) {
  MeshOp meshOp = lookupMesh(op, name);
  if (!meshOp)
    return op->emitOpError() << "names the unknown mesh '" << name.getValue()
                             << "'; declare it with cleave.mesh";
  mesh = toMesh(meshOp);
  AxisList seen;
  if (failed(verifyAxes([&] { return op->emitOpError(); }, mesh,
                        axes.getRefs(), seen)))
    return failure();
  members = axesSize(toAxes(mesh, axes));
  return success();
}

static LogicalResult verifyDim(Operation *op, StringRef what, int64_t dim,
                               RankedTensorType type) {
  if (dim >= 0 && dim < type.getRank())
    return success();
  return op->emitOpError() << "has " << what << " " << dim << ", but " << type
                           << " has dims 0 to " << type.getRank() - 1;
}

static LogicalResult verifyKind(Operation *op, ReductionKind kind, Type type) {
  bool bitwise = kind == ReductionKind::And || kind == ReductionKind::Or ||
                 kind == ReductionKind::Xor || kind == ReductionKind::UMax ||
                 kind == ReductionKind::UMin;
  bool isFloat = isa<FloatType>(type);
  bool number = kind == ReductionKind::MaxNum || kind == ReductionKind::MinNum;
  if ((bitwise && isFloat) || (number && !isFloat))
    return op->emitOpError() << "reduces " << type << " with '"
                             << reductionName(kind) << "', which is for "
                             << (number ? "floats" : "integers");
  return success();
}

/// `large` is `small` with n times as much along `dim`.
static LogicalResult verifyScaled(Operation *op, RankedTensorType small,
                                  RankedTensorType large, int64_t dim,
                                  int64_t n, StringRef largeName) {
  SmallVector<int64_t> expected(small.getShape());
  expected[dim] *= n;
  if (large == RankedTensorType::get(expected, small.getElementType()))
    return success();
  return op->emitOpError() << "has " << n << " members, so its " << largeName
                           << " must be "
                           << RankedTensorType::get(expected,
                                                    small.getElementType())
                           << ", got " << large;
}

static RankedTensorType tensorOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

LogicalResult AllReduceOp::verifySymbolUses(SymbolTableCollection &) {
  Mesh mesh;
  int64_t n;
  // C1
  if (failed(verifyGroup(*this, getMeshAttr(), getAxes(), mesh, n)))
    return failure();
  // C2
  return verifyKind(*this, toKind(getKind()),
                    tensorOf(getInput()).getElementType());
}

LogicalResult AllGatherOp::verifySymbolUses(SymbolTableCollection &) {
  Mesh mesh;
  int64_t n;
  // C1, C2, C3
  if (failed(verifyGroup(*this, getMeshAttr(), getAxes(), mesh, n)) ||
      failed(verifyDim(*this, "dim", getDim(), tensorOf(getInput()))))
    return failure();
  return verifyScaled(*this, tensorOf(getInput()), tensorOf(getResult()),
                      getDim(), n, "result");
}

LogicalResult ReduceScatterOp::verifySymbolUses(SymbolTableCollection &) {
  Mesh mesh;
  int64_t n;
  // C1, C2, C3, C4
  if (failed(verifyGroup(*this, getMeshAttr(), getAxes(), mesh, n)) ||
      failed(verifyDim(*this, "dim", getDim(), tensorOf(getInput()))) ||
      failed(verifyScaled(*this, tensorOf(getResult()), tensorOf(getInput()),
                          getDim(), n, "input")))
    return failure();
  return verifyKind(*this, toKind(getKind()),
                    tensorOf(getInput()).getElementType());
}

LogicalResult AllToAllOp::verifySymbolUses(SymbolTableCollection &) {
  Mesh mesh;
  int64_t n;
  RankedTensorType input = tensorOf(getInput());
  // C1, C2
  if (failed(verifyGroup(*this, getMeshAttr(), getAxes(), mesh, n)) ||
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
  Mesh mesh;
  int64_t n, sources;
  // C1
  if (failed(verifyGroup(*this, getMeshAttr(), getAxes(), mesh, n)) ||
      failed(verifyGroup(*this, getMeshAttr(), getSource(), mesh, sources)))
    return failure();
  // C2
  if (n != sources)
    return emitOpError() << "permutes " << sources << " source members to " << n
                         << "; both must be as many";
  return success();
}

LogicalResult RealignOp::verifySymbolUses(SymbolTableCollection &) {
  Mesh mesh;
  int64_t n, sources;
  RankedTensorType input = tensorOf(getInput());
  RankedTensorType result = tensorOf(getResult());
  // C1
  if (failed(verifyGroup(*this, getMeshAttr(), getAxes(), mesh, n)) ||
      failed(verifyGroup(*this, getMeshAttr(), getSource(), mesh, sources)) ||
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
  if (input.getDimSize(getDim()) * sources < static_cast<int64_t>(getInSize()))
    return emitOpError() << "has " << sources << " input blocks of "
                         << input.getDimSize(getDim())
                         << ", which do not cover size " << getInSize();
  if (result.getDimSize(getDim()) * n < static_cast<int64_t>(getOutSize()))
    return emitOpError() << "has " << n << " result blocks of "
                         << result.getDimSize(getDim())
                         << ", which do not cover size " << getOutSize();
  // C4
  if (static_cast<int64_t>(getStride()) < 1)
    return emitOpError() << "has stride " << static_cast<int64_t>(getStride())
                         << ", but strides start at 1";
  return success();
}

LogicalResult SliceOp::verifySymbolUses(SymbolTableCollection &) {
  Mesh mesh;
  int64_t n;
  // C1, C2, C3
  if (failed(verifyGroup(*this, getMeshAttr(), getAxes(), mesh, n)) ||
      failed(verifyDim(*this, "dim", getDim(), tensorOf(getInput()))))
    return failure();
  return verifyScaled(*this, tensorOf(getResult()), tensorOf(getInput()),
                      getDim(), n, "input");
}

LogicalResult CoordinateOp::verifySymbolUses(SymbolTableCollection &) {
  Mesh mesh;
  int64_t n;
  // C1
  return verifyGroup(*this, getMeshAttr(), getAxes(), mesh, n);
}

static LogicalResult verifyTransfer(Operation *op, FlatSymbolRefAttr name,
                                    AxesAttr axes, int64_t delta) {
  Mesh mesh;
  int64_t n;
  // C1
  if (failed(verifyGroup(op, name, axes, mesh, n)))
    return failure();
  if (axes.getRefs().size() != 1)
    return op->emitOpError() << "goes along " << axes.getRefs().size()
                             << " axes, but a transfer goes along one";
  // C2
  if (delta == 0 || delta >= n || -delta >= n)
    return op->emitOpError() << "goes " << delta << " ranks along an axis of "
                             << n << "; the distance must lie in 1 to "
                             << n - 1 << ", either way";
  return success();
}

LogicalResult SendOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyTransfer(*this, getMeshAttr(), getAxes(), getDelta());
}

LogicalResult RecvOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyTransfer(*this, getMeshAttr(), getAxes(), getDelta());
}

} // namespace cleave::comm

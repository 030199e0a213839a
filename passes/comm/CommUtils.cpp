//===- CommUtils.cpp - What the passes on collectives share ---------------===//
#include "passes/comm/CommUtils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace cleave::comm {

CauseAttr joinCauses(MLIRContext *context, ArrayRef<CauseAttr> causes) {
  llvm::SmallSetVector<StringRef, 4> ops, values, whys, remedies;
  CauseAttr only;
  bool same = true;
  for (CauseAttr cause : causes) {
    if (!cause)
      continue;
    same &= !only || only == cause;
    only = cause;
    ops.insert(cause.getOp());
    values.insert(cause.getValue());
    whys.insert(cause.getWhy());
    remedies.insert(cause.getRemedy());
  }
  if (same)
    return only;
  auto text = [](llvm::SmallSetVector<StringRef, 4> &parts) {
    parts.remove("");
    return llvm::join(parts, "; ");
  };
  return CauseAttr::get(context, text(ops), text(values), text(whys),
                        text(remedies));
}

Mesh meshOf(Operation *op, FlatSymbolRefAttr name) {
  MeshOp mesh = lookupMesh(op, name);
  assert(mesh && "the verifier requires the mesh of a collective");
  return toMesh(mesh);
}

bool isIdempotent(Reduction kind) {
  return kind != Reduction::sum && kind != Reduction::prod &&
         kind != Reduction::Xor;
}

std::optional<TypedAttr> splatOf(Value tensor) {
  Value scalar;
  if (auto fill = tensor.getDefiningOp<linalg::FillOp>())
    scalar = fill.getInputs()[0];
  else if (auto splat = tensor.getDefiningOp<tensor::SplatOp>())
    scalar = splat.getInput();
  TypedAttr constant;
  if (scalar && matchPattern(scalar, m_Constant(&constant)))
    return constant;
  DenseElementsAttr dense;
  if (!scalar && matchPattern(tensor, m_Constant(&dense)) && dense.isSplat())
    return cast<TypedAttr>(dense.getSplatValue<Attribute>());
  return std::nullopt;
}

int64_t blockBytes(Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  Type element = type.getElementType();
  int64_t bits = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  return type.getNumElements() * llvm::divideCeil(bits, 8);
}

} // namespace cleave::comm

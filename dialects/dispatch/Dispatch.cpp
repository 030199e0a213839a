//===- Dispatch.cpp - Ops and verifiers of the dispatch dialect -----------===//
#include "dialects/dispatch/Dispatch.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace cleave;

#include "dialects/dispatch/DispatchDialect.cpp.inc"
#include "dialects/dispatch/DispatchEnums.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/dispatch/DispatchAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/dispatch/DispatchOps.cpp.inc"

namespace cleave::dispatch {

void DispatchDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/dispatch/DispatchAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/dispatch/DispatchOps.cpp.inc"
      >();
}

void CallOp::build(OpBuilder &b, OperationState &state, StringRef callee,
                   ValueRange inputs, ValueRange dests) {
  build(b, state, TypeRange(dests),
        FlatSymbolRefAttr::get(b.getContext(), callee), inputs, dests);
}

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &tables) {
  auto kernel = tables.lookupNearestSymbolFrom<func::FuncOp>(getOperation(),
                                                             getCalleeAttr());
  // C1
  if (!kernel || !kernel->hasAttr(kKernelAttr))
    return emitOpError() << "calls '" << getCallee()
                         << "', which is no kernel; a kernel is a func.func "
                            "with the attribute '"
                         << kKernelAttr << "'";
  // C2
  if (TypeRange(kernel.getArgumentTypes()) != TypeRange(getOperandTypes()))
    return emitOpError() << "does not fit the arguments of kernel '"
                         << getCallee() << "', which are "
                         << kernel.getFunctionType().getInputs();
  // C3
  if (TypeRange(kernel.getResultTypes()) != TypeRange(getResultTypes()))
    return emitOpError() << "does not fit the results of kernel '"
                         << getCallee() << "', which are "
                         << kernel.getFunctionType().getResults();
  return success();
}

} // namespace cleave::dispatch

//===- CommUtils.h - What the passes on collectives share ------*- C++ -*-===//
#ifndef CLEAVE_PASSES_COMM_COMMUTILS_H
#define CLEAVE_PASSES_COMM_COMMUTILS_H

#include "dialects/comm/Comm.h"
#include "mlir/IR/Builders.h"

namespace cleave::comm {

/// One cause that names all of these, each text once: ops "a; b". Null causes
/// are skipped.
CauseAttr joinCauses(mlir::MLIRContext *context,
                     llvm::ArrayRef<CauseAttr> causes);

/// The mesh that `op` communicates over.
Mesh meshOf(mlir::Operation *op, mlir::FlatSymbolRefAttr name);

/// Whether combining a value with itself gives that value: max, and, not sum.
bool isIdempotent(Reduction kind);

/// The value of a tensor all of whose elements are one constant.
std::optional<mlir::TypedAttr> splatOf(mlir::Value tensor);

/// Bytes of one rank's block.
int64_t blockBytes(mlir::Value tensor);

} // namespace cleave::comm

#endif // CLEAVE_PASSES_COMM_COMMUTILS_H

//===- Cleave.h - The cleave dialect ---------------------------*- C++ -*-===//
#ifndef CLEAVE_DIALECTS_CLEAVE_CLEAVE_H
#define CLEAVE_DIALECTS_CLEAVE_CLEAVE_H

#include "dialects/sharding/Sharding.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/cleave/CleaveDialect.h.inc"
#include "dialects/cleave/CleaveEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/cleave/CleaveAttrs.h.inc"
#define GET_OP_CLASSES
#include "dialects/cleave/CleaveOps.h.inc"

namespace cleave {

/// Names of the discardable attributes.
inline constexpr llvm::StringLiteral kShardingAttr = "cleave.sharding";
inline constexpr llvm::StringLiteral kWeightAttr = "cleave.weight";
inline constexpr llvm::StringLiteral kStateAttr = "cleave.state";
/// On arguments and results of partitioned functions: the type of the whole
/// tensor, whose block the argument is, as `cleave.sharding` says.
inline constexpr llvm::StringLiteral kGlobalTypeAttr = "cleave.global_type";

/// The plain mesh behind the attribute; `name` is its symbol.
Mesh toMesh(MeshAttr attr, llvm::StringRef name);
Mesh toMesh(MeshOp op);
/// The same mesh with other axes; null after a diagnostic.
MeshAttr withAxes(llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
                  MeshAttr mesh, llvm::ArrayRef<MeshAxisAttr> axes);
/// The mesh of this name as seen from `op`, or null.
MeshOp lookupMesh(mlir::Operation *op, mlir::FlatSymbolRefAttr name);
/// The same, with an error on `op` that lists the known meshes. `what` ends it:
/// "in the sharding of argument 0".
mlir::FailureOr<MeshOp>
requireMesh(llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
            mlir::Operation *op, mlir::FlatSymbolRefAttr name,
            const llvm::Twine &what);

/// Axes of `mesh`. Asserts that they were verified.
AxisRef toAxisRef(const Mesh &mesh, AxisRefAttr attr);
AxisList toAxes(const Mesh &mesh, AxesAttr attr);
AxesAttr toAxesAttr(mlir::MLIRContext *context, const Mesh &mesh,
                    llvm::ArrayRef<AxisRef> axes);
Sharding toSharding(const Mesh &mesh, ShardingAttr attr);
ShardingAttr toShardingAttr(mlir::MLIRContext *context, const Mesh &mesh,
                            const Sharding &sharding);

/// Checks C1 to C7 of `#cleave.sharding` against a type, seen from `op`.
/// `what` names the value in messages: "argument 0", "result 0".
llvm::LogicalResult
verifySharding(llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
               mlir::Operation *op, ShardingAttr sharding, mlir::Type type,
               const llvm::Twine &what);
/// Checks that every ref is an axis of the mesh and none occurs twice.
llvm::LogicalResult
verifyAxes(llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
           const Mesh &mesh, llvm::ArrayRef<AxisRefAttr> refs, AxisList &seen);

/// Checks that values of this element type can be reduced with `kind`: bitwise
/// and unsigned kinds are for integers, maxnum and minnum for floats.
llvm::LogicalResult
verifyReductionKind(llvm::function_ref<mlir::InFlightDiagnostic()> emitError,
                    ReductionKind kind, mlir::Type elementType);

/// "'tp', 'dp'": names that exist, those most like `wanted` first; "none" if
/// there are none.
std::string listClosestFirst(llvm::StringRef wanted,
                             llvm::ArrayRef<llvm::StringRef> known);

/// The sharding of each result in `op`'s `cleave.sharding`, null where absent.
llvm::SmallVector<ShardingAttr> resultShardings(mlir::Operation *op);

/// `["a", "b":(1)2]` of ops' assembly formats.
mlir::ParseResult parseAxes(mlir::AsmParser &parser, AxesAttr &axes);
void printAxes(mlir::AsmPrinter &printer, AxesAttr axes);
inline void printAxes(mlir::AsmPrinter &printer, mlir::Operation *,
                      AxesAttr axes) {
  printAxes(printer, axes);
}

/// `<@mesh, [...]>`, the sharding without its prefix, before a type. (The
/// prefix can't stand after an operand: MLIR reads `%x #` as a result number.)
mlir::ParseResult parseShardingBody(mlir::AsmParser &parser,
                                    ShardingAttr &sharding);
inline void printShardingBody(mlir::AsmPrinter &printer, mlir::Operation *,
                              ShardingAttr sharding) {
  sharding.print(printer);
}

/// "'%x'" with the name of its location where it has one: how diagnostics and
/// reports name a value. `argN` and `resN` for unnamed ones.
std::string valueName(mlir::Value value);
/// The same, but empty where only its place could name it (which costs a walk
/// of the function).
std::string givenName(mlir::Value value);

} // namespace cleave

#endif // CLEAVE_DIALECTS_CLEAVE_CLEAVE_H

//===- LoadModel.h - From a file to a module -------------------*- C++ -*-===//
#ifndef CLEAVE_DRIVER_LOADMODEL_H
#define CLEAVE_DRIVER_LOADMODEL_H

#include "driver/Options.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace cleave {

/// Reads and parses a model. Results of ops get their names in the text as
/// locations, "%h", where they have no name of their own. Null after a
/// diagnostic.
mlir::OwningOpRef<mlir::ModuleOp> loadModel(mlir::MLIRContext *context,
                                            llvm::StringRef path);

/// Gives axes of the model's mesh other sizes. Diagnoses axes it doesn't have.
mlir::LogicalResult setMeshSizes(mlir::ModuleOp module, const MeshSizes &sizes);

/// Removes the mesh, all shardings and hints: the model for one device.
void removeCut(mlir::ModuleOp module);

/// What SourceMgr-based tools read: the text with
/// `cleave.constraint %x #cleave.sharding<...>` in the form that MLIR's lexer
/// takes (the prefix blanked out; columns stay).
std::string acceptLongConstraints(llvm::StringRef text);

} // namespace cleave

#endif // CLEAVE_DRIVER_LOADMODEL_H

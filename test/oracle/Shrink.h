//===- Shrink.h - Smaller programs that fail alike -------------*- C++ -*-===//
#ifndef CLEAVE_TEST_ORACLE_SHRINK_H
#define CLEAVE_TEST_ORACLE_SHRINK_H

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringRef.h"
#include <functional>
#include <string>

namespace cleave::oracle {

/// Makes a program smaller as long as `stillFails`: drops ops, results,
/// arguments and shardings, makes the mesh and all sizes smaller. Stops after
/// `seconds`.
std::string shrink(mlir::MLIRContext *context, llvm::StringRef text,
                   std::function<bool(llvm::StringRef)> stillFails,
                   double seconds);

} // namespace cleave::oracle

#endif // CLEAVE_TEST_ORACLE_SHRINK_H

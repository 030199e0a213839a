//===- Registration.h - All dialects, models and passes --------*- C++ -*-===//
#ifndef CLEAVE_PASSES_REGISTRATION_H
#define CLEAVE_PASSES_REGISTRATION_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace cleave {

/// The dialects a model or any level of the compiler may use, with the
/// external models of interfaces that Cleave's passes need.
void registerDialects(mlir::DialectRegistry &registry);
/// `registerDialects`, and the passes of Cleave and of MLIR by their names.
void registerEverything(mlir::DialectRegistry &registry);

} // namespace cleave

#endif // CLEAVE_PASSES_REGISTRATION_H

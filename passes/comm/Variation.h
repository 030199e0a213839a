//===- Variation.h - Where ranks hold different values ---------*- C++ -*-===//
#ifndef CLEAVE_PASSES_COMM_VARIATION_H
#define CLEAVE_PASSES_COMM_VARIATION_H

#include "dialects/cleave/Cleave.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallBitVector.h"
#include <optional>

namespace cleave {

/// Along which mesh axes a value of a partitioned program can differ between
/// ranks: coordinates, cut arguments and parts that a rank keeps differ;
/// reductions and gathers make equal. A part of an axis counts as the axis.
class Variation {
public:
  explicit Variation(mlir::ModuleOp module);
  /// Names an axis along which one of the values differs, or is empty.
  std::string differs(mlir::ValueRange values) const;
  /// Whether the ranks that differ in these axes only hold the same value.
  bool isEqualAlong(mlir::Value value, AxesAttr axes) const;
  /// A new value differs where that one does.
  void copy(mlir::Value from, mlir::Value to);

private:
  using Axes = llvm::SmallBitVector;
  Axes of(mlir::Value value) const;
  Axes of(mlir::ValueRange values) const;
  void add(mlir::Value value, const Axes &axes);
  void addAll(mlir::ValueRange values, mlir::ValueRange from);
  void start(mlir::func::FuncOp function);
  void visit(mlir::Operation *op);
  void visitComm(mlir::Operation *op);
  Axes named(AxesAttr axes, bool wholeOnly) const;

  mlir::ModuleOp module;
  Mesh mesh;
  mlir::SymbolTableCollection symbols;
  llvm::DenseMap<mlir::Value, Axes> axesOf;
  bool changed = false;
};

/// Looks at the module when it is asked for the first time.
class LazyVariation {
public:
  explicit LazyVariation(mlir::ModuleOp module) : module(module) {}
  Variation *operator->() {
    if (!made)
      made.emplace(module);
    return &*made;
  }

private:
  mlir::ModuleOp module;
  std::optional<Variation> made;
};

} // namespace cleave

#endif // CLEAVE_PASSES_COMM_VARIATION_H

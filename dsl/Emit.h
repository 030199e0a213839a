//===- Emit.h - From a graph and a plan to a module ------------*- C++ -*-===//
// The only part of the DSL that knows MLIR: the files Emit*.cpp.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DSL_EMIT_H
#define CLEAVE_DSL_EMIT_H

#include "dsl/Functions.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/DenseMap.h"

namespace cleave::dsl {

/// The model with the shardings of the plan, as `cleave` loads it from a file.
/// Null after diagnostics of the context.
mlir::OwningOpRef<mlir::ModuleOp> emitModule(mlir::MLIRContext *context,
                                             const Graph &graph,
                                             const PlanData &plan);

/// Writes the nodes of one function.
class NodeEmitter {
public:
  NodeEmitter(mlir::OpBuilder &builder, const Functions &functions)
      : b(builder), functions(functions) {}

  /// The value of a node at this location.
  mlir::Value emit(const Node *node, mlir::Location location);
  mlir::Value &operator[](const Node *node) { return values[node]; }
  mlir::RankedTensorType typeOf(const Node *node);
  /// Which turn of a loop it is, while its body is written.
  void setTurn(const Region *loop, mlir::Value index) { turns[loop] = index; }

private:
  mlir::Value map(const Node *node);
  mlir::Value reduce(const Node *node);
  mlir::Value dot(const Node *node);
  mlir::Value reshape(const Node *node);
  mlir::Value slice(const Node *node);
  mlir::Value pad(const Node *node);
  mlir::Value concat(const Node *node);
  mlir::Value update(const Node *node);
  mlir::Value atTurn(const Node *node);
  mlir::Value putTurn(const Node *node);
  mlir::Value argMax(const Node *node);
  mlir::Value topK(const Node *node);
  /// A generic op with the node's body; `combine` gets its result and the
  /// current value.
  mlir::Value
  generic(const Node *node, mlir::Value init,
          llvm::function_ref<mlir::Value(mlir::OpBuilder &, mlir::Location,
                                         mlir::Value, mlir::Value)>
              combine);
  /// Where the elements of a tensor lie in a nest of loops.
  mlir::AffineMap mapOf(const Shape &tensor, const Shape &loops);
  mlir::Value empty(mlir::RankedTensorType type);
  mlir::Value filled(mlir::RankedTensorType type, mlir::TypedAttr value);
  /// A position as an index from 0 to `most`.
  mlir::OpFoldResult position(const Node *node, int64_t most);
  mlir::Value value(const Node *node) { return values.at(node); }

  mlir::OpBuilder &b;
  const Functions &functions;
  /// Of the result, with its name; and of what only helps to make it.
  mlir::Location named = b.getUnknownLoc(), loc = b.getUnknownLoc();
  llvm::DenseMap<const Node *, mlir::Value> values;
  llvm::DenseMap<const Region *, mlir::Value> turns;
  /// The second results of top_k.
  llvm::DenseMap<const Node *, mlir::Value> seconds;
};

/// The scalar type of elements.
mlir::Type elementType(mlir::Builder &b, Element type);
/// `value` in the element's type; infinities of integers are their limits.
mlir::TypedAttr constantOf(mlir::Builder &b, Element type, double value);
/// Steps `body` over scalars. `arguments[i]` is the element of operand i,
/// `tensors[i]` all of it; `loops` names the loops.
mlir::Value emitBody(mlir::OpBuilder &b, mlir::Location loc, const Body &body,
                     llvm::ArrayRef<mlir::Value> arguments,
                     llvm::ArrayRef<mlir::Value> tensors, const Shape &loops);
/// The combiner of a reduction.
mlir::Value emitCombiner(mlir::OpBuilder &b, mlir::Location loc,
                         Reduction reduction, Element type, mlir::Value value,
                         mlir::Value current);
double neutralOf(Reduction reduction);

} // namespace cleave::dsl

#endif // CLEAVE_DSL_EMIT_H

//===- ProgramGraph.h - A module as a propagation problem ------*- C++ -*-===//
// Between the IR and the algorithms: numbers the tensors of all functions of a
// module, ties what flows through loops and calls, and writes the shardings
// that were found back as attributes. `cleave explain` reads its decisions.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PASSES_PROPAGATE_PROGRAMGRAPH_H
#define CLEAVE_PASSES_PROPAGATE_PROGRAMGRAPH_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/propagate/SharedMoves.h"
#include "llvm/ADT/DenseMap.h"
#include <map>
#include <vector>

namespace cleave {

/// One tensor of the module: an SSA value, or what a function returns at one
/// place (which may lie elsewhere than the value that is returned). Behind
/// those of the module stand the values that are moved for their readers.
struct GraphValue {
  mlir::Value value;
  mlir::func::FuncOp function;
  unsigned result = 0;
  mlir::RankedTensorType type;
  mlir::Location loc;
  std::string name;
  /// What the user wrote there, if anything.
  bool annotated = false;
};

/// A problem op's place in the IR; `op` is null for ties of loops and calls.
struct GraphOp {
  mlir::Operation *op = nullptr;
  /// Why two values are tied: "loop", "call", "return", "move".
  llvm::StringRef tie;
  mlir::Location loc;
};

class ProgramGraph {
public:
  /// The module's mesh, or one of no axes if it has none. A module that
  /// CheckModel rejects is not accepted.
  static mlir::FailureOr<ProgramGraph> build(mlir::ModuleOp module);

  /// Runs propagation, the placement of reductions, and the search for values
  /// that are moved once for several readers.
  mlir::LogicalResult solve();
  /// Writes `shardings` as attributes, and `moves` as constraints.
  void annotate() const;

  Mesh mesh;
  std::vector<GraphValue> values;
  std::vector<GraphOp> ops;
  PropagationProblem problem;
  PropagationResult result;
  /// Final shardings: closed, with the axes that stay partial.
  std::vector<Sharding> shardings;
  std::vector<SharedMove> moves;

  std::optional<unsigned> find(mlir::Value value) const;

private:
  unsigned add(mlir::Value value, const Sharding *annotation);
  unsigned addReturn(mlir::func::FuncOp function, unsigned index);
  void tie(llvm::ArrayRef<unsigned> from, unsigned to, llvm::StringRef why,
           mlir::Location loc);
  void addTies(mlir::scf::ForOp loop);
  void addOp(mlir::Operation *op);
  void addBlock(mlir::Block &block);
  void addFunction(mlir::func::FuncOp function);
  void addMove(const SharedMove &move);
  bool letsThrough(unsigned op, ReductionKind kind,
                   const llvm::BitVector &partial) const;
  void report(const PartialError &error) const;
  std::vector<unsigned> carriedAs() const;
  mlir::Value constrain(mlir::Value value, unsigned id,
                        const llvm::Twine &because) const;
  void insertConstraints(llvm::ArrayRef<unsigned> carried) const;

  mlir::ModuleOp module;
  llvm::DenseMap<mlir::Value, unsigned> ids;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<unsigned>> returns;
  /// By function and id.
  std::map<std::pair<unsigned, int64_t>, llvm::SmallVector<unsigned, 4>> groups;
  unsigned currentFunction = 0;
  /// How often the current block runs.
  double times = 1;
  /// Weights and states by name.
  std::map<std::string, llvm::SmallVector<unsigned, 4>> bindings;
};

/// Size of an element in bytes: i1 takes one.
int64_t elementBytes(mlir::Type elementType);
/// The mesh that the module's shardings name, if any.
std::optional<Mesh> findMesh(mlir::ModuleOp module);
/// How often the loop runs, if that is known.
std::optional<int64_t> tripCount(mlir::scf::ForOp loop);
/// Whether a tensor op can be made again in any sharding without traffic.
bool isCheap(mlir::Operation *op);
/// The op's rule; for ops that have none, one that needs all tensors whole.
ShardingRule ruleOf(mlir::Operation *op);
/// The rule without the places of operands and results that are no tensors.
ShardingRule tensorsOnly(mlir::Operation *op, ShardingRule rule);
/// Whether the op has a rule of its own.
bool hasRule(mlir::Operation *op);

} // namespace cleave

#endif // CLEAVE_PASSES_PROPAGATE_PROGRAMGRAPH_H

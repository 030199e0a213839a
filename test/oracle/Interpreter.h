//===- Interpreter.h - Models evaluated op by op ---------------*- C++ -*-===//
// Evaluates a function of a module from the definitions of its ops, one scalar
// after the other. It shares no code with the compiler's lowering and knows two
// levels: the model on whole tensors, and the partitioned program, where all
// ranks run in lock-step and each value is one block per rank.
//
// What a program must not depend on is poison: `tensor.empty`, the padding of
// blocks, what a rank receives from nobody. Reading out of bounds, dividing
// integers by zero, and communication that not all of its group reach are
// errors. The hints of the cleave dialect do nothing.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_TEST_ORACLE_INTERPRETER_H
#define CLEAVE_TEST_ORACLE_INTERPRETER_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "test/oracle/Body.h"
#include <map>
#include <memory>

namespace cleave::oracle {

/// Blocks of the ranks: [rank].
using Blocks = std::vector<Tensor>;

class Interpreter {
public:
  /// At most `maxSteps` bodies are run before it gives up.
  explicit Interpreter(mlir::ModuleOp module, uint64_t poisonSeed = 1,
                       int64_t maxSteps = 400'000'000);
  ~Interpreter();

  /// The model on whole tensors.
  llvm::Expected<std::vector<Tensor>> run(llvm::StringRef function,
                                          llvm::ArrayRef<Tensor> inputs);
  /// The partitioned program, on whole tensors: they are cut and joined as the
  /// `cleave.sharding` of arguments and results says.
  llvm::Expected<std::vector<Tensor>>
  runPartitioned(llvm::StringRef function, llvm::ArrayRef<Tensor> inputs);
  /// The partitioned program, on blocks.
  llvm::Expected<std::vector<Blocks>> runBlocks(llvm::StringRef function,
                                                llvm::ArrayRef<Blocks> inputs);

private:
  struct Cell {
    std::shared_ptr<const Tensor> tensor;
    Scalar scalar = {0};
  };
  /// A value: one cell per rank.
  using Cells = llvm::SmallVector<Cell, 1>;
  using Frame = llvm::DenseMap<mlir::Value, Cells>;
  struct LinalgPlan;

  // Interpreter.cpp: functions, control flow, scalars.
  llvm::Expected<mlir::func::FuncOp> findFunction(llvm::StringRef name);
  llvm::Error call(mlir::func::FuncOp function, std::vector<Cells> arguments,
                   std::vector<Cells> &results);
  llvm::Error runBlock(mlir::Block &block, Frame &frame);
  llvm::Error runOp(mlir::Operation *op, Frame &frame);
  llvm::Error runOther(mlir::Operation *op, Frame &frame);
  llvm::Error runCall(mlir::Operation *op, Frame &frame);
  llvm::Error runFor(mlir::scf::ForOp op, Frame &frame);
  llvm::Error runForTogether(mlir::scf::ForOp op, Frame &frame);
  llvm::Error runIf(mlir::scf::IfOp op, Frame &frame);
  llvm::Error runConstant(mlir::Operation *op, Frame &frame);
  llvm::Error runScalar(mlir::Operation *op, Frame &frame);
  llvm::Error runElementwise(mlir::Operation *op, Frame &frame);

  // Linalg.cpp
  llvm::Error runLinalg(mlir::linalg::LinalgOp op, Frame &frame);
  llvm::Error runLinalgOnRank(mlir::linalg::LinalgOp op, LinalgPlan &plan,
                              int rank, Frame &frame);
  llvm::Error runSoftmax(mlir::linalg::SoftmaxOp op, Frame &frame);

  // TensorOps.cpp. Sets `known` to false for ops of other dialects.
  llvm::Error runTensor(mlir::Operation *op, Frame &frame, bool &known);
  llvm::Error runTensorOnRank(mlir::Operation *op, int rank, Frame &frame,
                              bool &known);
  llvm::Error runBodyPerElement(mlir::Operation *op, mlir::Block &block,
                                Tensor &result, int rank, Frame &frame,
                                llvm::function_ref<bool(const Shape &)> where);

  // CommOps.cpp. Sets `known` to false for ops of other dialects.
  llvm::Error runComm(mlir::Operation *op, Frame &frame, bool &known);
  llvm::Error runCollective(mlir::Operation *op, Frame &frame,
                            const Mesh &mesh);
  llvm::Error runTransfer(mlir::Operation *op, Frame &frame, const Mesh &mesh);
  const Mesh &meshOf(mlir::Operation *op, mlir::FlatSymbolRefAttr name);
  int64_t coordinate(mlir::Operation *op, int rank);

  // Shared helpers.
  Cells &define(mlir::Value value, Frame &frame) {
    Cells &cells = frame[value];
    cells.resize(numRanks);
    return cells;
  }
  const Tensor &tensorIn(mlir::Value value, int rank, Frame &frame) {
    return *frame[value][rank].tensor;
  }
  int64_t indexIn(mlir::OpFoldResult value, int rank, Frame &frame);
  Shape indicesIn(llvm::ArrayRef<mlir::OpFoldResult> values, int rank,
                  Frame &frame);
  void setTensor(mlir::Value value, int rank, Tensor tensor, Frame &frame) {
    define(value, frame)[rank].tensor =
        std::make_shared<const Tensor>(std::move(tensor));
  }
  Tensor poisonTensor(mlir::Type type);
  llvm::Expected<Body *> bodyOf(mlir::Operation *op, mlir::Block *block);
  /// Slots and tensors that a body takes from around it.
  void capture(const Body &body, std::vector<Scalar> &slots,
               llvm::SmallVectorImpl<const Tensor *> &tensors, int rank,
               Frame &frame);
  llvm::Error countSteps(mlir::Operation *op, int64_t steps);
  llvm::Error failAt(mlir::Operation *op, const llvm::Twine &problem);

  mlir::ModuleOp module;
  Random random;
  int64_t stepsLeft;
  int numRanks = 1;
  int depth = 0;
  /// Ranks that run the current op; all of them outside diverging branches.
  llvm::SmallVector<int, 8> active;
  llvm::DenseMap<mlir::Operation *, std::unique_ptr<Body>> bodies;
  llvm::DenseMap<mlir::Operation *, std::unique_ptr<LinalgPlan>> plans;
  llvm::DenseMap<mlir::Operation *, std::shared_ptr<const Tensor>> constants;
  llvm::DenseMap<mlir::Operation *, std::unique_ptr<Mesh>> meshes;
  /// Blocks on their way: (from, to) to those sent, oldest first.
  std::map<std::pair<int64_t, int64_t>, std::vector<Tensor>> inFlight;
};

/// The shape of a type as the oracle keeps it.
llvm::ArrayRef<int64_t> shapeOf(mlir::Type type);

} // namespace cleave::oracle

#endif // CLEAVE_TEST_ORACLE_INTERPRETER_H

//===- Body.h - Regions on scalars, ready to run ---------------*- C++ -*-===//
// A body of a linalg op, or a single scalar op, as a list of instructions on
// numbered slots. Bodies run once per element, so they are made once.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_TEST_ORACLE_BODY_H
#define CLEAVE_TEST_ORACLE_BODY_H

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/Block.h"
#include "test/oracle/ScalarOps.h"
#include "test/oracle/Tensor.h"
#include "llvm/ADT/DenseMap.h"
#include <functional>

namespace cleave::oracle {

struct Instruction {
  enum Code : uint8_t { Compute, Move, LoopIndex, Extract, If, Affine };
  Code code = Compute;
  int dst = 0;
  llvm::SmallVector<int, 4> src;
  ScalarOp op;
  /// LoopIndex: the dim. Extract: the tensor. If: the two lists.
  int first = 0, second = 0;
  mlir::AffineExpr expr;
  unsigned numDims = 0;
};

/// What a body reads besides its slots.
struct BodyContext {
  llvm::ArrayRef<int64_t> loopIndices;
  llvm::ArrayRef<const Tensor *> tensors;
  std::string error;
};

class Body {
public:
  /// Of a block that ends in a terminator: the results are its operands.
  static llvm::Expected<Body> ofBlock(mlir::Block &block);
  /// Of one op with scalar results, whose operands are the arguments.
  static llvm::Expected<Body> ofOp(mlir::Operation *op);

  /// Fresh slots, with constants in place.
  std::vector<Scalar> makeSlots() const { return initialSlots; }
  void run(std::vector<Scalar> &slots, BodyContext &context) const {
    runList(0, slots, context);
  }

  llvm::SmallVector<int, 4> arguments, results;
  /// Values from around the body; the caller fills slots and tensors in.
  llvm::SmallVector<std::pair<mlir::Value, int>, 2> capturedScalars;
  llvm::SmallVector<mlir::Value, 2> capturedTensors;
  /// Ops without operands that differ per rank (comm.coordinate).
  llvm::SmallVector<std::pair<mlir::Operation *, int>, 2> coordinates;

private:
  friend class BodyBuilder;
  void runList(int list, std::vector<Scalar> &slots,
               BodyContext &context) const;
  std::vector<std::vector<Instruction>> lists;
  std::vector<Scalar> initialSlots;
};

/// Value of an affine expression.
int64_t evaluate(mlir::AffineExpr expr, llvm::ArrayRef<int64_t> dims,
                 llvm::ArrayRef<int64_t> symbols = {});
/// The scalar of an integer or float attribute.
std::optional<Scalar> scalarOfAttr(mlir::Attribute attr);

} // namespace cleave::oracle

#endif // CLEAVE_TEST_ORACLE_BODY_H

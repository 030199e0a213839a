//===- GeneratorImpl.h - State of a program being drawn --------*- C++ -*-===//
#ifndef CLEAVE_TEST_ORACLE_GENERATORIMPL_H
#define CLEAVE_TEST_ORACLE_GENERATORIMPL_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "test/oracle/Generator.h"

namespace cleave::oracle {

/// A value with the largest magnitude its elements can have. Only floats need
/// it: integers wrap around, and are exact then too.
struct Bounded {
  mlir::Value value;
  double bound = 0;

  mlir::RankedTensorType type() const {
    return mlir::cast<mlir::RankedTensorType>(value.getType());
  }
  mlir::Type element() const { return type().getElementType(); }
  llvm::ArrayRef<int64_t> shape() const { return type().getShape(); }
  int64_t rank() const { return type().getRank(); }
};

class ProgramGenerator {
public:
  ProgramGenerator(mlir::MLIRContext *context, uint64_t seed,
                   const GeneratorOptions &options);
  mlir::OwningOpRef<mlir::ModuleOp> run();

private:
  using Loops = llvm::SmallVector<int64_t, 6>; // loop numbers
  using BodyFunction = llvm::function_ref<llvm::SmallVector<mlir::Value>(
      llvm::ArrayRef<Bounded>)>;

  // Generator.cpp: values, magnitudes, control flow.
  void addOps(int count);
  bool addOp();
  void finishEntry();
  Bounded *pickValue(llvm::function_ref<bool(const Bounded &)> accept);
  Shape randomShape(int64_t rank);
  mlir::Type randomElement();
  int64_t randomSize();
  bool fits(llvm::ArrayRef<int64_t> shape) const;
  /// A new value: argument, constant, fill, iota.
  Bounded fresh(llvm::ArrayRef<int64_t> shape, mlir::Type element);
  Bounded denseConstant(llvm::ArrayRef<int64_t> shape, mlir::Type element);
  Bounded iota(llvm::ArrayRef<int64_t> shape, mlir::Type element);
  Bounded filled(llvm::ArrayRef<int64_t> shape, mlir::Type element,
                 double number);
  mlir::Value empty(llvm::ArrayRef<int64_t> shape, mlir::Type element);
  mlir::Value scalar(mlir::Type element, double number);
  /// Whole numbers up to here are exact in the type.
  double exactLimit(mlir::Type element) const;
  /// Clamps if needed; null value if the bound is below 1.
  Bounded tame(Bounded value, double bound);
  void add(mlir::Value value, double bound) { pool.push_back({value, bound}); }
  mlir::Value elementOf(const Bounded &x);
  Bounded withScalar(Bounded x, Bounded number);
  bool addCall();
  bool addLoop();
  mlir::Value accumulate(mlir::Value sum, mlir::Value left, mlir::Value right);
  mlir::Value
  loopOver(int64_t trips, mlir::Value init,
           llvm::function_ref<mlir::Value(mlir::Value, mlir::Value)> body);
  bool addAccumulation();
  bool addPartial();

  // GeneratorScalars.cpp: on scalars of bodies, or on whole tensors.
  Bounded unary(Bounded x);
  Bounded binary(Bounded x, Bounded y);
  Bounded floatUnary(Bounded x);
  Bounded intUnary(Bounded x);
  Bounded smoothUnary(Bounded x);
  mlir::Value compare(mlir::Value x, mlir::Value y);

  // GeneratorProducts.cpp
  bool addProduct();
  bool addContraction();
  Bounded timesFresh(Bounded left, int64_t columns);
  bool addShared();

  // GeneratorElementwise.cpp
  bool addElementwise();
  bool addNamedElementwise();
  bool addTensorArith();
  bool addCast();
  bool addCompareSelect();
  bool addMask();
  bool addDivision();
  /// An operand for these loops with a map; from the pool where one fits.
  Bounded operandFor(llvm::ArrayRef<int64_t> ranges, mlir::Type element,
                     mlir::AffineMap &map);
  bool matchDims(const Bounded &value, llvm::ArrayRef<int64_t> ranges,
                 Loops &loops);
  Bounded initFor(llvm::ArrayRef<int64_t> shape, mlir::Type element,
                  double neutral);
  mlir::linalg::GenericOp
  generic(llvm::ArrayRef<mlir::Value> ins, llvm::ArrayRef<mlir::Value> outs,
          llvm::ArrayRef<mlir::AffineMap> maps,
          llvm::ArrayRef<bool> isReduction,
          llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::ValueRange)>
              body);

  // GeneratorReduce.cpp
  struct Reducer;
  Reducer randomReducer(Bounded x, int64_t terms);
  bool pickReduction(Bounded &x, llvm::SmallVector<bool> &isReduction,
                     Shape &outShape, mlir::AffineMap &outMap);
  bool addReduce();
  bool addMultiReduce();
  bool addArgMax();
  bool addOrdered();
  bool addWindow();
  bool addScatterAdd();
  bool addSoftmax();
  bool addNorm();

  // GeneratorMove.cpp
  bool addTranspose();
  bool addBroadcast();
  bool addExpand();
  bool addCollapse();
  bool addExtractSlice();
  bool addInsertSlice();
  bool addConcat();
  bool addPad();
  bool addEmbedding();
  bool addGather();
  bool addGenerate();

  mlir::AffineMap mapOf(int64_t numLoops, llvm::ArrayRef<int64_t> loops);
  template <typename T> void shuffle(T &list) {
    for (size_t i = list.size(); i > 1; --i)
      std::swap(list[i - 1], list[random.below(i)]);
  }

  GeneratorOptions options;
  Random random;
  mlir::OpBuilder b;
  mlir::Location loc;
  mlir::ModuleOp module;
  mlir::func::FuncOp entry;
  std::vector<Bounded> pool;
  llvm::SmallVector<int64_t, 4> sizes;
  llvm::SmallVector<mlir::Type, 3> elements;
  /// In a private function: no new arguments.
  bool inCallee = false;
  /// Depth of regions; calls and loops nest only so far.
  int nesting = 0;
  int numCallees = 0;
  /// Sums that only linear ops use.
  llvm::SmallVector<mlir::Operation *> partialSums;
  /// Products that loops add up.
  llvm::SmallVector<mlir::Operation *> accumulated;
};

} // namespace cleave::oracle

#endif // CLEAVE_TEST_ORACLE_GENERATORIMPL_H

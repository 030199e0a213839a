//===- Nest.h - Linalg ops as strided loop nests ----------------*- C++ -*-===//
// The view that code generation has of a linalg op on buffers: loops with
// static sizes, and per operand a flat buffer with an offset and one stride a
// loop. Transposes, broadcasts, windows (d0 + d1), constants in maps and
// subviews are all just strides, so no later step looks at maps again.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PASSES_LOWER_KERNELS_NEST_H
#define CLEAVE_PASSES_LOWER_KERNELS_NEST_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Builders.h"
#include "passes/lower/kernels/Internal.h"
#include "llvm/ADT/DenseMap.h"

namespace cleave::kernels {

/// How one operand is read or written: element `offset + sum(stride * iv)` of
/// a buffer. A scalar operand has no root.
struct Access {
  mlir::Value buffer, root;
  mlir::Type element;
  int64_t offset = 0;
  bool dynamicOffset = false;
  llvm::SmallVector<int64_t> strides;

  bool isScalar() const { return !root; }
};

/// How an output of a nest with reduction loops is combined.
struct Combiner {
  mlir::Operation *op = nullptr; // the arith op that joins both
  mlir::Value term;              // what the body adds in
};

/// One linalg op.
struct Nest {
  mlir::linalg::LinalgOp op;
  llvm::SmallVector<int64_t> sizes;
  llvm::SmallVector<bool> parallel;
  llvm::SmallVector<Access> accesses; // in operand order
  /// Per output: the scalar its buffer was filled with just before.
  llvm::SmallVector<mlir::Value> fills;
  /// Loops whose index the body reads.
  llvm::SmallVector<bool> indexed;

  unsigned numInputs() const {
    return const_cast<Nest *>(this)->op.getNumDpsInputs();
  }
  mlir::Block &body() const { return *const_cast<Nest *>(this)->op.getBlock(); }
  bool hasReduction() const { return llvm::is_contained(parallel, false); }
  /// Whether the body reads output `i`.
  bool readsOutput(unsigned i) const {
    return !body().getArgument(numInputs() + i).use_empty();
  }
  /// A simple reduction of output `i`, or nullopt.
  std::optional<Combiner> combiner(unsigned i) const;
};

/// The nest of `op`, or nothing where its maps are not linear or its body has
/// ops that do not work on vectors.
std::optional<Nest> analyse(mlir::linalg::LinalgOp op);
/// The same for an op on tensors, which will be contiguous buffers.
std::optional<Nest> analyseTensors(mlir::linalg::LinalgOp op);

/// The allocation or argument that `buffer` is a view of.
mlir::Value rootOf(mlir::Value buffer);

/// Emits pieces of nests as scalar or vector code.
class NestEmitter {
public:
  NestEmitter(mlir::OpBuilder &b, mlir::Location loc) : b(b), loc(loc) {}

  mlir::Value index(int64_t value);
  /// offset + sum(stride * iv).
  mlir::Value address(const Access &access, mlir::ValueRange ivs);
  /// `width` elements along `loop`, or one broadcast where it does not move.
  mlir::Value load(const Access &access, mlir::ValueRange ivs, int loop,
                   int64_t width);
  /// `bypass`: around the caches; the address is a multiple of the vector.
  void store(mlir::Value value, const Access &access, mlir::ValueRange ivs,
             int loop, int64_t width, bool bypass = false);
  /// Values that the body yields for the given block arguments.
  llvm::SmallVector<mlir::Value> body(const Nest &nest,
                                      llvm::ArrayRef<mlir::Value> arguments,
                                      mlir::ValueRange ivs, int loop,
                                      int64_t width);
  /// The value of `wanted`, computed in the body, instead of its yields.
  mlir::Value bodyValue(const Nest &nest, mlir::Value wanted,
                        llvm::ArrayRef<mlir::Value> arguments,
                        mlir::ValueRange ivs, int loop, int64_t width);
  /// combiner(a, b) on scalars or vectors of a type.
  mlir::Value combine(mlir::Operation *combiner, mlir::Value a, mlir::Value b);
  /// Joins all lanes of `vector` in a fixed tree.
  mlir::Value reduceLanes(mlir::Operation *combiner, mlir::Value vector);
  mlir::Value broadcast(mlir::Value value, int64_t width);
  /// for 0 .. size by step, with carried values.
  llvm::SmallVector<mlir::Value>
  loop(int64_t low, int64_t high, int64_t step, mlir::ValueRange carried,
       llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value,
                                                         mlir::ValueRange)>
           emit);
  /// The 1-d view of a buffer that loads and stores go through.
  mlir::Value flat(const Access &access);
  /// Where flat views are made: the begin of the nest group.
  void setHome() { home = b.saveInsertionPoint(); }

  mlir::OpBuilder &b;
  mlir::Location loc;

private:
  mlir::IRMapping emitBody(const Nest &nest,
                           llvm::ArrayRef<mlir::Value> arguments,
                           mlir::ValueRange ivs, int loop, int64_t width);
  mlir::Value lanes(mlir::Value v, int64_t width);
  mlir::Value emitLoad(mlir::Operation *op, mlir::IRMapping &map,
                       mlir::Value laneIndex, mlir::Value firstLane,
                       int64_t width);

  llvm::DenseMap<mlir::Value, mlir::Value> flats;
  mlir::OpBuilder::InsertPoint home;
};

/// Bytes that one element takes in a register: narrow floats compute in f32.
int64_t registerBytes(mlir::Type element);

/// Whether two nests touch `a` and `b` of one buffer in the same way.
bool sameAccess(const Access &a, const Access &b);

/// Emits runs of nests with fused row loops, in place of their ops.
mlir::LogicalResult emitRowNests(mlir::func::FuncOp kernel, const CpuIsa &isa);

/// Emits products (with what follows them element by element) as register
/// tiles, in place of their ops.
mlir::LogicalResult emitProducts(mlir::func::FuncOp kernel, const CpuIsa &isa);

} // namespace cleave::kernels

#endif // CLEAVE_PASSES_LOWER_KERNELS_NEST_H

//===- Storage.h - Which tensors of a function share a buffer --*- C++ -*-===//
// A tensor and its views form a group: one content in one place. Groups that
// follow each other in time may share a buffer, and some must: what a kernel
// updates, what a loop carries, what a callee takes over, what ends as state.
// Each such tie joins the buffers of two groups if no two groups of the joined
// buffer are alive at once; otherwise a copy is inserted and the analysis runs
// again. Afterwards kernels that may overwrite an operand which dies in them
// do.
//
// Moments are the positions of ops, counted through loops: a value that a loop
// reads from outside lives until the loop ends. A group begins where it is
// written and ends with its last reader; one may end where the next begins only
// if that very op may write over what it reads.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PASSES_MEMORY_STORAGE_H
#define CLEAVE_PASSES_MEMORY_STORAGE_H

#include "dialects/dispatch/Dispatch.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "passes/lower/kernels/Kernels.h"
#include "passes/memory/MemoryPlan.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringMap.h"

namespace cleave {

int64_t bytesOf(mlir::Type type);
inline bool isTensor(mlir::Type type) {
  return mlir::isa<mlir::RankedTensorType>(type);
}
inline bool isTensor(mlir::Value value) { return isTensor(value.getType()); }
/// Whether a `tensor.empty` only names the type of a destination.
inline bool isPlainDest(mlir::Value value) {
  return value.getDefiningOp<mlir::tensor::EmptyOp>() != nullptr;
}
/// Bytes between a value and the begin of its buffer, through views; nothing
/// where an offset is only known when it runs.
std::optional<int64_t> viewOffset(mlir::Value value);
/// The value whose buffer a view looks at; `value` itself if it is none.
mlir::Value viewSource(mlir::Value value);

/// Which weight or state, and in which layout, an argument with these
/// attributes is; empty for others. The key of `StorageContext::resident`.
std::string residentName(mlir::DictionaryAttr attributes);
/// Between the name of a weight and its layout.
inline constexpr char kPackedSeparator = '\n';

/// What the functions of a module share.
struct StorageContext {
  kernels::IsaLevel isa = kernels::IsaLevel::avx512;
  /// Offsets of weights and states by `residentName`.
  llvm::StringMap<int64_t> resident;
  /// Pairs of an argument and the result that takes over its buffer, of the
  /// functions planned so far.
  llvm::StringMap<llvm::SmallVector<std::pair<unsigned, unsigned>>> ties;
  llvm::StringMap<int64_t> frameBytes;
  mlir::SymbolTable *symbols = nullptr;

  /// Fails after a diagnostic if the kernel cannot be lowered.
  mlir::FailureOr<int64_t> scratchBytes(mlir::func::FuncOp kernel);
  bool mayReuse(mlir::func::FuncOp kernel, unsigned input, unsigned output);

private:
  llvm::StringMap<bool> reuses;
};

class Storage {
public:
  Storage(mlir::func::FuncOp func, StorageContext &context)
      : func(func), context(context) {}
  /// Decides, inserts copies, plans, and leaves the attributes.
  mlir::LogicalResult run();

private:
  using Base = dispatch::PlaceBase;
  struct Group {
    mlir::Value root;
    int64_t begin = 0, end = 0, bytes = 0;
    unsigned buffer = 0;
  };
  /// Groups that share one place.
  struct Buffer {
    llvm::SmallVector<unsigned, 2> groups; // by begin
    Base base = Base::frame;
    int64_t value = 0;
    bool writable = true;
    /// An input: the frame is where it must lie.
    bool pinned = false;
    bool merged = false;
  };
  struct Tie {
    mlir::OpOperand *use;
    unsigned from, to;
  };

  // Analysis, from nothing each time.
  void analyze();
  void number(mlir::Block &block);
  void addGroup(mlir::Value value);
  void addGroups(mlir::Block &block);
  void addUses(mlir::Value value, unsigned group);
  void placeArguments();
  void addTies(mlir::Block &block);
  void addTies(mlir::Operation *op);
  void tie(mlir::OpOperand &use, mlir::Value result);
  bool readOnceBy(mlir::Operation *op, unsigned group) const;
  int64_t momentOf(mlir::Operation *user, mlir::Block *home) const;

  // Decisions (Sharing.cpp).
  bool tryMerge(unsigned a, unsigned b);
  bool fits(llvm::ArrayRef<unsigned> groups) const;
  void mergeTies();
  void settleEntryResults();
  void settlePackedWeights();
  void settleResults();
  void reuseInputs();
  void reuseInputs(dispatch::CallOp call);
  std::optional<unsigned> donatedArgument(mlir::Value value);
  bool isEntry() { return func.isPublic(); }
  bool isWhole(mlir::Value value) const;
  void copyBefore(mlir::OpOperand &use);

  // Results (FramePlan.cpp).
  mlir::LogicalResult planFrame();
  void annotate();
  mlir::Attribute placeOf(mlir::Value value);

  unsigned groupOf(mlir::Value value) const { return groupIds.at(value); }
  Buffer &bufferOf(mlir::Value value) {
    return buffers[groups[groupOf(value)].buffer];
  }

  mlir::func::FuncOp func;
  StorageContext &context;
  llvm::DenseMap<mlir::Operation *, int64_t> moments, loopEnds;
  int64_t now = 0;
  llvm::DenseMap<mlir::Value, unsigned> groupIds;
  std::vector<Group> groups;
  std::vector<Buffer> buffers;
  std::vector<Tie> ties;
  /// Group `second` may be written where `first` is read for the last time.
  llvm::DenseSet<std::pair<unsigned, unsigned>> mayOverwrite;
  llvm::SmallVector<mlir::OpOperand *> copies;
  /// Arguments that a result takes over, and those that turned out not to.
  llvm::DenseMap<unsigned, unsigned> donated;
  llvm::DenseSet<unsigned> notDonated;
  std::vector<int64_t> bufferOffsets;
  int64_t frameBytes = 0;
};

} // namespace cleave

#endif // CLEAVE_PASSES_MEMORY_STORAGE_H

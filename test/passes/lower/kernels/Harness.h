//===- Harness.h - Compile, load and call kernels ---------------*- C++ -*-===//
#ifndef CLEAVE_TEST_PASSES_LOWER_KERNELS_HARNESS_H
#define CLEAVE_TEST_PASSES_LOWER_KERNELS_HARNESS_H

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "passes/lower/kernels/Kernels.h"
#include "test/passes/lower/kernels/Evaluator.h"
#include <memory>
#include <random>

namespace cleave::kernels::test {

/// A context with every dialect of kernels loaded.
std::unique_ptr<mlir::MLIRContext> makeContext();

mlir::OwningOpRef<mlir::ModuleOp> parse(mlir::MLIRContext &context,
                                        llvm::StringRef text);
mlir::func::FuncOp firstKernel(mlir::ModuleOp module);

/// Whether kernels for `isa` can be called in this process. Asks Linux for the
/// tile registers where they are there; CLEAVE_ISA lowers the answer.
bool runsHere(const CpuIsa &isa);

/// Names that an object leaves undefined.
std::vector<std::string> undefinedSymbols(llvm::ArrayRef<char> object);

/// An object linked into this process.
class Loaded {
public:
  static std::unique_ptr<Loaded> load(llvm::ArrayRef<char> object);
  virtual ~Loaded() = default;
  virtual void *lookup(llvm::StringRef symbol) = 0;
};

/// Storage of one argument, aligned, with guard bytes behind it.
class Buffer {
public:
  explicit Buffer(int64_t bytes);
  Buffer(Buffer &&) = default;
  void *data() { return start; }
  /// Whether the bytes around the data are untouched.
  bool guardsIntact() const;

private:
  std::unique_ptr<char[]> storage;
  char *start;
  int64_t bytes;
};

void store(const Datum &from, void *to);
void fetch(const void *from, Datum &to);
int64_t bytesOf(const Datum &datum);

/// Calls a compiled kernel: pointers, and scalars passed as 64-bit integers.
void call(void *function, llvm::ArrayRef<int64_t> words);

/// Random integers of a small range (floats get integers too), or normal
/// floats when `real`.
void randomise(Datum &datum, std::mt19937_64 &rng, bool real);

struct Tolerance {
  double absolute = 0, relative = 0;
};

/// Compiles `text`, runs it on `trials` random inputs, and compares with the
/// evaluator. Returns an empty string, or what differs.
struct CheckOptions {
  IsaLevel isa = IsaLevel::avx2;
  bool real = false;
  int trials = 1;
  Tolerance tolerance;
  uint64_t seed = 1;
  bool allowCalls = false;
};
std::string checkKernel(mlir::MLIRContext &context, llvm::StringRef text,
                        const CheckOptions &options);
/// The same with given inputs (destinations too).
std::string checkKernelOn(mlir::func::FuncOp kernel,
                          std::vector<Datum> arguments,
                          const CheckOptions &options);

} // namespace cleave::kernels::test

#endif // CLEAVE_TEST_PASSES_LOWER_KERNELS_HARNESS_H

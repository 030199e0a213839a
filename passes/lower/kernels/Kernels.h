//===- Kernels.h - Machine code of one fused kernel -------------*- C++ -*-===//
// A kernel is a function on static tensors in destination-passing style,
//
//   func.func private @k(%in0: tensor<..>, %row: index, %out0: tensor<..>)
//       -> tensor<..>
//
// whose last arguments are the destinations, one per result, in order. Its
// body holds linalg, tensor, arith, math and scf ops. Compiled, it is
//
//   void k(const void *in0, int64_t row, void *out0[, void *scratch])
//
// on contiguous row-major data, of destinations and scratch aligned to
// kBufferAlignment, of inputs to one element; i1 takes a byte.
// It calls nothing but memcpy, memmove and memset, and the C library's
// functions of f64 and fmodf.
//
// What differs from the text of the kernel: sums and products of floats are
// reassociated (the order is fixed: equal runs give equal bits); sums of bf16
// and f16 are kept in f32 and rounded once; multiply-adds of matrix products
// are fused; f32 functions have the errors that test MathTest.cpp states. All
// else is exact, NaN included. The sign of a zero that is the extremum of
// several elements is open.
//
// Destinations overlap no input, except where `mayReuseInput` allows it.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PASSES_LOWER_KERNELS_KERNELS_H
#define CLEAVE_PASSES_LOWER_KERNELS_KERNELS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/Pass/Pass.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>

namespace cleave::kernels {

/// Alignment in bytes of every buffer that a kernel writes.
inline constexpr int64_t kBufferAlignment = 64;

/// Temporaries up to this many bytes live on the stack of the kernel.
inline constexpr int64_t kStackBytes = 64 * 1024;

/// The instruction sets a program may carry; the runtime picks the highest one
/// that the CPU has when the program starts.
enum class IsaLevel { avx2, avx512, avx512bf16, amx };

/// What code generation knows of one instruction set. Independent of the
/// machine the compiler runs on.
struct CpuIsa {
  IsaLevel level = IsaLevel::avx2;

  static CpuIsa get(IsaLevel level) { return {level}; }
  static llvm::ArrayRef<IsaLevel> all();

  /// "avx2", "avx512", "amx": also the suffix of symbols, by convention.
  llvm::StringRef name() const;
  /// The CPU and the features given to LLVM.
  llvm::StringRef cpu() const;
  llvm::StringRef features() const;
  /// Bytes and number of the vector registers.
  int64_t vectorBytes() const { return level == IsaLevel::avx2 ? 32 : 64; }
  int64_t numVectors() const { return level == IsaLevel::avx2 ? 16 : 32; }
  bool hasBf16Dot() const { return level >= IsaLevel::avx512bf16; }
};

/// Whether the CPU this process runs on has `isa`.
bool hostHas(const CpuIsa &isa);

/// Everything that the functions below need in the context. With several
/// threads on one context, load all dialects before the first call.
void registerKernelDialects(mlir::DialectRegistry &registry);

/// What the caller of a lowered kernel has to know.
struct KernelInfo {
  /// Bytes of the scratch buffer, the last argument; 0: there is none.
  int64_t scratchBytes = 0;
};

/// Functions of bf16 and f16 are computed in f32, and casts between these and
/// f64 go through f32: for the scalars outside of kernels as well.
void widenMath(mlir::Operation *root);
/// A pass that does the same with their arithmetic.
std::unique_ptr<mlir::Pass> createNarrowArithmetic();

/// Replaces `kernel` by an llvm.func of the same name in the same module.
mlir::FailureOr<KernelInfo> lowerKernel(mlir::func::FuncOp kernel,
                                        const CpuIsa &isa);

/// Optimises a module of llvm.func ops and emits a relocatable ELF object.
mlir::LogicalResult compileModule(mlir::ModuleOp module, const CpuIsa &isa,
                                  llvm::SmallVectorImpl<char> &object);

/// The same as assembly, for tests.
mlir::LogicalResult emitAssembly(mlir::ModuleOp module, const CpuIsa &isa,
                                 llvm::SmallVectorImpl<char> &text);

/// One kernel from function to object; leaves `kernel` alone. The object
/// defines `symbol`, externally visible.
struct CompiledKernel {
  KernelInfo info;
  llvm::SmallVector<char, 0> object;
};
mlir::FailureOr<CompiledKernel> compileKernel(mlir::func::FuncOp kernel,
                                              llvm::StringRef symbol,
                                              const CpuIsa &isa);

/// Bytes of scratch that `kernel` will ask for, without compiling it.
mlir::FailureOr<int64_t> planScratch(mlir::func::FuncOp kernel,
                                     const CpuIsa &isa);

/// Whether the destination `output` (the n-th result) may be the very buffer
/// of argument `input`: each element is read before it is written.
bool mayReuseInput(mlir::func::FuncOp kernel, unsigned input, unsigned output,
                   const CpuIsa &isa);

/// 32 hexadecimal digits over what the kernel computes: ops, types,
/// attributes, constants and data flow. Not over SSA and symbol names,
/// locations, and discardable attributes.
std::string hashKernel(mlir::func::FuncOp kernel);

/// Name of the object of `kernel` in an on-disk cache: the hash, the
/// instruction set and the version of the code generator.
std::string cacheKey(mlir::func::FuncOp kernel, const CpuIsa &isa);

/// How a constant operand of a product is laid out once, when it is loaded.
struct PackPlan {
  /// Argument of the kernel.
  unsigned operand = 0;
  mlir::RankedTensorType type;   // as the model has it
  mlir::RankedTensorType packed; // as the kernel reads it
  /// Same text, same pack function.
  std::string key;
  /// Dims of `type` in the order of `packed`, whose last dims hold `nr`
  /// neighbours of dim `n` and, for dot products of bf16, 2 neighbours of dim
  /// `pair`.
  llvm::SmallVector<int64_t> order;
  int64_t n = 0, nr = 0, pair = -1;
};

/// The layout that the kernel would like argument `operand` in, or nothing
/// where it reads the plain tensor as fast.
std::optional<PackPlan> planPacking(mlir::func::FuncOp kernel, unsigned operand,
                                    const CpuIsa &isa);

/// Appends to `module` a kernel `name` that packs: (plain, packed) -> packed.
mlir::func::FuncOp buildPackKernel(mlir::ModuleOp module, const PackPlan &plan,
                                   llvm::StringRef name);

/// Changes the type of the argument to `plan.packed`. Do it for every call of
/// the kernel, and hash the kernel afterwards.
void applyPacking(mlir::func::FuncOp kernel, const PackPlan &plan);

} // namespace cleave::kernels

#endif // CLEAVE_PASSES_LOWER_KERNELS_KERNELS_H

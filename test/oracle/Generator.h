//===- Generator.h - Random programs ---------------------------*- C++ -*-===//
// Draws models that any compiler for them must take: valid for every verifier,
// free of undefined values, with a mesh and shardings. Data are whole numbers
// small enough that sums come out the same in any order, so that results can
// be compared exactly; the float mode gives that up for exp, division and
// softmax, and needs a tolerance.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_TEST_ORACLE_GENERATOR_H
#define CLEAVE_TEST_ORACLE_GENERATOR_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "test/oracle/Tensor.h"

namespace cleave::oracle {

struct GeneratorOptions {
  /// Chains of exp, division, softmax: results are compared with kTolerance.
  bool floats = false;
  /// Declares some sums partial, before linear ops only.
  bool partials = true;
  int minOps = 3, maxOps = 25;
  int64_t maxRanks = 8;
  /// Elements of a tensor, and points of an op's loops.
  int64_t maxElements = 400, maxPoints = 3000;
};

/// Of the float mode, relative to max(1, |expected|).
inline constexpr double kTolerance = 1e-3;
inline constexpr llvm::StringLiteral kEntry = "model";

/// The program of this seed. Same seed and options, same program.
mlir::OwningOpRef<mlir::ModuleOp>
generateProgram(mlir::MLIRContext *context, uint64_t seed,
                const GeneratorOptions &options = {});

/// Adds a random mesh and random shardings to a module: on arguments, results
/// and ops, and as constraints, barriers and groups. The sums in `partialSums`
/// are declared partial; products in `accumulated` often sum over a cut dim.
void shardRandomly(mlir::ModuleOp module, Random &random,
                   const GeneratorOptions &options,
                   llvm::ArrayRef<mlir::Operation *> partialSums,
                   llvm::ArrayRef<mlir::Operation *> accumulated);

/// Inputs for a function: small whole numbers, or numbers up to 2 with
/// fractions.
std::vector<Tensor> randomInputs(mlir::func::FuncOp function, uint64_t seed,
                                 bool fractions);

/// The dialects that programs use.
void registerOracleDialects(mlir::DialectRegistry &registry);

} // namespace cleave::oracle

#endif // CLEAVE_TEST_ORACLE_GENERATOR_H

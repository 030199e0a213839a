//===- Case.h - One program, compared --------------------------*- C++ -*-===//
#ifndef CLEAVE_TEST_ORACLE_CASE_H
#define CLEAVE_TEST_ORACLE_CASE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/LogicalResult.h"
#include <functional>
#include <string>

namespace cleave::oracle {

/// Turns a model into a partitioned program, in place.
using Partition = std::function<llvm::LogicalResult(mlir::ModuleOp)>;

enum class Outcome {
  Same,
  /// Diagnosed as wrong input.
  Rejected,
  /// Ended without a result and without a diagnostic.
  Silent,
  /// What came out does not verify.
  Unverified,
  /// The partitioned program does what a rank must not: reads out of bounds,
  /// divides by zero, waits for nobody, has copies that differ.
  Faulty,
  Differs,
  Crash,
  Hang,
  /// The program itself has no defined result: a mistake of the generator.
  Undefined
};
llvm::StringRef outcomeName(Outcome outcome);

struct Report {
  Outcome outcome = Outcome::Same;
  std::string detail;
};

struct CaseOptions {
  Partition partition;
  /// Of the inputs.
  uint64_t seed = 0;
  /// Inputs have fractions; results may differ by kTolerance.
  bool floats = false;
  /// Not empty: run `<cleave> check` instead of interpreting.
  std::string cleave;
  /// With `cleave`: where models are written.
  std::string directory = "/tmp";
};

/// Parses, partitions, evaluates both and compares.
Report runCase(mlir::MLIRContext *context, llvm::StringRef text,
               const CaseOptions &options);
/// The same with text that may be nonsense: anything but a diagnostic or a
/// module that verifies is a failure.
Report runMutant(mlir::MLIRContext *context, llvm::StringRef text,
                 const CaseOptions &options);
/// Runs `<cleave> check` on the text.
Report checkCase(llvm::StringRef text, const CaseOptions &options);

/// Replaces, drops and doubles tokens and changes numbers.
std::string mutate(llvm::StringRef text, uint64_t seed);

/// The simplest correct partitioner: gathers all arguments, computes everything
/// on every rank, and keeps each rank's block of the results. For testing the
/// oracle and for programs no real one is there for.
llvm::LogicalResult partitionNaively(mlir::ModuleOp module);

} // namespace cleave::oracle

#endif // CLEAVE_TEST_ORACLE_CASE_H

//===- CheckData.h - Random inputs and comparisons of check ----*- C++ -*-===//
#ifndef CLEAVE_DRIVER_CHECKDATA_H
#define CLEAVE_DRIVER_CHECKDATA_H

#include "runtime/io/Npy.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <random>
#include <string>
#include <vector>

namespace cleave {

/// A tensor at the edge of a program, as --describe prints it.
struct EdgeTensorType {
  std::string name;
  std::vector<int64_t> shape;
  uint32_t dtype = 0;
  int64_t numElements() const;
};

struct EdgeEntryType {
  std::string name;
  std::vector<EdgeTensorType> inputs, outputs, weights, states;
};

/// Reads what `OUT --describe` printed.
llvm::Expected<std::vector<EdgeEntryType>>
parseDescription(llvm::StringRef json);

/// What random inputs are made of.
struct InputRange {
  /// Integers lie in this range, for they may be indices or divisors.
  int64_t minInteger = 0, maxInteger = 7;
  /// Floats are whole numbers from -4 to 4, times this. Whole numbers keep sums
  /// and products exact; eighths keep a softmax well conditioned.
  float scale = 1;
};

/// Random numbers in the tensor's own type.
std::vector<char> randomData(const EdgeTensorType &type, std::mt19937_64 &rng,
                             const InputRange &range);

/// Writes an array as .npy (bf16 as f32).
llvm::Error writeNpy(llvm::StringRef path, const EdgeTensorType &type,
                     llvm::ArrayRef<char> data);
/// Writes tensors as one .safetensors file.
llvm::Error writeSafetensors(
    llvm::StringRef path,
    llvm::ArrayRef<std::pair<EdgeTensorType, std::vector<char>>> tensors);

/// How far two files with one output are apart.
struct Difference {
  double maxAbs = 0, maxRel = 0;
  /// Integers equal; floats within the tolerance; NaN like NaN.
  bool equal = true;
  /// The first place where they aren't, "[3, 1]: 2 instead of 5".
  std::string first;
};
llvm::Expected<Difference> compareNpy(llvm::StringRef reference,
                                      llvm::StringRef other,
                                      const EdgeTensorType &type,
                                      double tolerance);
/// What reordered sums of a type may differ by, relative to the largest number
/// in the output.
double toleranceOf(uint32_t dtype);

} // namespace cleave

#endif // CLEAVE_DRIVER_CHECKDATA_H

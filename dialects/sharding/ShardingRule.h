//===- ShardingRule.h - The factors of an op -------------------*- C++ -*-===//
// A rule says how the dims of an op's tensors correspond: each dim is a list
// of factors (iteration dims), major to minor. No IR here; the interface
// ShardingRuleOpInterface makes rules from ops.
//
// Example: matmul [M,K] x [K,N] -> [M,N] has factors m, n (pass-through) and k
// (reduction, sum): operands ([m],[k]), ([k],[n]); results ([m],[n]).
// Example: expand_shape [8] -> [2,4] has factors i(2), j(4): operand ([i,j]),
// result ([i],[j]).
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECTS_SHARDING_SHARDINGRULE_H
#define CLEAVE_DIALECTS_SHARDING_SHARDINGRULE_H

#include "dialects/sharding/Sharding.h"

namespace cleave {

enum class FactorKind : uint8_t {
  /// Computed independently for each index.
  PassThrough,
  /// Only in operands; cutting it leaves a partial result.
  Reduction,
  /// Must be whole to compute.
  NeedReplication,
  /// May be cut, but needs data of neighbours (slice, pad, concat).
  Permutation
};

struct Factor {
  int64_t size = 1;
  FactorKind kind = FactorKind::PassThrough;
  /// For Reduction.
  ReductionKind reduction = ReductionKind::Sum;
  /// Known, but sharding must not travel along it.
  bool blocked = false;
};

/// Factors of each dim of one tensor, major to minor. A dim without factors
/// (size 1, broadcast) corresponds to nothing.
struct TensorFactors {
  llvm::SmallVector<llvm::SmallVector<unsigned, 1>, 4> dims;
};

struct ShardingRule {
  llvm::SmallVector<Factor, 6> factors;
  llvm::SmallVector<TensorFactors, 3> operands;
  llvm::SmallVector<TensorFactors, 1> results;
  /// Operands that are combined once with what is reduced, like the initial
  /// value of a product: where a reduction factor is cut, each may itself be
  /// summands over its axes.
  llvm::SmallVector<unsigned, 1> accumulators;
  /// Every tensor has the same factors in each dim (possibly permuted).
  bool elementwise = false;

  unsigned numTensors() const { return operands.size() + results.size(); }
  /// Operands first, then results.
  const TensorFactors &tensor(unsigned i) const {
    return i < operands.size() ? operands[i] : results[i - operands.size()];
  }
};

} // namespace cleave

#endif // CLEAVE_DIALECTS_SHARDING_SHARDINGRULE_H

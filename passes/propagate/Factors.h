//===- Factors.h - Between shardings of tensors and of factors -*- C++ -*-===//
// Translates shardings of dims to axes of factors and back, and chooses at
// which factor axes an op is computed.
//
// Compound dims. A dim with factors f1..fk (major to minor, sizes s, shards n)
// lies in blocks of ceil(prod s / prod n). A block is the same set of indices
// as the product of the factors' blocks if, leaving out factors of size 1,
// there is a j with n_i = s_i for i < j, n_i = 1 for i > j, and n_j divides
// s_j. A factor alone in its dim may be uneven. So [8] to [2, 4] can be cut in
// 2, 4 or 8, not in 3; the 4 of [4, 6] to [24] in 2 or 4, and the 6 only after
// the 4 was cut to the end.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PASSES_PROPAGATE_FACTORS_H
#define CLEAVE_PASSES_PROPAGATE_FACTORS_H

#include "dialects/sharding/ShardingRule.h"
#include <functional>
#include <memory>

namespace cleave {

/// Axes of each factor of a rule, major to minor.
using FactorAxes = llvm::SmallVector<AxisList, 6>;

/// Bytes each rank sends to bring a tensor from one sharding to another.
using ReshardCost =
    std::function<double(const Sharding &from, const Sharding &to,
                         llvm::ArrayRef<int64_t> shape, int64_t elementBytes)>;

/// An estimate by the ring conventions: slices are free, then partial axes are
/// reduced (scattered where `to` cuts along them), moved axes are exchanged,
/// and what remains is gathered. Uneven blocks that don't nest move once more.
double estimateReshardBytes(const Sharding &from, const Sharding &to,
                            llvm::ArrayRef<int64_t> shape,
                            int64_t elementBytes);
/// Remembers the answers of `cost`.
ReshardCost cached(ReshardCost cost);

/// The axes of one dim, by its factors.
struct DimFactorAxes {
  llvm::SmallVector<AxisList, 2> axes;
  /// An axis that a major factor doesn't divide, and all after it.
  AxisList rest;
};
DimFactorAxes projectDim(const ShardingRule &rule,
                         llvm::ArrayRef<unsigned> factors,
                         llvm::ArrayRef<AxisRef> axes);

/// Distributes the axes of tensor `tensor` over its factors; [8]{a4} with
/// factors 2, 4 gives a:(1)2 and a:(2)2.
FactorAxes factorAxesOf(const ShardingRule &rule, unsigned tensor,
                        const Sharding &sharding);

/// The sharding that tensor `tensor` has while the op runs at `axes`: closed,
/// and for results, partial over the axes of reduction factors it lacks.
Sharding impliedSharding(const ShardingRule &rule, unsigned tensor,
                         llvm::ArrayRef<AxisList> axes, const Mesh &mesh);

/// Whether the op can be computed with `factor` cut at all: not if it needs
/// replication, nor if it is the diagonal of a tensor.
bool isCuttable(const ShardingRule &rule, unsigned factor);

/// Whether the op can be computed at `axes`: no axis twice, nothing on
/// need-replication factors, blocks coincide in every compound dim.
bool computableAt(const ShardingRule &rule, llvm::ArrayRef<AxisList> axes);
/// Drops what makes `axes` not computable: minor factors first.
void makeComputable(const ShardingRule &rule, FactorAxes &axes);

/// One operand or result as propagation left it.
struct PlacedTensor {
  Sharding sharding;
  llvm::SmallVector<int64_t, 4> shape;
  int64_t elementBytes = 4;
  /// Can be made in any sharding at no cost (constant, fill, empty).
  bool cheap = false;
};

struct FactorChoice {
  FactorAxes axes;
  /// Implied shardings while the op runs.
  llvm::SmallVector<Sharding, 3> operands;
  llvm::SmallVector<Sharding, 1> results;
  /// Bytes each rank sends for reshards and reductions around the op.
  double bytes = 0;
};

/// Chooses the axes of each factor that move the fewest bytes; among equals,
/// those that cut the computation most. `tensors`: operands, then results.
/// The op is not cut along `reserved`: axes of partial operands that pass it.
FactorChoice chooseFactorAxes(const ShardingRule &rule,
                              llvm::ArrayRef<PlacedTensor> tensors,
                              const Mesh &mesh,
                              const ReshardCost &cost = estimateReshardBytes,
                              llvm::ArrayRef<AxisRef> reserved = {});

/// Remembers its choices: equal layers ask the same again and again.
class FactorChooser {
public:
  explicit FactorChooser(const Mesh &mesh,
                         ReshardCost cost = estimateReshardBytes);
  ~FactorChooser();
  const FactorChoice &choose(const ShardingRule &rule,
                             llvm::ArrayRef<PlacedTensor> tensors,
                             llvm::ArrayRef<AxisRef> reserved = {});

private:
  struct Memory;
  const Mesh &mesh;
  ReshardCost cost;
  std::unique_ptr<Memory> memory;
};

} // namespace cleave

#endif // CLEAVE_PASSES_PROPAGATE_FACTORS_H

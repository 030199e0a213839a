//===- ReshardSimulation.h - Runs reshard steps on local arrays -*- C++ -*-===//
// One array per rank, and the steps of a plan done to all of them as abi.h
// describes the collectives. Written from that description, not from the
// planner: groups are found through coordinates, digit by digit. Padding is
// NaN, so that whatever depends on it shows.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_TEST_PASSES_PARTITION_RESHARDSIMULATION_H
#define CLEAVE_TEST_PASSES_PARTITION_RESHARDSIMULATION_H

#include "passes/partition/Reshard.h"
#include <vector>

namespace cleave::test {

struct LocalArray {
  llvm::SmallVector<int64_t, 4> shape;
  std::vector<double> data;
  double &at(llvm::ArrayRef<int64_t> index);
};

/// What all ranks hold.
struct Cluster {
  const Mesh &mesh;
  std::vector<LocalArray> ranks;
};

/// Calls `body` with every index of `shape`, in row-major order.
void forEachIndex(llvm::ArrayRef<int64_t> shape,
                  llvm::function_ref<void(llvm::ArrayRef<int64_t>)> body);

/// Value of the tensor at a global index; for a partial one, of summand k.
double summandAt(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> index,
                 const Sharding &sharding, int64_t k);
/// All summands together.
double valueAt(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> index,
               const Sharding &sharding);

/// Lays the tensor out as `sharding` says.
Cluster scatter(const Mesh &mesh, llvm::ArrayRef<int64_t> shape,
                const Sharding &sharding);

/// Does one step; the text of what is wrong with it, or nothing.
std::string simulate(Cluster &cluster, const ReshardStep &step,
                     int64_t elementBytes);

/// Where the arrays are not the tensor `from` described, laid out as `to`.
std::string compare(Cluster &cluster, llvm::ArrayRef<int64_t> shape,
                    const Sharding &from, const Sharding &to);

/// Plans, runs and compares; empty when all is well.
std::string runReshard(Resharder &resharder, llvm::ArrayRef<int64_t> shape,
                       const Sharding &from, const Sharding &to);

/// Every sharding of a tensor of `rank` dims over the digits of `cuts`, each
/// digit in one dim, or nowhere, or partial if `kind` is given.
std::vector<Sharding> allShardings(unsigned rank,
                                   llvm::ArrayRef<AxisRef> digits,
                                   std::optional<ReductionKind> kind);

} // namespace cleave::test

#endif // CLEAVE_TEST_PASSES_PARTITION_RESHARDSIMULATION_H

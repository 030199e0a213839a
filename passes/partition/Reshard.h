//===- Reshard.h - The cheapest way from one sharding to another -*- C++
//-*-===//
// Plans without IR: two shardings of one tensor on one mesh and a machine give
// the list of collectives with the least time under the alpha-beta model of
// Machine.h. Each step maps to one op on local tensors.
//
// Uneven dims. Between the steps a dim of size d is cut by its axes (n shards)
// into blocks of `block`: shard i holds [i*block, min(d, (i+1)*block)). At both
// ends block = ceil(d/n); between them it may be larger. Example: d=10, a=2,
// b=3, {a,b} has blocks of 2; gathering b gives {a} with blocks of 6, not the 5
// of {a}, so a realign follows (or does both at once).
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PASSES_PARTITION_RESHARD_H
#define CLEAVE_PASSES_PARTITION_RESHARD_H

#include "dialects/sharding/Sharding.h"
#include "passes/cost/Machine.h"
#include <memory>

namespace cleave {

enum class ReshardKind : uint8_t {
  AllReduce,     // axes, reduction
  AllGather,     // dim, axes: axes are the minor ones of dim
  ReduceScatter, // dim, axes, reduction: axes become the minor ones of dim
  AllToAll,      // dim is split, concatDim is concatenated, axes
  Permute,       // source -> axes: the same digits in another order
  Realign,       // dim, source -> axes, inBlock -> outBlock
  Slice,         // dim, axes: keep the part of this rank; no traffic
  Pad,           // dim: local extent inBlock -> outBlock (larger); no traffic
  Trim,          // dim: local extent inBlock -> outBlock (smaller); no traffic
  MakePartial    // axes, reduction: neutral elements but at index 0; no traffic
};
/// "all_reduce", ...
llvm::StringRef reshardName(ReshardKind kind);

struct ReshardStep {
  ReshardKind kind = ReshardKind::AllReduce;
  unsigned dim = 0;
  /// AllToAll: the dim that grows.
  unsigned concatDim = 0;
  /// The group, major to minor; of Permute and Realign the target axes.
  AxisList axes;
  /// Permute, Realign: the axes before. The member whose index over `source` is
  /// k sends to the one whose index over `axes` is k (Permute; a bijection).
  AxisList source;
  ReductionKind reduction = ReductionKind::Sum;
  /// Local extent of `dim` before and after; 0 in steps without a dim.
  int64_t inBlock = 0, outBlock = 0;
  /// Global size of `dim` (Realign: inSize and outSize of the ABI).
  int64_t dimSize = 0;
  llvm::SmallVector<int64_t, 4> localBefore, localAfter;
  /// What the busiest rank sends.
  int64_t wireBytes = 0;
  /// Index of the slowest tier of the machine that it uses.
  unsigned tier = 0;
  double seconds = 0;

  /// Whether ranks exchange anything.
  bool communicates() const { return kind < ReshardKind::Slice; }
};

struct ReshardPlan {
  llvm::SmallVector<ReshardStep, 2> steps;
  double seconds = 0;
  int64_t wireBytes = 0;
  /// Whether no cheaper list of steps exists (the search was not cut short).
  bool complete = true;
};

/// Plans reshards on one mesh and machine; remembers what it planned, since
/// equal layers ask for equal reshards.
///
/// Both shardings are legal (no axis twice) and of the rank of `shape`. A
/// partial axis of the target that the source has not partial becomes partial
/// by neutral elements; two partial kinds go through a reduction.
class Resharder {
public:
  Resharder(const Mesh &mesh, const Machine &machine);
  ~Resharder();
  Resharder(const Resharder &) = delete;
  Resharder &operator=(const Resharder &) = delete;

  const ReshardPlan &plan(llvm::ArrayRef<int64_t> shape, int64_t elementBytes,
                          const Sharding &from, const Sharding &to);
  const Topology &topology() const;

private:
  struct Cache;
  std::unique_ptr<Cache> cache;
};

/// `all_gather dim 0 over "x", 8x4 -> 16x4, 192 B`: for messages and tests.
void print(llvm::raw_ostream &os, const Mesh &mesh, const ReshardStep &step);
/// One step a line.
std::string toString(const Mesh &mesh, const ReshardPlan &plan);

} // namespace cleave

#endif // CLEAVE_PASSES_PARTITION_RESHARD_H

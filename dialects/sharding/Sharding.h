//===- Sharding.h - Meshes, axes and shardings without IR ------*- C++ -*-===//
// The plain data that says how a tensor lies on a mesh. The attributes of the
// cleave dialect convert to and from it; the algorithms (propagation, reshard,
// memory of a rank) work on it alone. Uses LLVM's containers and no MLIR.
//
// Layout of an uneven dim. A dim of size d whose axes multiply to n has blocks
// of ceil(d / n): shard i holds [i*block, min(d, (i+1)*block)), so the last
// shards are shorter or empty. Every rank allocates a whole block; what lies
// beyond d is padding whose content is unspecified.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DIALECTS_SHARDING_SHARDING_H
#define CLEAVE_DIALECTS_SHARDING_SHARDING_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>

namespace llvm {
class raw_ostream;
} // namespace llvm

namespace cleave {

/// How the summands of a partial value combine. MaxNum and MinNum ignore NaN
/// (IEEE 754-2008 maxNum); Max and Min propagate it and are signed on
/// integers; UMax and UMin are unsigned.
enum class ReductionKind : uint8_t {
  Sum,
  Prod,
  Max,
  Min,
  UMax,
  UMin,
  MaxNum,
  MinNum,
  And,
  Or,
  Xor
};
/// "sum", "prod", "max", ...
llvm::StringRef reductionName(ReductionKind kind);
std::optional<ReductionKind> parseReduction(llvm::StringRef name);

/// One named axis of a mesh.
struct MeshAxis {
  std::string name;
  int64_t size = 1;
  bool operator==(const MeshAxis &) const = default;
};

/// A whole axis, or a sub-axis: the digit of size `size` of the axis after
/// `pre` shards to its left. "a":(2)3 of an axis of size 12 has pre=2, size=3:
/// coordinate c has the digit (c / (12 / (2*3))) % 3. A whole axis has pre=1
/// and size = the axis size.
struct AxisRef {
  unsigned axis = 0;
  int64_t pre = 1;
  int64_t size = 1;
  int64_t next() const { return pre * size; }
  bool operator==(const AxisRef &) const = default;
  auto operator<=>(const AxisRef &) const = default;
};
using AxisList = llvm::SmallVector<AxisRef, 2>;

/// Named axes with sizes, and which rank sits at each coordinate.
struct Mesh {
  std::string name;
  llvm::SmallVector<MeshAxis, 4> axes;
  /// ranks[i] is the rank at row-major coordinate i; empty means i itself.
  llvm::SmallVector<int64_t, 0> ranks;

  int64_t numRanks() const;
  std::optional<unsigned> findAxis(llvm::StringRef axisName) const;
  AxisRef whole(unsigned axis) const { return {axis, 1, axes[axis].size}; }
  /// Coordinates (one per axis) of a rank.
  llvm::SmallVector<int64_t, 4> coordinates(int64_t rank) const;
  int64_t rankAt(llvm::ArrayRef<int64_t> coordinates) const;
  /// Digit of `ref` at these coordinates.
  int64_t digit(AxisRef ref, llvm::ArrayRef<int64_t> coordinates) const;
  /// Row-major index over `axes`, the first being the major one.
  int64_t linearIndex(llvm::ArrayRef<AxisRef> axes,
                      llvm::ArrayRef<int64_t> coordinates) const;
  bool operator==(const Mesh &) const = default;
};

/// Product of the sizes.
int64_t axesSize(llvm::ArrayRef<AxisRef> axes);
/// Whether the two share a digit: a:(1)4 and a:(2)2 do, a:(1)2 and a:(2)2 not.
/// So do those that no common list of digits has: a:(1)2 and a:(3)2 of 6.
bool overlaps(AxisRef a, AxisRef b);
bool overlaps(llvm::ArrayRef<AxisRef> axes, AxisRef b);
/// Joins neighbours that continue each other: [a:(1)2, a:(2)2] gives [a:(1)4].
AxisList mergeAxes(llvm::ArrayRef<AxisRef> axes);
/// Sorted and merged, for sets whose order means nothing (replicated, partial).
AxisList normalizeAxisSet(llvm::ArrayRef<AxisRef> axes);
/// Splits both lists at each other's cuts, so that every pair of refs is equal
/// or disjoint: [a] and [a:(2)2], a=4, give [a:(1)2, a:(2)2] and [a:(2)2].
/// Refs that can't be aligned (a:(1)2 against a:(1)3 of 6) stay as they are.
void alignAxes(AxisList &a, AxisList &b);
/// What of `axes` is not in `removed`, in its order; parts of an axis may stay.
/// Sub-axes that cannot be aligned stay as well.
AxisList withoutAxes(AxisList axes, AxisList removed);

/// How one dim is cut: axes from major to minor.
struct DimSharding {
  AxisList axes;
  /// Whether propagation may append axes.
  bool open = false;
  /// User priority; 0 is the most important and the default.
  std::optional<unsigned> priority;
  int64_t numShards() const { return axesSize(axes); }
  bool operator==(const DimSharding &) const = default;
};

/// How one tensor lies on a mesh.
struct Sharding {
  llvm::SmallVector<DimSharding, 4> dims;
  /// Axes along which propagation must leave the tensor whole.
  AxisList replicated;
  /// Each rank along these axes holds a summand.
  AxisList partial;
  ReductionKind kind = ReductionKind::Sum;

  /// Every dim unsharded; open or closed.
  static Sharding whole(unsigned rank, bool open);
  bool isFullyReplicated() const;
  /// Axes that cut a dim, in order of dims.
  AxisList shardedAxes() const;
  /// Whether any dim, `replicated` or `partial` uses a digit of `axis`.
  bool uses(AxisRef axis) const;
  /// Same layout of the data: ignores open, priority and replicated.
  bool sameLayout(const Sharding &other) const;
  bool operator==(const Sharding &) const = default;
};

inline int64_t ceilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }
/// Size of the block that every rank allocates for this dim.
inline int64_t blockSize(int64_t dimSize, const DimSharding &dim) {
  return ceilDiv(dimSize, dim.numShards());
}
/// Local (block) shape of a tensor.
llvm::SmallVector<int64_t, 4> localShape(llvm::ArrayRef<int64_t> shape,
                                         const Sharding &sharding);

/// Prints as in IR: "a", "a":(1)2; [{"a", ?}, {}p1], replicated={"b"}.
void print(llvm::raw_ostream &os, const Mesh &mesh, AxisRef ref);
void print(llvm::raw_ostream &os, const Mesh &mesh,
           llvm::ArrayRef<AxisRef> axes);
void print(llvm::raw_ostream &os, const Mesh &mesh, const Sharding &sharding);
std::string toString(const Mesh &mesh, const Sharding &sharding);
std::string toString(const Mesh &mesh, llvm::ArrayRef<AxisRef> axes);

} // namespace cleave

#endif // CLEAVE_DIALECTS_SHARDING_SHARDING_H

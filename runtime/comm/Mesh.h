//===- Mesh.h - Ranks, coordinates and blocks -------------------*- C++ -*-===//
#ifndef CLEAVE_RUNTIME_COMM_MESH_H
#define CLEAVE_RUNTIME_COMM_MESH_H

#include "cleave/abi.h"
#include "runtime/support/Status.h"
#include <vector>

namespace cleave::rt {

/// The mesh of a program. A position is a row-major index over all axes; the
/// program's table says which rank sits at each.
class Mesh {
public:
  explicit Mesh(const CleaveProgram &program);

  /// Checks sizes and that the table of ranks is a permutation.
  static Status check(const CleaveProgram &program);

  int64_t numRanks() const { return int64_t(rankAt.size()); }
  int64_t numAxes() const { return int64_t(sizes.size()); }
  int64_t axisSize(int64_t axis) const { return sizes[axis]; }
  int64_t rank(int64_t position) const { return rankAt[position]; }
  int64_t position(int64_t rank) const { return positionOf[rank]; }
  int64_t coordinate(int64_t position, int64_t axis) const {
    return position / strides[axis] % sizes[axis];
  }

  /// Checks that every reference names an axis and a digit of it.
  Status check(const CleaveAxes &axes) const;

  /// Row-major index of a position over `axes`; 0 for no axes.
  int64_t index(int64_t position, const CleaveAxes &axes) const;

  /// The position with all digits of `axes` set to zero: equal exactly for
  /// positions that differ only in those digits.
  int64_t withoutDigits(int64_t position, const CleaveAxes &axes) const;

  /// The position one gets by moving `delta` along an axis, or -1 outside.
  int64_t neighbour(int64_t position, int64_t axis, int64_t delta) const;

private:
  std::vector<int64_t> sizes, strides, rankAt, positionOf;
};

/// Product of the sizes of `axes`.
int64_t numBlocks(const CleaveAxes &axes);

} // namespace cleave::rt

#endif // CLEAVE_RUNTIME_COMM_MESH_H

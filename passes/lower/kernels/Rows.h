//===- Rows.h - Groups of nests that share their outer loops ----*- C++ -*-===//
#ifndef CLEAVE_PASSES_LOWER_KERNELS_ROWS_H
#define CLEAVE_PASSES_LOWER_KERNELS_ROWS_H

#include "passes/lower/kernels/Nest.h"

namespace cleave::kernels {

/// A nest in a group: which of its loops are the group's rows, and the order
/// of the others, the vector loop last.
struct Member {
  Nest nest;
  llvm::SmallVector<int> rows;  // per row of the group: a loop of the nest
  llvm::SmallVector<int> extra; // parallel loops around a reduction
  llvm::SmallVector<int> inner; // the others; the vector loop last

  /// The loop that vectors run along, or -1.
  int vectorLoop() const { return inner.empty() ? -1 : inner.back(); }
  /// Whether all inner loops reduce, with combiners that vectors can use.
  bool reducesAll() const;
  /// Whether all inner loops are parallel.
  bool isPointwise() const;
};

/// Members that run in one inner loop nest.
struct Segment {
  llvm::SmallVector<unsigned> members;
};

struct Group {
  llvm::SmallVector<int64_t> rowSizes;
  std::vector<Member> members;
  std::vector<Segment> segments;
};

/// Cuts a run of nests into groups, and these into segments.
std::vector<Group> formGroups(std::vector<Nest> nests);

/// Emits one group at the builder's place.
void emitGroup(Group &group, mlir::OpBuilder &b, const CpuIsa &isa);

/// Gives temporaries that only this group uses the size of one row. Returns
/// the allocations to erase.
void shrinkTemporaries(Group &group, mlir::OpBuilder &b);

} // namespace cleave::kernels

#endif // CLEAVE_PASSES_LOWER_KERNELS_ROWS_H

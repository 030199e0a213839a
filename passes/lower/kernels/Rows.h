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

/// An input that a segment asks for before it is needed: what the access reads
/// `distance` elements on.
struct ReadAhead {
  unsigned member, operand;
  int64_t distance;
};

/// Members that run in one inner loop nest.
struct Segment {
  llvm::SmallVector<unsigned> members;
  llvm::SmallVector<ReadAhead> readAheads;
};

struct Group {
  llvm::SmallVector<int64_t> rowSizes;
  std::vector<Member> members;
  std::vector<Segment> segments;
  /// Whether no cache holds what the group reads and writes.
  bool streams = false;
};

inline constexpr int64_t kCacheLineBytes = 64;
inline constexpr int64_t kLeastBypassBytes = 32;

/// Cuts a run of nests into groups, and these into segments.
std::vector<Group> formGroups(std::vector<Nest> nests);

/// Emits the inner loops of one segment at the emitter's place.
void emitSegment(Group &group, Segment &segment,
                 llvm::ArrayRef<mlir::Value> rowIvs,
                 llvm::ArrayRef<mlir::Value> extraIvs, NestEmitter &e,
                 const CpuIsa &isa);

/// Rough count of instructions of a body, with math functions expanded.
int64_t weight(const Nest &nest);

/// Bytes of an element in memory.
int64_t bytesOf(mlir::Type element);

/// Decides whether the group streams, and which segment reads ahead.
void planStreams(Group &group);

/// Whether a vector of `width` elements that a streaming group writes goes
/// around the caches.
bool bypassesCaches(const Group &group, const Access &access, int64_t width);

/// Orders what the kernel wrote around the caches before what follows it.
void fenceStreams(mlir::func::FuncOp kernel);

/// Gives temporaries that only this group uses the size of one row. Returns
/// the allocations to erase.
void shrinkTemporaries(Group &group, mlir::OpBuilder &b);

} // namespace cleave::kernels

#endif // CLEAVE_PASSES_LOWER_KERNELS_ROWS_H

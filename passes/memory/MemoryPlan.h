//===- MemoryPlan.h - Offsets of buffers in one arena ----------*- C++ -*-===//
// Without IR. Buffers have a size and the first and last moment at which they
// hold something; two whose moments meet must not overlap in space. Finding the
// smallest arena is NP-hard, so several greedy orders are tried and the best
// one is kept; most often it meets the lower bound (the largest sum of sizes
// alive at one moment), and then no further order is tried.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PASSES_MEMORY_MEMORYPLAN_H
#define CLEAVE_PASSES_MEMORY_MEMORYPLAN_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <vector>

namespace cleave {

/// Alignment of every buffer: a cache line, and a vector of AVX-512.
inline constexpr int64_t kMemoryAlignment = 64;

/// Alive from moment `begin` to moment `end`, both included.
struct PlannedBuffer {
  int64_t bytes = 0;
  int64_t begin = 0;
  int64_t end = 0;
};

struct MemoryPlan {
  /// Per buffer, a multiple of the alignment.
  std::vector<int64_t> offsets;
  /// Size of the arena: exactly up to the end of the last buffer.
  int64_t bytes = 0;
  /// No plan is smaller.
  int64_t lowerBound = 0;
  /// The order that won: "size", "begin", "area", "length", "end".
  llvm::StringRef order;
  /// Bytes that each tried order gave, in the order they were tried.
  std::vector<int64_t> tried;
};

MemoryPlan planMemory(llvm::ArrayRef<PlannedBuffer> buffers);

} // namespace cleave

#endif // CLEAVE_PASSES_MEMORY_MEMORYPLAN_H

//===- AxisLists.h - Prefixes of lists of axes -----------------*- C++ -*-===//
// A dim or factor is cut by a list of axes, major to minor, and a shorter list
// is a coarser cut. Sub-axes count as parts: ["a":(1)2] is a prefix of ["a"].
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PASSES_PROPAGATE_AXISLISTS_H
#define CLEAVE_PASSES_PROPAGATE_AXISLISTS_H

#include "dialects/sharding/Sharding.h"

namespace cleave {

struct PrefixComparison {
  /// The longest prefix of both.
  AxisList common;
  /// What follows it in each.
  AxisList restA, restB;
};
/// ["a","b"] and ["a","c"] give ["a"], ["b"], ["c"].
PrefixComparison comparePrefix(llvm::ArrayRef<AxisRef> a,
                               llvm::ArrayRef<AxisRef> b);

/// The major part of `ref` that shares no digit with `used`; size 1 if none.
AxisRef freePart(AxisRef ref, llvm::ArrayRef<AxisRef> used);

/// The prefix of `axes` before the first digit that is in `used`.
AxisList freePrefix(llvm::ArrayRef<AxisRef> axes, llvm::ArrayRef<AxisRef> used);

/// The longest prefix of `axes` that cuts `size` without remainder; a last
/// axis may be cut to a sub-axis: 6 and ["a"], a=4, give ["a":(1)2].
AxisList dividingPrefix(llvm::ArrayRef<AxisRef> axes, int64_t size);

} // namespace cleave

#endif // CLEAVE_PASSES_PROPAGATE_AXISLISTS_H

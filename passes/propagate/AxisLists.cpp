//===- AxisLists.cpp - Prefixes of lists of axes --------------------------===//
#include "passes/propagate/AxisLists.h"
#include <numeric>

namespace cleave {

static void append(AxisList &list, AxisRef ref) {
  if (ref.size == 1)
    return;
  if (!list.empty() && list.back().axis == ref.axis &&
      list.back().next() == ref.pre)
    list.back().size *= ref.size;
  else
    list.push_back(ref);
}

PrefixComparison comparePrefix(llvm::ArrayRef<AxisRef> a,
                               llvm::ArrayRef<AxisRef> b) {
  PrefixComparison result;
  size_t i = 0, j = 0;
  AxisRef x, y;
  auto load = [](llvm::ArrayRef<AxisRef> list, size_t &k, AxisRef &ref) {
    while (ref.size == 1 && k < list.size())
      ref = list[k++];
    return ref.size != 1;
  };
  while (true) {
    bool hasX = load(a, i, x), hasY = load(b, j, y);
    if (!hasX || !hasY || x.axis != y.axis || x.pre != y.pre)
      break;
    int64_t shared = std::gcd(x.size, y.size);
    if (shared == 1)
      break;
    append(result.common, {x.axis, x.pre, shared});
    x = {x.axis, x.pre * shared, x.size / shared};
    y = {y.axis, y.pre * shared, y.size / shared};
    if (x.size != 1 && y.size != 1)
      break;
  }
  append(result.restA, x);
  append(result.restB, y);
  for (AxisRef ref : a.drop_front(i))
    append(result.restA, ref);
  for (AxisRef ref : b.drop_front(j))
    append(result.restB, ref);
  return result;
}

AxisRef freePart(AxisRef ref, llvm::ArrayRef<AxisRef> used) {
  for (AxisRef other : used) {
    if (!overlaps(ref, other))
      continue;
    if (other.pre <= ref.pre || other.pre % ref.pre != 0 ||
        ref.next() % other.pre != 0)
      return {ref.axis, ref.pre, 1};
    ref.size = other.pre / ref.pre;
  }
  return ref;
}

AxisList freePrefix(llvm::ArrayRef<AxisRef> axes,
                    llvm::ArrayRef<AxisRef> used) {
  AxisList result;
  for (AxisRef ref : axes) {
    AxisRef part = freePart(ref, used);
    append(result, part);
    if (part != ref)
      break;
  }
  return result;
}

AxisList dividingPrefix(llvm::ArrayRef<AxisRef> axes, int64_t size) {
  AxisList result;
  for (AxisRef ref : axes) {
    int64_t part = std::gcd(ref.size, size);
    append(result, {ref.axis, ref.pre, part});
    if (part != ref.size)
      break;
    size /= part;
  }
  return result;
}

} // namespace cleave

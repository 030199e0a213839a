//===- ReshardEstimate.cpp - Bytes of a reshard without planning it -------===//
#include "passes/propagate/AxisLists.h"
#include "passes/propagate/Factors.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <map>
#include <memory>

namespace cleave {

static bool sameAxes(const Sharding &a, const Sharding &b) {
  for (auto [x, y] : llvm::zip_equal(a.dims, b.dims))
    if (x.axes != y.axes)
      return false;
  return a.partial == b.partial && (a.partial.empty() || a.kind == b.kind);
}

/// Product of those in `axes` that are (or are not) in `set`, both aligned.
static double sizeOf(llvm::ArrayRef<AxisRef> axes, llvm::ArrayRef<AxisRef> set,
                     bool inside) {
  double n = 1;
  for (AxisRef ref : axes)
    if (overlaps(set, ref) == inside)
      n *= ref.size;
  return n;
}

/// Whether each block of the coarser cut is a row of blocks of the finer one.
static bool nested(int64_t size, int64_t coarse, int64_t fine) {
  return coarse == 1 ||
         ceilDiv(size, coarse) == ceilDiv(size, fine) * (fine / coarse);
}

double estimateReshardBytes(const Sharding &from, const Sharding &to,
                            llvm::ArrayRef<int64_t> shape,
                            int64_t elementBytes) {
  if (sameAxes(from, to))
    return 0;
  AxisList leaves, comes;
  bool realign = false;
  double local = elementBytes, target = elementBytes;
  for (auto [size, a, b] : llvm::zip_equal(shape, from.dims, to.dims)) {
    local *= blockSize(size, a);
    target *= blockSize(size, b);
    if (a.axes == b.axes)
      continue;
    PrefixComparison cut = comparePrefix(a.axes, b.axes);
    realign |= !nested(size, axesSize(cut.common), a.numShards()) ||
               !nested(size, axesSize(cut.common), b.numShards());
    llvm::append_range(leaves, cut.restA);
    llvm::append_range(comes, cut.restB);
  }
  AxisList reduced;
  for (AxisRef ref : from.partial)
    if (from.kind != to.kind || !overlaps(to.partial, ref))
      reduced.push_back(ref);
  alignAxes(leaves, comes);
  alignAxes(reduced, comes);
  alignAxes(leaves, comes);

  double bytes = 0;
  auto sent = [](double n) { return (n - 1) / n; };
  AxisList present = leaves;
  llvm::append_range(present, reduced);
  local /= sizeOf(comes, present, false);
  double scattered = sizeOf(reduced, comes, true);
  bytes += sent(scattered) * local;
  local /= scattered;
  bytes += 2 * sent(sizeOf(reduced, comes, false)) * local;
  bytes += sent(sizeOf(leaves, comes, true)) * local;
  // Blocks of an uneven dim are larger than their share.
  double gathered = sizeOf(leaves, comes, false);
  bytes += (gathered - 1) * std::max(local, target / gathered);
  // Blocks that don't nest: what each rank holds shifts.
  return realign ? bytes + target : bytes;
}

namespace {
struct Query {
  Sharding from, to;
  llvm::SmallVector<int64_t, 4> shape;
  int64_t elementBytes;
};

/// Orders queries by what their answer depends on.
struct QueryLess {
  static int compare(llvm::ArrayRef<AxisRef> a, llvm::ArrayRef<AxisRef> b) {
    if (a.size() != b.size())
      return a.size() < b.size() ? -1 : 1;
    for (auto [x, y] : llvm::zip_equal(a, b))
      if (x != y)
        return x < y ? -1 : 1;
    return 0;
  }
  static int compare(const Sharding &a, const Sharding &b) {
    for (auto [x, y] : llvm::zip_equal(a.dims, b.dims))
      if (int order = compare(x.axes, y.axes))
        return order;
    if (int order = compare(a.partial, b.partial))
      return order;
    return a.partial.empty()
               ? 0
               : static_cast<int>(a.kind) - static_cast<int>(b.kind);
  }
  bool operator()(const Query &a, const Query &b) const {
    if (a.elementBytes != b.elementBytes)
      return a.elementBytes < b.elementBytes;
    if (a.shape != b.shape)
      return a.shape < b.shape;
    if (int order = compare(a.from, b.from))
      return order < 0;
    return compare(a.to, b.to) < 0;
  }
};
} // namespace

ReshardCost cached(ReshardCost cost) {
  auto answers = std::make_shared<std::map<Query, double, QueryLess>>();
  return [answers, cost = std::move(cost)](
             const Sharding &from, const Sharding &to,
             llvm::ArrayRef<int64_t> shape, int64_t elementBytes) {
    Query query{from, to, {shape.begin(), shape.end()}, elementBytes};
    auto known = answers->find(query);
    if (known == answers->end())
      known =
          answers
              ->emplace(std::move(query), cost(from, to, shape, elementBytes))
              .first;
    return known->second;
  };
}

} // namespace cleave

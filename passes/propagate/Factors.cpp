//===- Factors.cpp - Between shardings of tensors and of factors ----------===//
#include "passes/propagate/Factors.h"
#include "passes/propagate/AxisLists.h"
#include "llvm/ADT/STLExtras.h"

namespace cleave {

//===----------------------------------------------------------------------===//
// Projection
//===----------------------------------------------------------------------===//

namespace {
using Dim = llvm::ArrayRef<unsigned>;
} // namespace

/// Factors of a dim that are larger than one index.
static llvm::SmallVector<unsigned, 4> largeFactors(const ShardingRule &rule,
                                                   Dim dim) {
  llvm::SmallVector<unsigned, 4> result;
  for (unsigned f : dim)
    if (rule.factors[f].size != 1)
      result.push_back(f);
  return result;
}

DimFactorAxes projectDim(const ShardingRule &rule,
                         llvm::ArrayRef<unsigned> factors,
                         llvm::ArrayRef<AxisRef> axes) {
  DimFactorAxes result;
  result.axes.resize(factors.size());
  if (factors.size() <= 1) {
    if (factors.empty())
      result.rest.assign(axes.begin(), axes.end());
    else
      result.axes[0].assign(axes.begin(), axes.end());
    return result;
  }
  size_t last = factors.size() - 1;
  while (last > 0 && rule.factors[factors[last]].size == 1)
    --last;
  size_t i = 0;
  llvm::ArrayRef<AxisRef> todo = axes;
  int64_t left = rule.factors[factors[0]].size;
  AxisRef ref;
  while (ref.size != 1 || !todo.empty()) {
    if (ref.size == 1) {
      ref = todo.front();
      todo = todo.drop_front();
      continue;
    }
    if (left == 1 && i < last) {
      left = rule.factors[factors[++i]].size;
      continue;
    }
    int64_t part = i == last              ? ref.size
                   : left % ref.size == 0 ? ref.size
                   : ref.size % left == 0 ? left
                                          : 1;
    if (part == 1) {
      // A major factor that the axis doesn't divide keeps it to itself.
      result.rest.push_back(ref);
      llvm::append_range(result.rest, todo);
      return result;
    }
    result.axes[i].push_back({ref.axis, ref.pre, part});
    ref = {ref.axis, ref.pre * part, ref.size / part};
    left = left % part == 0 ? left / part : left;
  }
  return result;
}

FactorAxes factorAxesOf(const ShardingRule &rule, unsigned tensor,
                        const Sharding &sharding) {
  FactorAxes result(rule.factors.size());
  const auto &dims = rule.tensor(tensor).dims;
  for (auto [factors, dim] : llvm::zip_equal(dims, sharding.dims)) {
    if (dim.axes.empty())
      continue;
    DimFactorAxes projected = projectDim(rule, factors, dim.axes);
    for (auto [f, axes] : llvm::zip_equal(factors, projected.axes))
      if (result[f].empty())
        result[f] = mergeAxes(axes);
  }
  return result;
}

Sharding impliedSharding(const ShardingRule &rule, unsigned tensor,
                         llvm::ArrayRef<AxisList> axes, const Mesh &mesh) {
  const TensorFactors &factors = rule.tensor(tensor);
  Sharding result = Sharding::whole(factors.dims.size(), /*open=*/false);
  for (auto [dim, sharding] : llvm::zip_equal(factors.dims, result.dims)) {
    for (unsigned f : dim)
      llvm::append_range(sharding.axes, axes[f]);
    sharding.axes = mergeAxes(sharding.axes);
  }
  if (tensor < rule.operands.size())
    return result;
  for (auto [f, factor] : llvm::enumerate(rule.factors)) {
    if (factor.kind != FactorKind::Reduction || axes[f].empty())
      continue;
    llvm::append_range(result.partial, axes[f]);
    result.kind = factor.reduction;
  }
  result.partial = normalizeAxisSet(result.partial);
  return result;
}

//===----------------------------------------------------------------------===//
// What can be computed
//===----------------------------------------------------------------------===//

bool isCuttable(const ShardingRule &rule, unsigned factor) {
  if (rule.factors[factor].kind == FactorKind::NeedReplication)
    return false;
  // A diagonal has one factor in two dims: its blocks are no product.
  for (unsigned t = 0; t < rule.numTensors(); ++t) {
    unsigned uses = 0;
    for (Dim dim : rule.tensor(t).dims)
      uses += llvm::count(dim, factor);
    if (uses > 1)
      return false;
  }
  return true;
}

/// The condition of the header, or that the blocks happen to be equal.
static bool blocksCoincide(const ShardingRule &rule, Dim dim,
                           llvm::ArrayRef<AxisList> axes) {
  llvm::SmallVector<std::pair<int64_t, int64_t>, 4> cuts;
  for (unsigned f : dim) {
    std::pair<int64_t, int64_t> cut{rule.factors[f].size, axesSize(axes[f])};
    if (cut.first != 1 || cut.second != 1)
      cuts.push_back(cut);
  }
  if (cuts.size() <= 1)
    return true;
  size_t j = 0;
  while (j < cuts.size() && cuts[j].first == cuts[j].second &&
         cuts[j].first != 1)
    ++j;
  if (j == cuts.size())
    return true;
  auto [size, shards] = cuts[j];
  int64_t minors = 1;
  for (auto [minorSize, minorShards] : llvm::ArrayRef(cuts).drop_front(j + 1)) {
    if (minorShards != 1)
      return false;
    minors *= minorSize;
  }
  if (size % shards == 0)
    return true;
  return j == 0 &&
         ceilDiv(size, shards) * minors == ceilDiv(size * minors, shards);
}

/// Coarsens the factors of one dim until its blocks coincide.
static bool fixDim(const ShardingRule &rule, Dim dim, FactorAxes &axes) {
  if (dim.size() < 2 || blocksCoincide(rule, dim, axes))
    return false;
  llvm::SmallVector<unsigned, 4> large = largeFactors(rule, dim);
  for (unsigned f : dim)
    if (rule.factors[f].size == 1)
      axes[f].clear();
  bool open = false;
  for (unsigned f : large) {
    if (open)
      axes[f].clear();
    open |= axesSize(axes[f]) != rule.factors[f].size;
  }
  if (blocksCoincide(rule, dim, axes))
    return true;
  for (unsigned f : large)
    if (axesSize(axes[f]) != rule.factors[f].size)
      axes[f] = dividingPrefix(axes[f], rule.factors[f].size);
  return true;
}

static const Factor *firstCutReduction(const ShardingRule &rule,
                                       llvm::ArrayRef<AxisList> axes) {
  for (auto [factor, list] : llvm::zip_equal(rule.factors, axes))
    if (factor.kind == FactorKind::Reduction && axesSize(list) > 1)
      return &factor;
  return nullptr;
}

/// The prefix of `axes` that uses no digit of `used`, and none twice; adds it
/// to `used`.
static AxisList claim(llvm::ArrayRef<AxisRef> axes, AxisList &used) {
  AxisList result;
  for (AxisRef ref : axes) {
    AxisList part = freePrefix({ref}, used);
    llvm::append_range(result, part);
    llvm::append_range(used, part);
    if (part != AxisList{ref})
      break;
  }
  return mergeAxes(result);
}

void makeComputable(const ShardingRule &rule, FactorAxes &axes) {
  AxisList used;
  const Factor *reduction = firstCutReduction(rule, axes);
  for (auto [f, factor] : llvm::enumerate(rule.factors)) {
    if (axes[f].empty())
      continue;
    bool otherKind = factor.kind == FactorKind::Reduction && reduction &&
                     factor.reduction != reduction->reduction;
    if (otherKind || !isCuttable(rule, f))
      axes[f].clear();
    else
      axes[f] = claim(axes[f], used);
  }
  bool changed = true;
  while (changed) {
    changed = false;
    for (unsigned t = 0; t < rule.numTensors(); ++t)
      for (Dim dim : rule.tensor(t).dims)
        changed |= fixDim(rule, dim, axes);
  }
}

bool computableAt(const ShardingRule &rule, llvm::ArrayRef<AxisList> axes) {
  FactorAxes fixed(axes.begin(), axes.end());
  for (AxisList &list : fixed)
    list = mergeAxes(list);
  FactorAxes before = fixed;
  makeComputable(rule, fixed);
  return fixed == before;
}

} // namespace cleave

//===- Visit.cpp - One step of propagation: the tensors of one op ---------===//
#include "passes/propagate/Visit.h"
#include "passes/propagate/AxisLists.h"
#include "llvm/ADT/STLExtras.h"

namespace cleave {

bool Visitor::visit(unsigned opIndex, Phase visitPhase,
                    llvm::SmallVectorImpl<unsigned> &changed) {
  op = opIndex;
  phase = visitPhase;
  info = &state.ops[op];
  rule = &state.problem.ops[op].rule;
  if (llvm::none_of(info->tensors,
                    [&](unsigned c) { return state.classes[c].sharded; }))
    return false;
  collect();
  llvm::SmallVector<unsigned, 6> factors;
  for (const Wish &wish : wishes)
    if (allowed(wish.factor) && wanted(wish))
      factors.push_back(wish.factor);
  order(factors);
  for (size_t i = 0; i < factors.size(); ++i)
    apply(wishes[factors[i]], llvm::ArrayRef(factors).drop_front(i + 1),
          changed);
  return llvm::any_of(wishes,
                      [](const Wish &wish) { return !wish.others.empty(); });
}

//===----------------------------------------------------------------------===//
// Who may speak and who may listen
//===----------------------------------------------------------------------===//

bool Visitor::isSource(const FactorPlace &place) const {
  const ClassState &c = cls(place.tensor);
  bool isOperand = place.tensor < info->numOperands;
  if (c.foreign || !c.sharded || (c.cheap && isOperand))
    return false;
  // A broadcast operand waits for the others.
  if (info->passThrough && !info->full[place.tensor] &&
      phase < Phase::Broadcast)
    return false;
  switch (state.problem.ops[op].direction) {
  case Direction::Both:
    return true;
  case Direction::Forward:
    return isOperand;
  case Direction::Backward:
    return !isOperand;
  case Direction::None:
    return false;
  }
  return false;
}

bool Visitor::isTarget(const FactorPlace &place) const {
  if (cls(place.tensor).foreign)
    return false;
  if (!info->full[place.tensor] && phase < Phase::PassThrough)
    return false;
  bool isOperand = place.tensor < info->numOperands;
  switch (state.problem.ops[op].direction) {
  case Direction::Both:
    return true;
  case Direction::Forward:
    return !isOperand;
  case Direction::Backward:
    return isOperand;
  case Direction::None:
    return false;
  }
  return false;
}

bool Visitor::allowed(unsigned factor) const {
  return rule->factors[factor].kind == FactorKind::PassThrough ||
         phase >= Phase::Reduction;
}

//===----------------------------------------------------------------------===//
// Wishes
//===----------------------------------------------------------------------===//

AxisList Visitor::axesAt(unsigned factor, const FactorPlace &place) const {
  const DimState &dim = cls(place.tensor).dims[place.dim];
  const auto &factors = rule->tensor(place.tensor).dims[place.dim];
  if (factors.size() == 1 || dim.axes.empty())
    return dim.axes;
  DimFactorAxes projected = projectDim(*rule, factors, dim.axes);
  return mergeAxes(projected.axes[place.position]);
}

void Visitor::collect() {
  wishes.clear();
  wishes.resize(rule->factors.size());
  for (unsigned f = 0; f < rule->factors.size(); ++f)
    wishes[f] = wishOf(f);
  if (phase != Phase::Resolve)
    return;
  for (Wish &wish : wishes) {
    if (wish.others.empty())
      continue;
    auto sources = std::move(wish.others);
    wish.others.clear();
    takeCheapest(wish, sources);
  }
}

/// The longest list of which all others are prefixes; if there is none, the
/// prefix that all share, and the lists in `others`.
Visitor::Wish Visitor::wishOf(unsigned factor) {
  Wish wish;
  wish.factor = factor;
  bool disagree = false;
  for (const FactorPlace &place : info->places[factor]) {
    const ClassState &c = cls(place.tensor);
    const DimState &dim = c.dims[place.dim];
    bool isResult = place.tensor >= info->numOperands;
    // Elementwise ops don't cut their operands along what a closed result
    // doesn't have: it would only be gathered again.
    if (info->passThrough && isResult && !dim.open && !c.foreign) {
      wish.axes = axesAt(factor, place);
      wish.source = place;
      return wish;
    }
    if (dim.axes.empty() || !isSource(place))
      continue;
    AxisList axes = axesAt(factor, place);
    if (axes.empty() || axes == wish.axes)
      continue;
    PrefixComparison cut = comparePrefix(wish.axes, axes);
    if (!cut.restA.empty() && !cut.restB.empty()) {
      disagree = true;
      wish.axes = cut.common;
    } else if (!disagree && !cut.restB.empty()) {
      wish.axes = std::move(axes);
      wish.source = place;
    }
  }
  if (disagree)
    findOthers(wish);
  return wish;
}

void Visitor::findOthers(Wish &wish) const {
  for (const FactorPlace &place : info->places[wish.factor]) {
    if (!isSource(place))
      continue;
    AxisList axes = axesAt(wish.factor, place);
    if (!axes.empty())
      wish.others.push_back({std::move(axes), place});
  }
  wish.source = wish.others.front().place;
}

/// Decides between lists that disagree; equal bytes: the larger tensor, then
/// the finer cut, then the lower operand.
void Visitor::takeCheapest(Wish &wish, llvm::ArrayRef<Source> sources) {
  const Source *best = nullptr;
  llvm::SmallVector<double, 8> costs;
  auto key = [&](const Source &source, double bytes) {
    return std::make_tuple(bytes, -cls(source.place.tensor).bytes,
                           -axesSize(source.axes));
  };
  for (const Source &source : sources) {
    costs.push_back(costOf(wish.factor, source.axes));
    if (best && key(*best, wish.bytes) <= key(source, costs.back()))
      continue;
    best = &source;
    wish.bytes = costs.back();
  }
  wish.axes = best->axes;
  wish.source = best->place;
  for (auto [source, bytes] : llvm::zip_equal(sources, costs))
    if (!comparePrefix(best->axes, source.axes).restB.empty())
      wish.losers.push_back(
          {state.valueOf(op, source.place.tensor), source.axes, bytes});
}

/// What `place` can still take of the wish.
AxisList Visitor::extension(const Wish &wish, const FactorPlace &place) const {
  const ClassState &c = cls(place.tensor);
  const DimState &dim = c.dims[place.dim];
  if (!dim.open || wish.axes.empty() || !isTarget(place))
    return {};
  const auto &factors = rule->tensor(place.tensor).dims[place.dim];
  if (factors.size() == 1 && dim.axes == wish.axes)
    return {};
  DimFactorAxes projected;
  if (factors.size() > 1) {
    projected = projectDim(*rule, factors, dim.axes);
    if (!projected.rest.empty())
      return {};
  } else {
    projected.axes.push_back(dim.axes);
  }
  AxisList current = mergeAxes(projected.axes[place.position]);
  PrefixComparison cut = comparePrefix(current, wish.axes);
  if (!cut.restA.empty() || cut.restB.empty())
    return {};
  AxisList more = cut.restB;
  unsigned majors = 0, minors = 0;
  for (auto [i, f] : llvm::enumerate(factors)) {
    int64_t size = rule->factors[f].size;
    if (i == place.position || size == 1)
      continue;
    bool major = i < place.position;
    ++(major ? majors : minors);
    if (axesSize(projected.axes[i]) != (major ? size : 1))
      return {};
  }
  int64_t size = rule->factors[wish.factor].size;
  if (size == 1 && majors + minors > 0)
    return {};
  if (minors > 0)
    more = dividingPrefix(more, size / axesSize(current));
  AxisList used = c.reserved;
  llvm::append_range(used, c.parked);
  for (const DimState &other : c.dims)
    llvm::append_range(used, other.axes);
  return freePrefix(more, used);
}

bool Visitor::wanted(const Wish &wish) const {
  return !wish.axes.empty() &&
         llvm::any_of(info->places[wish.factor], [&](const FactorPlace &p) {
           return !extension(wish, p).empty();
         });
}

//===----------------------------------------------------------------------===//
// Cost
//===----------------------------------------------------------------------===//

/// Bytes each rank sends for the reshards around the op if `factor` gets
/// `axes` and every other factor what is left of its wish.
double Visitor::costOf(unsigned factor, llvm::ArrayRef<AxisRef> axes) {
  FactorAxes all(rule->factors.size());
  AxisList used(axes.begin(), axes.end());
  all[factor] = used;
  for (const Wish &wish : wishes) {
    if (wish.factor == factor)
      continue;
    all[wish.factor] = freePrefix(wish.axes, used);
    llvm::append_range(used, all[wish.factor]);
  }
  double bytes = 0;
  for (unsigned t = 0; t < rule->numTensors(); ++t)
    bytes += tensorCost(t, all);
  return bytes;
}

double Visitor::tensorCost(unsigned tensor, llvm::ArrayRef<AxisList> axes) {
  const ClassState &c = cls(tensor);
  bool isOperand = tensor < info->numOperands;
  if (c.foreign || (c.cheap && isOperand))
    return 0;
  Sharding implied = impliedSharding(*rule, tensor, axes, state.problem.mesh);
  Sharding known = Sharding::whole(c.dims.size(), /*open=*/false);
  for (auto [to, dim, at] : llvm::zip_equal(known.dims, c.dims, implied.dims)) {
    to.axes = dim.axes;
    // A result that is still open takes what the op makes.
    if (!isOperand && dim.open &&
        comparePrefix(dim.axes, at.axes).restA.empty())
      to.axes = at.axes;
  }
  const PropagationValue &value =
      state.problem.values[state.valueOf(op, tensor)];
  return isOperand ? estimateReshardBytes(known, implied, value.shape,
                                          value.elementBytes)
                   : estimateReshardBytes(implied, known, value.shape,
                                          value.elementBytes);
}

/// Cheapest first, where wishes want the same axes.
void Visitor::order(llvm::SmallVectorImpl<unsigned> &factors) {
  AxisList seen;
  bool compete = false;
  for (unsigned f : factors) {
    for (AxisRef ref : wishes[f].axes)
      compete |= overlaps(seen, ref);
    llvm::append_range(seen, wishes[f].axes);
  }
  if (!compete)
    return;
  for (unsigned f : factors)
    wishes[f].bytes = costOf(f, wishes[f].axes);
  auto key = [&](unsigned f) {
    const Wish &wish = wishes[f];
    return std::make_tuple(wish.bytes, -cls(wish.source.tensor).bytes,
                           -axesSize(wish.axes), wish.source.tensor, f);
  };
  llvm::sort(factors, [&](unsigned a, unsigned b) { return key(a) < key(b); });
}

//===----------------------------------------------------------------------===//
// Effects
//===----------------------------------------------------------------------===//

void Visitor::apply(const Wish &wish, llvm::ArrayRef<unsigned> later,
                    llvm::SmallVectorImpl<unsigned> &changed) {
  for (const FactorPlace &place : info->places[wish.factor]) {
    AxisList more = extension(wish, place);
    if (more.empty())
      continue;
    unsigned index = info->tensors[place.tensor];
    ClassState &c = state.classes[index];
    AxisList &axes = c.dims[place.dim].axes;
    llvm::append_range(axes, more);
    axes = mergeAxes(axes);
    c.sharded = true;
    if (!llvm::is_contained(changed, index))
      changed.push_back(index);
    record(wish, place, std::move(more), later);
  }
}

void Visitor::record(const Wish &wish, const FactorPlace &place, AxisList axes,
                     llvm::ArrayRef<unsigned> later) {
  Decision decision;
  decision.value = state.valueOf(op, place.tensor);
  decision.dim = place.dim;
  decision.axes = std::move(axes);
  decision.op = op;
  decision.source = state.valueOf(op, wish.source.tensor);
  decision.sourceDim = wish.source.dim;
  decision.priority = state.priority;
  decision.phase = phase;
  decision.losers = wish.losers;
  for (unsigned f : later) {
    const Wish &other = wishes[f];
    bool here = llvm::any_of(info->places[f], [&](const FactorPlace &p) {
      return p.tensor == place.tensor;
    });
    if (here && llvm::any_of(other.axes, [&](AxisRef ref) {
          return overlaps(decision.axes, ref);
        }))
      decision.losers.push_back(
          {state.valueOf(op, other.source.tensor), other.axes, other.bytes});
  }
  if (!decision.losers.empty())
    decision.bytes = wish.bytes;
  auto &decisions = state.result.decisions;
  decisions.push_back(decision);
  for (unsigned member : cls(place.tensor).members) {
    if (member == decision.value)
      continue;
    Decision shared;
    shared.value = member;
    shared.dim = decision.dim;
    shared.axes = decision.axes;
    shared.source = decision.value;
    shared.sourceDim = decision.dim;
    shared.priority = decision.priority;
    shared.phase = phase;
    decisions.push_back(std::move(shared));
  }
}

} // namespace cleave

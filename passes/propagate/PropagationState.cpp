//===- PropagationState.cpp - Shardings while they spread -----------------===//
#include "passes/propagate/PropagationState.h"
#include "passes/propagate/AxisLists.h"
#include "passes/propagate/Factors.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <numeric>
#include <set>

namespace cleave {

PropagationState::PropagationState(const PropagationProblem &problem)
    : problem(problem) {
  makeClasses();
  makeOps();
  makeUsers();
}

//===----------------------------------------------------------------------===//
// Classes
//===----------------------------------------------------------------------===//

static AxisList withoutUnits(llvm::ArrayRef<AxisRef> axes) {
  AxisList result;
  llvm::copy_if(axes, std::back_inserter(result),
                [](AxisRef ref) { return ref.size != 1; });
  return mergeAxes(result);
}

static unsigned find(std::vector<unsigned> &leader, unsigned v) {
  while (leader[v] != v)
    v = leader[v] = leader[leader[v]];
  return v;
}

static std::string shapeMessage(const PropagationValue &a,
                                const PropagationValue &b) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "'" << a.name << "' [";
  llvm::interleaveComma(a.shape, os);
  os << "] and '" << b.name << "' [";
  llvm::interleaveComma(b.shape, os);
  os << "] are in one group, whose members must have one shape and one mesh";
  return text;
}

/// Unites the members of each group under the lowest one.
void PropagationState::joinGroups(std::vector<unsigned> &leader) {
  for (const auto &group : problem.groups)
    for (unsigned value : group) {
      const PropagationValue &first = problem.values[group.front()];
      const PropagationValue &other = problem.values[value];
      if (other.shape != first.shape || other.foreign != first.foreign) {
        result.errors.push_back({PropagationError::GroupShape, group.front(),
                                 value, shapeMessage(first, other)});
        continue;
      }
      unsigned a = find(leader, group.front()), b = find(leader, value);
      leader[std::max(a, b)] = std::min(a, b);
    }
}

/// Meets the annotation of a further member; whether they agree.
bool PropagationState::join(ClassState &cls, const Sharding &sharding) {
  AxisList used;
  for (auto [dim, other] : llvm::zip_equal(cls.dims, sharding.dims)) {
    AxisList axes = withoutUnits(other.axes);
    PrefixComparison cut = comparePrefix(dim.declared, axes);
    if (!cut.restA.empty() && !cut.restB.empty())
      return false;
    if ((!cut.restA.empty() && !other.open) ||
        (!cut.restB.empty() && !dim.declaredOpen))
      return false;
    if (!cut.restB.empty())
      dim.declared = axes;
    dim.declaredOpen &= other.open;
    dim.priority = std::min(dim.priority, other.priority.value_or(0));
    for (AxisRef ref : dim.declared) {
      if (overlaps(used, ref))
        return false;
      used.push_back(ref);
    }
  }
  llvm::append_range(cls.reserved, withoutUnits(sharding.replicated));
  llvm::append_range(cls.reserved, withoutUnits(sharding.partial));
  return llvm::none_of(
      used, [&](AxisRef ref) { return overlaps(cls.reserved, ref); });
}

void PropagationState::addMember(ClassState &cls, unsigned value) {
  const PropagationValue &v = problem.values[value];
  bool first = cls.members.empty();
  cls.members.push_back(value);
  if (first) {
    cls.foreign = v.foreign;
    cls.bytes = static_cast<double>(v.elementBytes);
    for (int64_t size : v.shape)
      cls.bytes *= static_cast<double>(size);
    for (const DimSharding &dim : v.initial.dims)
      cls.dims.push_back({withoutUnits(dim.axes),
                          {},
                          dim.open,
                          false,
                          dim.priority.value_or(0)});
    cls.reserved = withoutUnits(v.initial.replicated);
    llvm::append_range(cls.reserved, withoutUnits(v.initial.partial));
    return;
  }
  ClassState before = cls;
  if (join(cls, v.initial))
    return;
  cls = before;
  const PropagationValue &other = problem.values[cls.members.front()];
  result.errors.push_back(
      {PropagationError::GroupSharding, cls.members.front(), value,
       "'" + other.name + "' and '" + v.name +
           "' are in one group, but their shardings " +
           toString(problem.mesh, other.initial) + " and " +
           toString(problem.mesh, v.initial) +
           " contradict each other; give both the same, or open a dim"});
}

void PropagationState::makeClasses() {
  std::vector<unsigned> leader(problem.values.size());
  std::iota(leader.begin(), leader.end(), 0);
  joinGroups(leader);
  classOf.resize(leader.size());
  classes.reserve(leader.size());
  for (unsigned v = 0; v < leader.size(); ++v) {
    unsigned root = find(leader, v);
    if (root == v) {
      classOf[v] = classes.size();
      classes.emplace_back();
    } else {
      classOf[v] = classOf[root];
    }
    addMember(classes[classOf[v]], v);
  }
  for (ClassState &cls : classes)
    for (DimState &dim : cls.dims)
      llvm::append_range(cls.parked, dim.declared);
}

std::vector<unsigned> PropagationState::priorities() const {
  std::set<unsigned> found;
  for (const ClassState &cls : classes)
    for (const DimState &dim : cls.dims)
      found.insert(dim.priority);
  return {found.begin(), found.end()};
}

bool PropagationState::show(unsigned index) {
  ClassState &cls = classes[index];
  bool any = false;
  cls.parked.clear();
  for (auto [d, dim] : llvm::enumerate(cls.dims)) {
    if (dim.priority > priority)
      llvm::append_range(cls.parked, dim.declared);
    if (dim.priority != priority)
      continue;
    any = true;
    dim.axes = dim.declared;
    dim.open = dim.declaredOpen;
    cls.sharded |= !dim.axes.empty();
    if (cls.members.size() > 1)
      recordShared(cls, d);
  }
  return any;
}

/// What the members of a group have from the annotation of one of them.
void PropagationState::recordShared(const ClassState &cls, unsigned dim) {
  auto rest = [&](unsigned value) {
    const DimSharding &own = problem.values[value].initial.dims[dim];
    return comparePrefix(withoutUnits(own.axes), cls.dims[dim].declared).restB;
  };
  const unsigned *source = llvm::find_if(
      cls.members, [&](unsigned value) { return rest(value).empty(); });
  for (unsigned value : cls.members) {
    Decision decision;
    decision.value = value;
    decision.dim = dim;
    decision.axes = rest(value);
    decision.source = *source;
    decision.sourceDim = dim;
    decision.priority = priority;
    if (!decision.axes.empty())
      result.decisions.push_back(std::move(decision));
  }
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

static void findPlaces(const ShardingRule &rule, OpState &op) {
  op.places.resize(rule.factors.size());
  for (unsigned t = 0; t < rule.numTensors(); ++t)
    for (auto [d, dim] : llvm::enumerate(rule.tensor(t).dims))
      for (auto [i, f] : llvm::enumerate(dim))
        op.places[f].push_back(
            {t, static_cast<unsigned>(d), static_cast<unsigned>(i)});
  for (auto [f, places] : llvm::enumerate(op.places)) {
    bool diagonal = false;
    for (size_t i = 1; i < places.size(); ++i)
      diagonal |= places[i].tensor == places[i - 1].tensor;
    const Factor &factor = rule.factors[f];
    if (diagonal || factor.blocked ||
        factor.kind == FactorKind::NeedReplication)
      places.clear();
  }
}

/// Which tensors have all factors, and whether all of these pass through.
static void classify(const ShardingRule &rule, OpState &op) {
  llvm::SmallVector<unsigned, 4> counts(rule.numTensors(), 0);
  unsigned large = 0;
  op.passThrough = true;
  for (auto [f, factor] : llvm::enumerate(rule.factors)) {
    op.passThrough &= factor.kind == FactorKind::PassThrough && !factor.blocked;
    if (factor.size == 1 || op.places[f].empty())
      continue;
    ++large;
    for (const FactorPlace &place : op.places[f])
      ++counts[place.tensor];
  }
  for (unsigned count : counts)
    op.full.push_back(count == large);
}

static uint8_t bit(Phase phase) { return 1u << static_cast<unsigned>(phase); }

static uint8_t phasesOf(const ShardingRule &rule, const OpState &op,
                        bool singleUse) {
  if (op.passThrough && llvm::is_contained(op.full, true)) {
    uint8_t phases =
        bit(singleUse ? Phase::Elementwise : Phase::ElementwiseShared);
    if (llvm::is_contained(op.full, false))
      phases |= bit(Phase::PassThrough) | bit(Phase::Broadcast);
    return phases;
  }
  uint8_t phases = bit(Phase::PassThrough);
  for (const Factor &factor : rule.factors)
    if (factor.kind != FactorKind::PassThrough)
      phases |= bit(Phase::Reduction);
  return phases;
}

void PropagationState::makeOps() {
  std::vector<unsigned> uses(problem.values.size(), 0);
  for (const PropagationOp &op : problem.ops)
    for (auto [i, value] : llvm::enumerate(op.operands))
      if (!llvm::is_contained(llvm::ArrayRef(op.operands).take_front(i), value))
        ++uses[value];
  ops.resize(problem.ops.size());
  for (auto [op, info] : llvm::zip_equal(problem.ops, ops)) {
    info.numOperands = op.operands.size();
    for (unsigned value : op.operands)
      info.tensors.push_back(classOf[value]);
    for (unsigned value : op.results) {
      ClassState &cls = classes[classOf[value]];
      info.tensors.push_back(classOf[value]);
      cls.cheap |= op.cheap && cls.parked.empty();
    }
    // An op without a rule carries nothing.
    if (op.direction == Direction::None || op.rule.numTensors() == 0)
      continue;
    assert(op.rule.numTensors() == info.tensors.size() &&
           "a rule has one entry per tensor");
    findPlaces(op.rule, info);
    classify(op.rule, info);
    bool singleUse = llvm::all_of(op.operands, [&](unsigned value) {
      return uses[value] == 1 || classes[classOf[value]].cheap;
    });
    info.phases = phasesOf(op.rule, info, singleUse);
  }
}

void PropagationState::makeUsers() {
  userStart.assign(classes.size() + 1, 0);
  for (const OpState &op : ops)
    for (unsigned cls : op.tensors)
      ++userStart[cls + 1];
  std::partial_sum(userStart.begin(), userStart.end(), userStart.begin());
  userList.resize(userStart.back());
  std::vector<unsigned> next(userStart.begin(), userStart.end() - 1);
  for (auto [i, op] : llvm::enumerate(ops))
    for (unsigned cls : op.tensors)
      userList[next[cls]++] = i;
}

//===----------------------------------------------------------------------===//
// Output
//===----------------------------------------------------------------------===//

/// The axes as written, with those of size 1, and then what was added.
static AxisList finalAxes(llvm::ArrayRef<AxisRef> written,
                          const DimState &dim) {
  AxisList axes(written.begin(), written.end());
  PrefixComparison cut = comparePrefix(withoutUnits(written), dim.axes);
  llvm::append_range(axes, cut.restB);
  return mergeAxes(axes);
}

PropagationResult PropagationState::finish() {
  result.shardings.reserve(problem.values.size());
  for (auto [v, value] : llvm::enumerate(problem.values)) {
    const ClassState &cls = classes[classOf[v]];
    Sharding sharding = value.initial;
    for (auto [dim, known] : llvm::zip_equal(sharding.dims, cls.dims))
      dim = {finalAxes(dim.axes, known), /*open=*/false, std::nullopt};
    result.shardings.push_back(std::move(sharding));
  }
  return std::move(result);
}

} // namespace cleave

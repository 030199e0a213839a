//===- Reshard.cpp - The cheapest way from one sharding to another --------===//
// How a plan is chosen. The search first takes the fastest plan. On small
// tensors, where a step costs more than its bytes, that can be a gather where
// moving axes would do. Users count on few bytes, so such a plan gives way to
// the fastest among those with the fewest bytes (with uneven dims a step counts
// as some bytes, since more steps can always save a few). A single collective
// after which nothing is cut away is never split to save bytes. Axes are cut at
// the cuts of both ends first, and once more at the sizes of each other where
// that could help.
//===----------------------------------------------------------------------===//
#include "passes/partition/Reshard.h"
#include "passes/partition/ReshardState.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace cleave {

using namespace reshard;

StringRef reshardName(ReshardKind kind) {
  static constexpr StringLiteral kNames[] = {
      "all_reduce", "all_gather",  "reduce_scatter", "all_to_all",
      "permute",    "realign",     "slice",          "pad",
      "trim",       "make_partial"};
  return kNames[static_cast<unsigned>(kind)];
}

//===----------------------------------------------------------------------===//
// Choosing
//===----------------------------------------------------------------------===//

/// States that one search looks at before it takes the best plan so far.
static constexpr unsigned kStateLimit = 1500;
/// More atoms than this are too many to cut finely.
static constexpr size_t kFineAtomLimit = 8;

static unsigned numCommunications(const ReshardPlan &plan) {
  return count_if(plan.steps,
                  [](const ReshardStep &step) { return step.communicates(); });
}

/// Whether another plan might take fewer steps or bytes: not for one
/// communication after which nothing is cut away.
static bool mayImprove(const ReshardPlan &plan) {
  bool communicated = false;
  for (const ReshardStep &step : plan.steps) {
    if (communicated && step.kind == ReshardKind::Slice)
      return true;
    communicated |= step.communicates();
  }
  return numCommunications(plan) > 1;
}

namespace {

/// Answers one question under both objectives.
class Chooser {
public:
  Chooser(const Topology &topology, ArrayRef<int64_t> shape,
          int64_t elementBytes, const Sharding &from, const Sharding &to)
      : coarse(topology, shape, elementBytes, from, to, /*fine=*/false),
        fine(topology, shape, elementBytes, from, to, /*fine=*/true) {}

  ReshardPlan choose() {
    ReshardPlan fastest = best(Objective::Seconds);
    if (!mayImprove(fastest))
      return fastest;
    ReshardPlan smallest = best(Objective::Bytes);
    auto bytes = [&](const ReshardPlan &plan) {
      return plan.wireBytes + numCommunications(plan) * coarse.stepBytes;
    };
    return bytes(fastest) <= bytes(smallest) ? fastest : smallest;
  }

private:
  ReshardPlan best(Objective objective) {
    coarse.objective = objective;
    ReshardPlan plan = emit(coarse, search(coarse, kStateLimit));
    if (!mayImprove(plan) || fine.atoms.size() == coarse.atoms.size() ||
        fine.atoms.size() > kFineAtomLimit)
      return plan;
    fine.objective = objective;
    ReshardPlan other = emit(fine, search(fine, kStateLimit));
    auto cost = [&](const ReshardPlan &plan) {
      double bytes =
          plan.wireBytes + numCommunications(plan) * coarse.stepBytes;
      return objective == Objective::Seconds
                 ? std::tuple(plan.seconds, bytes, plan.steps.size())
                 : std::tuple(bytes, plan.seconds, plan.steps.size());
    };
    return cost(other) < cost(plan) ? other : plan;
  }

  Problem coarse, fine;
};

} // namespace

/// Nothing to move: only the local shape changes.
static ReshardPlan resizeEmpty(ArrayRef<int64_t> shape, const Sharding &from,
                               const Sharding &to) {
  ReshardPlan plan;
  SmallVector<int64_t, 4> local = localShape(shape, from);
  SmallVector<int64_t, 4> wanted = localShape(shape, to);
  for (unsigned dim = 0; dim < shape.size(); ++dim) {
    if (local[dim] == wanted[dim])
      continue;
    ReshardStep step;
    step.kind = local[dim] < wanted[dim] ? ReshardKind::Pad : ReshardKind::Trim;
    step.dim = dim;
    step.dimSize = shape[dim];
    step.localBefore = local;
    step.inBlock = local[dim];
    step.outBlock = local[dim] = wanted[dim];
    step.localAfter = local;
    plan.steps.push_back(step);
  }
  return plan;
}

static Sharding withoutUnitAxes(const Sharding &sharding) {
  auto drop = [](AxisList &axes) {
    erase_if(axes, [](AxisRef ref) { return ref.size == 1; });
    axes = mergeAxes(axes);
  };
  Sharding result = sharding;
  for (DimSharding &dim : result.dims)
    drop(dim.axes);
  drop(result.partial);
  result.partial = normalizeAxisSet(result.partial);
  result.replicated.clear();
  return result;
}

static ReshardPlan makePlan(const Topology &topology, ArrayRef<int64_t> shape,
                            int64_t elementBytes, const Sharding &from,
                            const Sharding &to) {
  if (from.sameLayout(to))
    return {};
  if (is_contained(shape, 0))
    return resizeEmpty(shape, from, to);
  return Chooser(topology, shape, elementBytes, from, to).choose();
}

//===----------------------------------------------------------------------===//
// Resharder
//===----------------------------------------------------------------------===//

struct Resharder::Cache {
  Cache(const Mesh &mesh, const Machine &machine) : topology(mesh, machine) {}
  Topology topology;
  std::map<SmallVector<int64_t, 24>, ReshardPlan> plans;
};

Resharder::Resharder(const Mesh &mesh, const Machine &machine)
    : cache(std::make_unique<Cache>(mesh, machine)) {}
Resharder::~Resharder() = default;

const Topology &Resharder::topology() const { return cache->topology; }

static void appendKey(SmallVectorImpl<int64_t> &key, ArrayRef<AxisRef> axes) {
  key.push_back(axes.size());
  for (AxisRef ref : axes)
    key.append({ref.axis, ref.pre, ref.size});
}

static void appendKey(SmallVectorImpl<int64_t> &key, const Sharding &sharding) {
  for (const DimSharding &dim : sharding.dims)
    appendKey(key, dim.axes);
  appendKey(key, sharding.partial);
  key.push_back(sharding.partial.empty() ? 0 : static_cast<int>(sharding.kind));
}

const ReshardPlan &Resharder::plan(ArrayRef<int64_t> shape,
                                   int64_t elementBytes, const Sharding &from,
                                   const Sharding &to) {
  assert(from.dims.size() == shape.size() && to.dims.size() == shape.size() &&
         "a sharding has as many dims as the tensor");
  Sharding source = withoutUnitAxes(from), target = withoutUnitAxes(to);
  SmallVector<int64_t, 24> key = {elementBytes,
                                  static_cast<int64_t>(shape.size())};
  append_range(key, shape);
  appendKey(key, source);
  appendKey(key, target);
  auto [it, isNew] = cache->plans.try_emplace(key);
  if (isNew)
    it->second = makePlan(cache->topology, shape, elementBytes, source, target);
  return it->second;
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

static void printShape(raw_ostream &os, ArrayRef<int64_t> shape) {
  if (shape.empty())
    os << "scalar";
  interleave(shape, os, [&](int64_t size) { os << size; }, "x");
}

void print(raw_ostream &os, const Mesh &mesh, const ReshardStep &step) {
  bool isPermute = step.kind == ReshardKind::Permute;
  os << reshardName(step.kind);
  if (step.kind == ReshardKind::AllToAll)
    os << " dim " << step.concatDim << " -> " << step.dim;
  else if (!isPermute && step.kind != ReshardKind::AllReduce &&
           step.kind != ReshardKind::MakePartial)
    os << " dim " << step.dim;
  if (step.kind == ReshardKind::AllReduce ||
      step.kind == ReshardKind::ReduceScatter ||
      step.kind == ReshardKind::MakePartial)
    os << ' ' << reductionName(step.reduction);
  if (isPermute || step.kind == ReshardKind::Realign)
    os << " {" << toString(mesh, step.source) << "} -> {"
       << toString(mesh, step.axes) << '}';
  else if (!step.axes.empty())
    os << " over {" << toString(mesh, step.axes) << '}';
  os << ", ";
  printShape(os, step.localBefore);
  os << " -> ";
  printShape(os, step.localAfter);
  os << ", " << step.wireBytes << " B";
}

std::string toString(const Mesh &mesh, const ReshardPlan &plan) {
  std::string text;
  raw_string_ostream os(text);
  for (const ReshardStep &step : plan.steps) {
    print(os, mesh, step);
    os << '\n';
  }
  return text;
}

} // namespace cleave

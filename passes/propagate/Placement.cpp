//===- Placement.cpp - How ops are computed, and what that sends ----------===//
#include "passes/propagate/Placement.h"
#include "llvm/ADT/STLExtras.h"

namespace cleave {

std::vector<bool> cheapValues(const PropagationProblem &problem) {
  std::vector<bool> cheap(problem.values.size());
  for (const PropagationOp &op : problem.ops)
    for (unsigned id : op.results)
      cheap[id] = op.cheap;
  return cheap;
}

//===----------------------------------------------------------------------===//
// Choices
//===----------------------------------------------------------------------===//

/// Results are partial as declared, so that the op is cut to give that; what
/// stays partial otherwise is decided later.
const FactorChoice *Placer::choose(const PropagationProblem &problem,
                                   const PropagationOp &op,
                                   const std::vector<Sharding> &shardings) {
  std::vector<PlacedTensor> placed;
  auto place = [&](unsigned id, bool isResult) {
    const PropagationValue &value = problem.values[id];
    PlacedTensor &to = placed.emplace_back();
    to.sharding = shardings[id];
    to.sharding.partial.clear();
    if (isResult)
      to.sharding.partial = value.initial.partial;
    to.shape = value.shape;
    to.elementBytes = value.elementBytes;
    to.cheap = cheap[id];
  };
  // What the user declares partial passes, so the op isn't cut along it.
  AxisList reserved;
  for (auto [position, id] : llvm::enumerate(op.operands)) {
    place(id, false);
    if (!llvm::is_contained(op.rule.accumulators, position))
      llvm::append_range(reserved, problem.values[id].initial.partial);
  }
  for (unsigned id : op.results)
    place(id, true);
  return &chooser.choose(op.rule, placed, reserved);
}

static PartialValue partialValue(const PropagationValue &from,
                                 const Sharding &sharding) {
  PartialValue value;
  value.bytes = from.elementBytes;
  for (int64_t extent : localShape(from.shape, sharding))
    value.bytes *= extent;
  // What is declared replicated cannot hold summands.
  value.cutAxes = sharding.shardedAxes();
  llvm::append_range(value.cutAxes, sharding.replicated);
  value.cutAxes = normalizeAxisSet(value.cutAxes);
  value.times = from.times;
  value.declared = from.initial.partial;
  value.declaredKind = from.initial.kind;
  return value;
}

/// A loop carries a value as its result lies.
static std::vector<Sharding> carried(const PropagationProblem &problem,
                                     std::vector<Sharding> shardings) {
  for (const PropagationOp &op : problem.ops)
    if (op.tie == Tie::Loop)
      shardings[op.operands[1]] = shardings[op.results[0]];
  return shardings;
}

static PartialOp partialOp(const PropagationOp &op,
                           const FactorChoice *choice) {
  PartialOp entry;
  entry.operands.assign(op.operands.begin(), op.operands.end());
  entry.results.assign(op.results.begin(), op.results.end());
  entry.loop = op.tie == Tie::Loop;
  if (!choice)
    return entry;
  entry.accumulators = op.rule.accumulators;
  for (const AxisList &axes : choice->axes)
    llvm::append_range(entry.usedAxes, axes);
  entry.usedAxes = normalizeAxisSet(entry.usedAxes);
  return entry;
}

/// With the axes along which values stay partial.
static std::vector<Sharding> withPartials(std::vector<Sharding> shardings,
                                          const PartialResult &partials) {
  for (auto [id, sharding] : llvm::enumerate(shardings)) {
    // Sub-axes that no list of digits has both, a:(1)2 and a:(1)3 of 6, cannot
    // stand in one sharding: the later ones are reduced.
    sharding.partial.clear();
    for (AxisRef axis : partials.kept[id])
      if (!sharding.uses(axis))
        sharding.partial.push_back(axis);
    sharding.kind = partials.kinds[id];
  }
  return shardings;
}

Placement Placer::place(const PropagationProblem &problem,
                        const std::vector<Sharding> &propagated) {
  std::vector<Sharding> shardings = carried(problem, propagated);
  Placement placement;
  PartialProblem partials;
  partials.values.reserve(problem.values.size());
  partials.ops.reserve(problem.ops.size());
  cheap = cheapValues(problem);
  for (auto [value, sharding] : llvm::zip_equal(problem.values, shardings))
    partials.values.push_back(partialValue(value, sharding));
  for (const PropagationOp &op : problem.ops) {
    const FactorChoice *choice =
        op.tie == Tie::None ? choose(problem, op, shardings) : nullptr;
    placement.choices.push_back(choice);
    partials.ops.push_back(partialOp(op, choice));
    if (!choice)
      continue;
    for (auto [id, made] : llvm::zip_equal(op.results, choice->results)) {
      partials.values[id].created = made.partial;
      partials.values[id].kind = made.kind;
    }
  }
  partials.letsThrough = [&](unsigned op, ReductionKind kind,
                             const llvm::BitVector &partial) {
    return problem.ops[op].tie == Tie::None && letsThrough(op, kind, partial);
  };
  placement.partials = placePartials(partials);
  placement.shardings = withPartials(std::move(shardings), placement.partials);
  return placement;
}

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

static bool sameCut(const Sharding &a, const Sharding &b) {
  return llvm::all_of(llvm::zip_equal(a.dims, b.dims), [](auto pair) {
    return std::get<0>(pair).axes == std::get<1>(pair).axes;
  });
}

/// Whether something comes of an op: what nobody reads is dropped later. Ties
/// count as read.
static std::vector<bool> liveOps(const PropagationProblem &problem) {
  std::vector<bool> live(problem.ops.size()), read(problem.values.size());
  for (const PropagationOp &op : problem.ops)
    if (op.tie != Tie::None)
      for (unsigned id : op.operands)
        read[id] = true;
  for (size_t i = problem.ops.size(); i-- > 0;) {
    const PropagationOp &op = problem.ops[i];
    live[i] = op.tie != Tie::None ||
              llvm::any_of(op.results, [&](unsigned id) { return read[id]; });
    if (live[i])
      for (unsigned id : op.operands)
        read[id] = true;
  }
  return live;
}

namespace {
/// The ways in which one value is held.
struct Versions {
  /// As its op leaves it, if not as it lies.
  std::optional<Sharding> made;
  /// As readers want it, if not as it lies: distinct.
  llvm::SmallVector<const Sharding *, 2> wanted;
  bool read = false;
};

class Counter {
public:
  Counter(const PropagationProblem &problem, const Placement &placement)
      : problem(problem), placement(placement),
        versions(problem.values.size()) {}
  std::vector<double> run();

private:
  void read(unsigned id, const Sharding &at);
  void make(unsigned id, const Sharding *at);
  double bytesOf(unsigned id) const;

  const PropagationProblem &problem;
  const Placement &placement;
  std::vector<Versions> versions;
};
} // namespace

void Counter::read(unsigned id, const Sharding &at) {
  Versions &known = versions[id];
  if (sameCut(placement.shardings[id], at))
    known.read = true;
  else if (llvm::none_of(known.wanted, [&](const Sharding *other) {
             return sameCut(*other, at);
           }))
    known.wanted.push_back(&at);
}

/// `at`: where the op leaves the result; null if it is cut as it lies.
void Counter::make(unsigned id, const Sharding *at) {
  const Sharding &lies = placement.shardings[id];
  const AxisList &produced = placement.partials.produced[id];
  if (produced == lies.partial && (!at || sameCut(*at, lies)))
    return;
  Sharding &made = versions[id].made.emplace(at ? *at : lies);
  made.partial = produced;
  made.kind = placement.partials.kinds[id];
}

/// Each reader is served from the version that is nearest, and a version that
/// serves nobody isn't made. Summands that a reader takes are as good as the
/// value: who reduces pays.
double Counter::bytesOf(unsigned id) const {
  const Versions &known = versions[id];
  const PropagationValue &value = problem.values[id];
  const Sharding &lies = placement.shardings[id];
  auto bytes = [&](const Sharding &from, const Sharding &to) {
    return estimateReshardBytes(from, to, value.shape, value.elementBytes);
  };
  bool used = known.read;
  double sum = 0;
  for (const Sharding *wanted : known.wanted) {
    Sharding to = *wanted;
    to.partial = lies.partial;
    to.kind = lies.kind;
    double near = bytes(lies, to);
    if (known.made) {
      double direct = bytes(*known.made, to);
      used |= near < direct;
      near = std::min(near, direct);
    } else {
      used = true;
    }
    sum += near;
  }
  if (known.made && used)
    sum += bytes(*known.made, lies);
  return sum * value.times;
}

std::vector<double> Counter::run() {
  std::vector<bool> live = liveOps(problem);
  for (auto [i, op] : llvm::enumerate(problem.ops)) {
    if (!live[i])
      continue;
    const FactorChoice *choice = placement.choices[i];
    for (auto [position, id] : llvm::enumerate(op.operands))
      read(id, choice ? choice->operands[position]
                      : placement.shardings[op.results[0]]);
    for (auto [position, id] : llvm::enumerate(op.results))
      make(id, choice ? &choice->results[position] : nullptr);
  }
  std::vector<bool> cheap = cheapValues(problem);
  std::vector<double> bytes;
  for (unsigned id = 0; id < versions.size(); ++id)
    bytes.push_back(cheap[id] ? 0 : bytesOf(id));
  return bytes;
}

std::vector<double> bytesOfValues(const PropagationProblem &problem,
                                  const Placement &placement) {
  return Counter(problem, placement).run();
}

} // namespace cleave

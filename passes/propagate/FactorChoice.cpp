//===- FactorChoice.cpp - At which factor axes an op is computed ----------===//
// A local search. It starts from what each tensor says and from what all agree
// on, and then changes one factor at a time (which takes the axes away from
// the others) as long as that moves fewer bytes. The work is polynomial: a few
// starts, and per round one try for each factor and each list of axes seen.
#include "passes/propagate/AxisLists.h"
#include "passes/propagate/Factors.h"
#include "llvm/ADT/STLExtras.h"

namespace cleave {
namespace {

/// How many of the starts are refined, and how often over all factors.
constexpr unsigned kRefinedStarts = 4;
constexpr unsigned kMaxRounds = 8;

struct Score {
  double bytes = 0;
  /// By how much the computation is cut, for equal bytes.
  double shards = 1;
  bool betterThan(const Score &other) const {
    double slack = 1e-9 * (bytes + other.bytes) + 1e-9;
    if (bytes < other.bytes - slack || bytes > other.bytes + slack)
      return bytes < other.bytes;
    return shards > other.shards;
  }
};

struct Plan {
  FactorAxes axes;
  Score score;
};

class Search {
public:
  Search(const ShardingRule &rule, llvm::ArrayRef<PlacedTensor> tensors,
         const Mesh &mesh, const ReshardCost &cost)
      : rule(rule), tensors(tensors), mesh(mesh), cost(cost),
        memo(tensors.size()) {}
  Plan run();

private:
  void collectLists();
  Plan makePlan(FactorAxes axes);
  double tensorBytes(unsigned t, llvm::ArrayRef<AxisList> axes);
  FactorAxes agreement() const;
  void refine(Plan &plan);
  bool improve(Plan &plan, unsigned factor);
  bool fits(unsigned factor, llvm::ArrayRef<AxisRef> list) const {
    return axesSize(list) <= std::max<int64_t>(1, rule.factors[factor].size);
  }

  const ShardingRule &rule;
  llvm::ArrayRef<PlacedTensor> tensors;
  const Mesh &mesh;
  const ReshardCost &cost;
  /// What each tensor says.
  llvm::SmallVector<FactorAxes, 4> given;
  /// Per factor, each prefix of each list that a tensor has for it.
  std::vector<llvm::SmallVector<AxisList, 4>> own;
  /// Each list that stands anywhere; it may move to another factor.
  llvm::SmallVector<AxisList, 8> all;
  /// Answers of `cost` for each tensor.
  std::vector<std::vector<std::pair<Sharding, double>>> memo;
};
} // namespace

template <typename List> static void addUnique(List &lists, AxisList axes) {
  if (!llvm::is_contained(lists, axes))
    lists.push_back(std::move(axes));
}

void Search::collectLists() {
  own.resize(rule.factors.size());
  for (auto [t, tensor] : llvm::enumerate(tensors)) {
    given.push_back(factorAxesOf(rule, t, tensor.sharding));
    for (auto [f, list] : llvm::enumerate(given.back()))
      for (size_t n = 1; n <= list.size(); ++n)
        addUnique(own[f], {list.begin(), list.begin() + n});
    for (const DimSharding &dim : tensor.sharding.dims)
      if (!dim.axes.empty())
        addUnique(all, dim.axes);
    for (const AxisList &list : given.back())
      if (!list.empty())
        addUnique(all, list);
  }
}

double Search::tensorBytes(unsigned t, llvm::ArrayRef<AxisList> axes) {
  const PlacedTensor &tensor = tensors[t];
  bool isOperand = t < rule.operands.size();
  if (isOperand && tensor.cheap)
    return 0;
  Sharding implied = impliedSharding(rule, t, axes, mesh);
  for (auto &[sharding, bytes] : memo[t])
    if (sharding == implied)
      return bytes;
  double bytes = isOperand ? cost(tensor.sharding, implied, tensor.shape,
                                  tensor.elementBytes)
                           : cost(implied, tensor.sharding, tensor.shape,
                                  tensor.elementBytes);
  memo[t].emplace_back(std::move(implied), bytes);
  return bytes;
}

Plan Search::makePlan(FactorAxes axes) {
  Plan plan;
  makeComputable(rule, axes);
  for (unsigned t = 0; t < tensors.size(); ++t)
    plan.score.bytes += tensorBytes(t, axes);
  for (const AxisList &list : axes)
    plan.score.shards *= static_cast<double>(axesSize(list));
  plan.axes = std::move(axes);
  return plan;
}

/// Per factor, the longest list that some tensor has.
FactorAxes Search::agreement() const {
  FactorAxes axes(rule.factors.size());
  for (const FactorAxes &lists : given)
    for (auto [best, list] : llvm::zip_equal(axes, lists))
      if (axesSize(list) > axesSize(best))
        best = list;
  return axes;
}

bool Search::improve(Plan &plan, unsigned factor) {
  llvm::SmallVector<AxisList, 16> lists;
  lists.emplace_back();
  for (const AxisList &list : own[factor])
    addUnique(lists, list);
  for (const AxisList &list : all) {
    if (fits(factor, list))
      addUnique(lists, list);
    AxisList longer = plan.axes[factor];
    llvm::append_range(longer, freePrefix(list, longer));
    longer = mergeAxes(longer);
    if (fits(factor, longer))
      addUnique(lists, longer);
  }
  bool improved = false;
  FactorAxes before = plan.axes;
  for (const AxisList &list : lists) {
    FactorAxes axes = before;
    for (auto [f, other] : llvm::enumerate(axes))
      other = f == factor ? list : freePrefix(other, list);
    Plan changed = makePlan(std::move(axes));
    if (!changed.score.betterThan(plan.score))
      continue;
    plan = std::move(changed);
    improved = true;
  }
  return improved;
}

void Search::refine(Plan &plan) {
  for (unsigned round = 0; round < kMaxRounds; ++round) {
    bool improved = false;
    for (unsigned f = 0; f < rule.factors.size(); ++f)
      if (isCuttable(rule, f))
        improved |= improve(plan, f);
    if (!improved)
      return;
  }
}

Plan Search::run() {
  collectLists();
  llvm::SmallVector<Plan, 4> plans;
  plans.push_back(makePlan(agreement()));
  if (plans.front().score.bytes == 0 || all.empty())
    return plans.front();
  auto add = [&](FactorAxes axes) {
    Plan plan = makePlan(std::move(axes));
    if (llvm::none_of(plans, [&](Plan &p) { return p.axes == plan.axes; }))
      plans.push_back(std::move(plan));
  };
  for (const FactorAxes &axes : given)
    add(axes);
  add(FactorAxes(rule.factors.size()));
  Plan *best = nullptr;
  for (unsigned n = 0; n < kRefinedStarts && n < plans.size(); ++n) {
    size_t first = n;
    for (size_t i = n + 1; i < plans.size(); ++i)
      if (plans[i].score.betterThan(plans[first].score))
        first = i;
    std::swap(plans[n], plans[first]);
    refine(plans[n]);
    if (!best || plans[n].score.betterThan(best->score))
      best = &plans[n];
  }
  return *best;
}

FactorChoice chooseFactorAxes(const ShardingRule &rule,
                              llvm::ArrayRef<PlacedTensor> tensors,
                              const Mesh &mesh, const ReshardCost &cost) {
  Plan plan = Search(rule, tensors, mesh, cost).run();
  FactorChoice choice;
  for (unsigned t = 0; t < rule.numTensors(); ++t) {
    Sharding sharding = impliedSharding(rule, t, plan.axes, mesh);
    if (t < rule.operands.size())
      choice.operands.push_back(std::move(sharding));
    else
      choice.results.push_back(std::move(sharding));
  }
  choice.axes = std::move(plan.axes);
  choice.bytes = plan.score.bytes;
  return choice;
}

} // namespace cleave

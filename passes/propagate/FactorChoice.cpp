//===- FactorChoice.cpp - At which factor axes an op is computed ----------===//
// Where the axes around an op can be distributed over its factors in a few
// hundred ways, all are tried. Otherwise a local search starts from what each
// tensor says and from what all agree on, and moves one axis or one list of
// axes to another factor as long as that saves bytes; the number of tries is
// bounded. A try is given up as soon as it costs more than the best known.
#include "passes/propagate/AxisLists.h"
#include "passes/propagate/Factors.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringMap.h"
#include <limits>

namespace cleave {
namespace {

/// Up to this many distributions are tried one by one.
constexpr double kMaxAll = 250;
/// How many starts are refined, and with how many tries each.
constexpr unsigned kRefinedStarts = 4;
constexpr unsigned kMaxTries = 1000;

struct Score {
  double bytes = std::numeric_limits<double>::infinity();
  /// By how much the computation is cut, for equal bytes.
  double shards = 1;
  bool betterThan(const Score &other) const {
    if (bytes == other.bytes || std::abs(bytes - other.bytes) <= slack())
      return shards > other.shards;
    return bytes < other.bytes;
  }
  double slack() const { return 1e-9 * bytes + 1e-9; }
};

struct Plan {
  FactorAxes axes;
  Score score;
};

class Search {
public:
  Search(const ShardingRule &rule, llvm::ArrayRef<PlacedTensor> tensors,
         const Mesh &mesh, const ReshardCost &cost,
         llvm::ArrayRef<AxisRef> reserved)
      : rule(rule), tensors(tensors), mesh(mesh), cost(cost),
        reserved(reserved) {}
  Plan run();

private:
  void collectLists();
  void collectAtoms();
  Score scoreOf(llvm::ArrayRef<AxisList> axes, double bound) const;
  double tensorBytes(unsigned t, llvm::ArrayRef<AxisList> axes) const;
  bool tryAxes(FactorAxes axes, Plan &best);
  FactorAxes agreement() const;
  double numDistributions() const;
  void tryAll(size_t atom, FactorAxes &axes, Plan &best);
  void refine(Plan &plan);
  bool moveLists(Plan &plan, unsigned factor);
  bool moveAtoms(Plan &plan, unsigned factor);
  bool fits(unsigned factor, llvm::ArrayRef<AxisRef> list) const {
    return axesSize(list) <= std::max<int64_t>(1, rule.factors[factor].size);
  }

  const ShardingRule &rule;
  llvm::ArrayRef<PlacedTensor> tensors;
  const Mesh &mesh;
  const ReshardCost &cost;
  llvm::ArrayRef<AxisRef> reserved;
  /// What each tensor says.
  llvm::SmallVector<FactorAxes, 4> given;
  /// Factors that may be cut.
  llvm::SmallVector<unsigned, 6> cuttable;
  /// Each list that stands anywhere.
  llvm::SmallVector<AxisList, 8> lists;
  /// All axes in them, cut so that any two are equal or disjoint.
  AxisList atoms;
  unsigned tries = 0;
};
} // namespace

//===----------------------------------------------------------------------===//
// What is there
//===----------------------------------------------------------------------===//

void Search::collectLists() {
  auto add = [&](const AxisList &axes) {
    if (!axes.empty() && !llvm::is_contained(lists, axes))
      lists.push_back(axes);
  };
  for (auto [t, tensor] : llvm::enumerate(tensors)) {
    given.push_back(factorAxesOf(rule, t, tensor.sharding));
    for (const AxisList &list : given.back())
      add(list);
    for (const DimSharding &dim : tensor.sharding.dims)
      add(mergeAxes(dim.axes));
  }
  for (unsigned f = 0; f < rule.factors.size(); ++f)
    if (isCuttable(rule, f))
      cuttable.push_back(f);
}

void Search::collectAtoms() {
  for (const AxisList &list : lists) {
    AxisList more = list;
    alignAxes(atoms, more);
    for (AxisRef ref : more)
      if (ref.size > 1 && !llvm::is_contained(atoms, ref))
        atoms.push_back(ref);
  }
  llvm::sort(atoms);
}

/// Per factor, the longest list that some tensor has.
FactorAxes Search::agreement() const {
  FactorAxes axes(rule.factors.size());
  for (const FactorAxes &known : given)
    for (auto [best, list] : llvm::zip_equal(axes, known))
      if (axesSize(list) > axesSize(best))
        best = list;
  return axes;
}

//===----------------------------------------------------------------------===//
// Score
//===----------------------------------------------------------------------===//

double Search::tensorBytes(unsigned t, llvm::ArrayRef<AxisList> axes) const {
  const PlacedTensor &tensor = tensors[t];
  bool isOperand = t < rule.operands.size();
  if (isOperand && tensor.cheap)
    return 0;
  Sharding at = impliedSharding(rule, t, axes, mesh);
  return isOperand
             ? cost(tensor.sharding, at, tensor.shape, tensor.elementBytes)
             : cost(at, tensor.sharding, tensor.shape, tensor.elementBytes);
}

Score Search::scoreOf(llvm::ArrayRef<AxisList> axes, double bound) const {
  Score score;
  score.bytes = 0;
  for (unsigned t = 0; t < tensors.size() && score.bytes <= bound; ++t)
    score.bytes += tensorBytes(t, axes);
  for (const AxisList &list : axes)
    score.shards *= static_cast<double>(axesSize(list));
  return score;
}

bool Search::tryAxes(FactorAxes axes, Plan &best) {
  ++tries;
  for (AxisList &list : axes)
    list = mergeAxes(freePrefix(list, reserved));
  makeComputable(rule, axes);
  Score score = scoreOf(axes, best.score.bytes + best.score.slack());
  if (!score.betterThan(best.score))
    return false;
  best = {std::move(axes), score};
  return true;
}

//===----------------------------------------------------------------------===//
// Search
//===----------------------------------------------------------------------===//

double Search::numDistributions() const {
  double count = 1;
  for (size_t i = 0; i < atoms.size(); ++i)
    count *= static_cast<double>(cuttable.size() + 1 + i);
  return count;
}

/// Puts the atoms from `atom` on anywhere, or nowhere.
void Search::tryAll(size_t atom, FactorAxes &axes, Plan &best) {
  if (atom == atoms.size()) {
    tryAxes(axes, best);
    return;
  }
  tryAll(atom + 1, axes, best);
  for (unsigned f : cuttable) {
    AxisList &list = axes[f];
    for (size_t at = 0; at <= list.size(); ++at) {
      list.insert(list.begin() + at, atoms[atom]);
      if (fits(f, list) || list.size() == 1)
        tryAll(atom + 1, axes, best);
      list.erase(list.begin() + at);
    }
  }
}

/// Gives `factor` another list, whole, as a prefix or as a tail.
bool Search::moveLists(Plan &plan, unsigned factor) {
  bool improved = false;
  auto give = [&](llvm::ArrayRef<AxisRef> list) {
    FactorAxes axes = plan.axes;
    for (auto [f, other] : llvm::enumerate(axes))
      other = f == factor ? AxisList(list.begin(), list.end())
                          : freePrefix(other, list);
    improved |= tryAxes(std::move(axes), plan);
  };
  give({});
  for (const AxisList &list : lists) {
    for (size_t n = 1; n <= list.size(); ++n)
      give(llvm::ArrayRef(list).take_front(n));
    AxisList longer = plan.axes[factor];
    llvm::append_range(longer, freePrefix(list, longer));
    if (fits(factor, longer))
      give(longer);
  }
  return improved;
}

static void removeAtom(AxisList &list, AxisRef atom) {
  AxisList cut{atom};
  alignAxes(list, cut);
  llvm::erase_if(list, [&](AxisRef ref) { return overlaps(ref, atom); });
}

/// Moves one axis to the front or the end of what `factor` has, or away.
bool Search::moveAtoms(Plan &plan, unsigned factor) {
  bool improved = false;
  for (AxisRef atom : atoms)
    for (unsigned where = 0; where < 3; ++where) {
      FactorAxes axes = plan.axes;
      for (AxisList &list : axes)
        removeAtom(list, atom);
      AxisList &list = axes[factor];
      if (where < 2)
        list.insert(where == 0 ? list.begin() : list.end(), atom);
      if (fits(factor, list) || list.size() == 1)
        improved |= tryAxes(std::move(axes), plan);
    }
  return improved;
}

void Search::refine(Plan &plan) {
  tries = 0;
  bool improved = true;
  while (improved && tries < kMaxTries) {
    improved = false;
    for (unsigned f : cuttable) {
      improved |= moveLists(plan, f);
      improved |= moveAtoms(plan, f);
    }
  }
}

Plan Search::run() {
  collectLists();
  Plan best;
  tryAxes(agreement(), best);
  if (best.score.bytes == 0 || lists.empty())
    return best;
  collectAtoms();
  if (numDistributions() <= kMaxAll) {
    FactorAxes axes(rule.factors.size());
    tryAll(0, axes, best);
    return best;
  }
  llvm::SmallVector<Plan, 4> plans{best};
  auto add = [&](const FactorAxes &axes) {
    Plan plan;
    tryAxes(axes, plan);
    if (llvm::none_of(plans, [&](Plan &p) { return p.axes == plan.axes; }))
      plans.push_back(std::move(plan));
  };
  for (const FactorAxes &axes : given)
    add(axes);
  add(FactorAxes(rule.factors.size()));
  for (unsigned n = 0; n < kRefinedStarts && n < plans.size(); ++n) {
    size_t first = n;
    for (size_t i = n + 1; i < plans.size(); ++i)
      if (plans[i].score.betterThan(plans[first].score))
        first = i;
    std::swap(plans[n], plans[first]);
    refine(plans[n]);
    if (plans[n].score.betterThan(best.score))
      best = plans[n];
  }
  return best;
}

FactorChoice chooseFactorAxes(const ShardingRule &rule,
                              llvm::ArrayRef<PlacedTensor> tensors,
                              const Mesh &mesh, const ReshardCost &cost,
                              llvm::ArrayRef<AxisRef> reserved) {
  assert(tensors.size() == rule.numTensors() &&
         "a rule has one entry per tensor");
  Plan plan = Search(rule, tensors, mesh, cost, reserved).run();
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

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

namespace {
/// All that a choice depends on, as one list of numbers.
class Key {
public:
  /// Nearly all numbers are small: one byte says so, or that eight follow.
  void add(int64_t number) {
    if (number >= 0 && number < kLong) {
      text.push_back(static_cast<char>(number));
      return;
    }
    text.push_back(static_cast<char>(kLong));
    const char *bytes = reinterpret_cast<const char *>(&number);
    text.append(bytes, bytes + sizeof(number));
  }
  void add(llvm::ArrayRef<AxisRef> axes) {
    add(static_cast<int64_t>(axes.size()));
    for (AxisRef ref : axes) {
      add(ref.axis);
      add(ref.pre);
      add(ref.size);
    }
  }
  void add(const ShardingRule &rule);
  void add(const PlacedTensor &tensor);
  llvm::StringRef str() const { return text; }

private:
  static constexpr int64_t kLong = 255;
  llvm::SmallString<256> text;
};
} // namespace

void Key::add(const ShardingRule &rule) {
  add(static_cast<int64_t>(rule.operands.size()));
  for (const Factor &factor : rule.factors) {
    add(factor.size);
    add(static_cast<int64_t>(factor.kind));
    add(static_cast<int64_t>(factor.reduction));
  }
  for (unsigned t = 0; t < rule.numTensors(); ++t)
    for (const auto &dim : rule.tensor(t).dims) {
      add(static_cast<int64_t>(dim.size()));
      for (unsigned f : dim)
        add(static_cast<int64_t>(f));
    }
}

void Key::add(const PlacedTensor &tensor) {
  add(tensor.elementBytes);
  add(static_cast<int64_t>(tensor.cheap));
  add(static_cast<int64_t>(tensor.sharding.kind));
  add(tensor.sharding.partial);
  for (auto [size, dim] : llvm::zip_equal(tensor.shape, tensor.sharding.dims)) {
    add(size);
    add(dim.axes);
  }
}

struct FactorChooser::Memory {
  llvm::StringMap<FactorChoice> choices;
};

FactorChooser::FactorChooser(const Mesh &mesh, ReshardCost cost)
    : mesh(mesh), cost(std::move(cost)), memory(std::make_unique<Memory>()) {}
FactorChooser::~FactorChooser() = default;

const FactorChoice &FactorChooser::choose(const ShardingRule &rule,
                                          llvm::ArrayRef<PlacedTensor> tensors,
                                          llvm::ArrayRef<AxisRef> reserved) {
  Key key;
  key.add(rule);
  for (const PlacedTensor &tensor : tensors)
    key.add(tensor);
  key.add(reserved);
  auto [known, isNew] = memory->choices.try_emplace(key.str());
  if (isNew)
    known->second = chooseFactorAxes(rule, tensors, mesh, cost, reserved);
  return known->second;
}

} // namespace cleave

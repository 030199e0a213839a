//===- Resolve.cpp - What a plan says of each tensor ----------------------===//
// Every tensor collects the rules that speak of it, the most special ones
// first: of one tensor, of scopes, of all. An axis that a more special or more
// important rule has taken is not taken again; two equal rules that want one
// axis in one tensor are a mistake.
//===----------------------------------------------------------------------===//
#include "cleave/program.h"
#include "dsl/Maker.h"
#include "dsl/Names.h"
#include "dsl/Plan.h"

#include <algorithm>

namespace cleave::dsl {
namespace {

using Reach = SelectionData::Reach;

/// A rule that speaks of a tensor, and how special it is.
struct Match {
  const Rule *rule;
  Reach reach;
};

bool overlap(const PlanData &plan, const AxisUse &a, const AxisUse &b) {
  if (a.axis != b.axis)
    return false;
  auto end = [&](const AxisUse &use) {
    return use.size ? use.pre * use.size : plan.findAxis(use.axis)->second;
  };
  return a.pre < end(b) && b.pre < end(a);
}

/// The rules that have their way in one tensor.
struct Chosen {
  std::map<std::string, Match> byDim;
  std::vector<std::pair<AxisUse, Match>> taken;
  /// Axes along which the tensor stays whole.
  std::vector<AxisUse> whole;
};

std::string listOf(const std::vector<AxisUse> &axes) {
  std::string text;
  for (const AxisUse &axis : axes)
    text += (text.empty() ? "" : ", ") + toText(axis);
  return text;
}

/// `[{"dp"}, {?}p1], replicated={"tp"}`.
std::string textOf(const Shape &shape, const Chosen &chosen) {
  std::string text = "[";
  for (const DimSize &dim : shape) {
    if (text.size() > 1)
      text += ", ";
    auto it = chosen.byDim.find(dim.name);
    if (it == chosen.byDim.end()) {
      text += "{?}";
      continue;
    }
    const Rule &rule = *it->second.rule;
    std::string axes = listOf(rule.axes);
    if (rule.open)
      axes += axes.empty() ? "?" : ", ?";
    text += "{" + axes + "}";
    if (rule.priority > 0)
      text += "p" + std::to_string(rule.priority);
  }
  text += "]";
  if (!chosen.whole.empty())
    text += ", replicated={" + listOf(chosen.whole) + "}";
  return text;
}

class Resolver {
public:
  Resolver(const Graph &graph, const PlanData &plan,
           std::vector<Diagnostic> &diagnostics)
      : graph(graph), plan(plan), diagnostics(diagnostics) {}
  Shardings run();

private:
  bool selects(const SelectionData &selection, const Node &node) const;
  bool concerns(const Rule &rule, const Node &node) const;
  void checkSelection(const SelectionData &selection);
  void checkRule(const SelectionData &selection, const Rule &rule);
  std::vector<Match> matchesOf(const Node &node) const;
  Cut cutOf(const Node &node);
  /// Whether nothing that was chosen stands in a rule's way.
  bool mayTake(const Node &node, const Match &match, const Chosen &chosen);
  void conflict(const Node &node, const Match &match, const Match &earlier,
                const AxisUse &axis);
  void contradiction(const Node &node, const Match &match,
                     const Match &earlier);
  std::vector<std::string> scopeNames() const;
  std::vector<std::string> tensorNames() const;

  const Graph &graph;
  const PlanData &plan;
  std::vector<Diagnostic> &diagnostics;
  /// Pairs of rules that were reported once.
  std::set<std::pair<const Rule *, const Rule *>> reported;
};

template <typename F> void forEachNode(const Graph &graph, F f) {
  for (const Entry &entry : graph.entries)
    for (const Node &node : entry.nodes)
      f(node);
}

bool Resolver::selects(const SelectionData &selection, const Node &node) const {
  if (selection.reach == Reach::All)
    return true;
  if (selection.reach == Reach::Tensor)
    return matches(selection.pattern, node.name);
  return !node.scope.empty() && covers(selection.pattern, node.scope);
}

bool Resolver::concerns(const Rule &rule, const Node &node) const {
  return rule.replicates || find(node.shape, rule.dim);
}

std::vector<std::string> Resolver::scopeNames() const {
  std::set<std::string> names;
  forEachNode(graph, [&](const Node &node) {
    for (std::string scope = node.scope; !scope.empty();) {
      names.insert(scope);
      size_t dot = scope.rfind('.');
      scope = dot == std::string::npos ? "" : scope.substr(0, dot);
    }
  });
  return {names.begin(), names.end()};
}

std::vector<std::string> Resolver::tensorNames() const {
  std::set<std::string> names;
  forEachNode(graph, [&](const Node &node) {
    if (node.isNamed)
      names.insert(node.name);
  });
  return {names.begin(), names.end()};
}

void Resolver::checkSelection(const SelectionData &selection) {
  bool found = false;
  forEachNode(graph,
              [&](const Node &node) { found |= selects(selection, node); });
  if (found) {
    for (const Rule &rule : selection.rules)
      checkRule(selection, rule);
    return;
  }
  bool ofScope = selection.reach == Reach::Scope;
  std::vector<std::string> known = ofScope ? scopeNames() : tensorNames();
  std::string best = closest(selection.pattern, known);
  Diagnostic diagnostic{selection.place,
                        std::string(ofScope ? "at" : "tensor") + "(\"" +
                            selection.pattern + "\") matches no " +
                            (ofScope ? "scope" : "tensor"),
                        {}};
  if (!best.empty())
    diagnostic.notes.push_back({selection.place, "closest is '" + best + "'"});
  diagnostics.push_back(diagnostic);
}

void Resolver::checkRule(const SelectionData &selection, const Rule &rule) {
  if (rule.replicates)
    return;
  std::set<std::string> dims;
  const Node *example = nullptr;
  const DimSize *other = nullptr;
  forEachNode(graph, [&](const Node &node) {
    if (!selects(selection, node))
      return;
    for (const DimSize &dim : node.shape) {
      dims.insert(dim.name);
      if (dim.name == rule.dim && !example) {
        example = &node;
        other = &dim;
      }
    }
  });
  std::vector<std::string> known(dims.begin(), dims.end());
  if (!example) {
    std::string who = "no tensor of the model has";
    if (selection.reach == Reach::Scope)
      who = "no tensor in the scopes \"" + selection.pattern + "\" has";
    if (selection.reach == Reach::Tensor)
      who = "tensor \"" + selection.pattern + "\" does not have";
    diagnostics.push_back(
        {rule.place,
         who + " the dim '" + rule.dim + "'" + suggestion(rule.dim, known),
         {}});
  } else if (rule.dimSize != 0 && rule.dimSize != other->size) {
    diagnostics.push_back(
        {rule.place,
         "dim '" + rule.dim + "' has size " + std::to_string(rule.dimSize) +
             " in the plan, and " + std::to_string(other->size) +
             " in the model",
         {{example->place, "first used by " + describe(example)}}});
  }
}

std::vector<Match> Resolver::matchesOf(const Node &node) const {
  std::map<std::pair<int, int>, std::vector<Match>> byRank;
  for (const SelectionData &selection : plan.selections)
    if (selects(selection, node))
      for (const Rule &rule : selection.rules)
        if (concerns(rule, node))
          byRank[{-static_cast<int>(selection.reach), rule.priority}].push_back(
              {&rule, selection.reach});
  std::vector<Match> result;
  for (const auto &[rank, matches] : byRank)
    result.insert(result.end(), matches.begin(), matches.end());
  return result;
}

void Resolver::conflict(const Node &node, const Match &match,
                        const Match &earlier, const AxisUse &axis) {
  if (!reported.insert({match.rule, earlier.rule}).second)
    return;
  std::string why =
      earlier.rule->replicates
          ? "is cut over axis '" + axis.axis +
                "' here and left whole over it "
                "there"
          : "is cut over axis '" + axis.axis + "' along '" + match.rule->dim +
                "' and along '" + earlier.rule->dim +
                "'; an axis cuts one dim of a tensor: give one rule a "
                "priority, or say for this tensor which";
  diagnostics.push_back({match.rule->place,
                         describe(&node) + " " + why,
                         {{earlier.rule->place, "the other rule"},
                          {node.place, "'" + node.name + "' is made here"}}});
}

void Resolver::contradiction(const Node &node, const Match &match,
                             const Match &earlier) {
  if (!reported.insert({match.rule, earlier.rule}).second)
    return;
  diagnostics.push_back(
      {match.rule->place,
       "two rules say how '" + match.rule->dim + "' of " + describe(&node) +
           " is cut; keep one, or give one of them a priority",
       {{earlier.rule->place, "the other rule"}}});
}

bool Resolver::mayTake(const Node &node, const Match &match,
                       const Chosen &chosen) {
  auto equal = [&](const Match &other) {
    return other.reach == match.reach &&
           other.rule->priority == match.rule->priority;
  };
  const Rule &rule = *match.rule;
  auto it = chosen.byDim.find(rule.dim);
  if (!rule.replicates && it != chosen.byDim.end()) {
    if (equal(it->second))
      contradiction(node, match, it->second);
    return false;
  }
  for (const AxisUse &axis : rule.axes)
    for (const auto &[taken, by] : chosen.taken)
      if (overlap(plan, axis, taken)) {
        if (equal(by) && !(rule.replicates && by.rule->replicates))
          conflict(node, match, by, taken);
        return false;
      }
  return true;
}

Cut Resolver::cutOf(const Node &node) {
  Chosen chosen;
  Cut cut;
  for (const Match &match : matchesOf(node)) {
    if (!mayTake(node, match, chosen))
      continue;
    cut.isSpecial |= match.reach != Reach::All;
    for (const AxisUse &axis : match.rule->axes)
      chosen.taken.push_back({axis, match});
    if (match.rule->replicates)
      chosen.whole.insert(chosen.whole.end(), match.rule->axes.begin(),
                          match.rule->axes.end());
    else
      chosen.byDim.insert({match.rule->dim, match});
  }
  if (!chosen.byDim.empty() || !chosen.whole.empty())
    cut.text = textOf(node.shape, chosen);
  return cut;
}

Shardings Resolver::run() {
  for (const SelectionData &selection : plan.selections)
    checkSelection(selection);
  Shardings shardings;
  forEachNode(graph, [&](const Node &node) {
    if (Cut cut = cutOf(node); !cut.text.empty())
      shardings[&node] = cut;
  });
  return shardings;
}

} // namespace

Shardings resolvePlan(const Graph &graph, const PlanData &plan,
                      std::vector<Diagnostic> &diagnostics) {
  diagnostics = graph.diagnostics;
  graph.finish(diagnostics);
  bool isComplete = diagnostics.empty();
  diagnostics.insert(diagnostics.end(), plan.diagnostics.begin(),
                     plan.diagnostics.end());
  if (!isComplete)
    return {};
  return Resolver(graph, plan, diagnostics).run();
}

} // namespace cleave::dsl

std::string cleave::errors(const Model &model, const Plan &plan) {
  std::vector<dsl::Diagnostic> diagnostics;
  dsl::resolvePlan(*model.graph, *plan.data, diagnostics);
  return toText(diagnostics);
}

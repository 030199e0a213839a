//===- Plan.cpp - Plans as users write them -------------------------------===//
#include "cleave/plan.h"
#include "dsl/Maker.h"
#include "dsl/Names.h"
#include "dsl/Plan.h"

#include <algorithm>

namespace cleave {
namespace dsl {

const std::pair<std::string, int64_t> *
PlanData::findAxis(const std::string &name) const {
  auto it = std::find_if(axes.begin(), axes.end(),
                         [&](const auto &axis) { return axis.first == name; });
  return it == axes.end() ? nullptr : &*it;
}

std::string toText(const AxisUse &use) {
  std::string text = "\"" + use.axis + "\"";
  if (use.size != 0)
    text += ":(" + std::to_string(use.pre) + ")" + std::to_string(use.size);
  return text;
}

namespace {

bool isNumber(const std::string &text) {
  return !text.empty() && text.size() < 10 &&
         std::all_of(
             text.begin(), text.end(),
             [](char c) { return c >= '0' && c <= '9'; });
}

/// "tp" or "tp:(2)4".
bool parseAxis(PlanData &plan, const Place &place, const std::string &text,
               AxisUse &use) {
  size_t colon = text.find(':');
  use.axis = text.substr(0, colon);
  const auto *axis = plan.findAxis(use.axis);
  if (!axis) {
    std::vector<std::string> known;
    for (const auto &[name, size] : plan.axes)
      known.push_back(name);
    plan.error(place, "mesh '" + plan.mesh + "' has no axis '" + use.axis +
                          "'" + suggestion(use.axis, known));
    return false;
  }
  if (colon == std::string::npos)
    return true;
  size_t close = text.find(')');
  bool isWritten = text.compare(colon, 2, ":(") == 0 &&
                   close != std::string::npos &&
                   isNumber(text.substr(colon + 2, close - colon - 2)) &&
                   isNumber(text.substr(close + 1));
  if (!isWritten) {
    plan.error(place, "a part of an axis is written \"" + use.axis +
                          ":(2)4\", the digit of size 4 after the first 2 "
                          "shards; got \"" +
                          text + "\"");
    return false;
  }
  use.pre = std::stoll(text.substr(colon + 2, close - colon - 2));
  use.size = std::stoll(text.substr(close + 1));
  if (use.pre < 1 || use.size < 2 || axis->second % (use.pre * use.size) != 0) {
    plan.error(place,
               "\"" + text + "\" is no part of axis '" + use.axis + "': " +
                   std::to_string(use.pre) + " * " + std::to_string(use.size) +
                   " does not divide its size " + std::to_string(axis->second));
    return false;
  }
  return true;
}

/// The axes of a rule, if all are right.
bool parseAxes(PlanData &plan, const Place &place, const Axes &axes,
               std::vector<AxisUse> &uses) {
  for (const std::string &text : axes.names()) {
    AxisUse use;
    if (!parseAxis(plan, place, text, use))
      return false;
    for (const AxisUse &other : uses)
      if (toText(other) == toText(use)) {
        plan.error(place, "the rule names axis '" + text + "' twice");
        return false;
      }
    uses.push_back(use);
  }
  if (uses.empty())
    plan.error(place, "the rule names no axis; to leave a dim whole, use "
                      "replicate(dim)");
  return !uses.empty();
}

void checkMesh(PlanData &plan) {
  int64_t numRanks = 1;
  if (plan.mesh.empty())
    plan.error(plan.place, "the name of the mesh is empty");
  for (size_t i = 0; i < plan.axes.size(); ++i) {
    const auto &[name, size] = plan.axes[i];
    if (name.empty())
      plan.error(plan.place,
                 "axis " + std::to_string(i) + " of the mesh has no name");
    if (name.find_first_of(":\"") != std::string::npos)
      plan.error(plan.place,
                 "the name of axis '" + name + "' contains ':' or '\"'");
    if (plan.findAxis(name) != &plan.axes[i])
      plan.error(plan.place,
                 "mesh '" + plan.mesh + "' has two axes '" + name + "'");
    if (size < 1)
      plan.error(plan.place, "axis '" + name + "' has size " +
                                 std::to_string(size) +
                                 "; sizes are at least 1");
    if (size >= 1 && numRanks <= INT32_MAX)
      numRanks *= std::min<int64_t>(size, int64_t(INT32_MAX) + 1);
  }
  if (numRanks > INT32_MAX)
    plan.error(plan.place,
               "mesh '" + plan.mesh + "' has more than 2147483647 ranks");
  std::vector<int64_t> sorted = plan.ranks;
  std::sort(sorted.begin(), sorted.end());
  bool isPermutation = static_cast<int64_t>(sorted.size()) == numRanks;
  for (size_t i = 0; i < sorted.size(); ++i)
    isPermutation &= sorted[i] == static_cast<int64_t>(i);
  if (!plan.ranks.empty() && !isPermutation)
    plan.error(plan.place, "the ranks of mesh '" + plan.mesh +
                               "' are not 0 to " +
                               std::to_string(numRanks - 1) + " in some order");
}

} // namespace
} // namespace dsl

inline namespace lang {

using dsl::PlanData;
using dsl::Rule;
using dsl::SelectionData;

Selection &Selection::shard(const Dim &dim, const Axes &axes,
                            const ShardOptions &options, Where where) {
  Rule rule;
  rule.dim = dim.name();
  rule.dimSize = dim.size();
  rule.priority = options.priority;
  rule.open = options.open;
  rule.place = dsl::toPlace(where);
  if (options.priority < 0)
    data->error(rule.place, "the priority is " +
                                std::to_string(options.priority) +
                                "; the most important one is 0");
  else if (dsl::parseAxes(*data, rule.place, axes, rule.axes))
    data->selections[index].rules.push_back(rule);
  return *this;
}

Selection &Selection::replicate(const Dim &dim, Where where) {
  Rule rule;
  rule.dim = dim.name();
  rule.dimSize = dim.size();
  rule.place = dsl::toPlace(where);
  data->selections[index].rules.push_back(rule);
  return *this;
}

Selection &Selection::replicate(const Axes &axes, Where where) {
  Rule rule;
  rule.replicates = true;
  rule.place = dsl::toPlace(where);
  if (dsl::parseAxes(*data, rule.place, axes, rule.axes))
    data->selections[index].rules.push_back(rule);
  return *this;
}

Plan::Plan(const Mesh &mesh) : data(std::make_shared<PlanData>()) {
  data->mesh = mesh.name;
  data->place = dsl::toPlace(mesh.where);
  for (const Mesh::Axis &axis : mesh.axes)
    data->axes.push_back({axis.name, axis.size});
  data->ranks = mesh.ranks;
  data->selections.emplace_back();
  dsl::checkMesh(*data);
}

Plan &Plan::shard(const Dim &dim, const Axes &axes, const ShardOptions &options,
                  Where where) {
  Selection(data, 0).shard(dim, axes, options, where);
  return *this;
}

Plan &Plan::replicate(const Dim &dim, Where where) {
  Selection(data, 0).replicate(dim, where);
  return *this;
}

Plan &Plan::replicate(const Axes &axes, Where where) {
  Selection(data, 0).replicate(axes, where);
  return *this;
}

Selection Plan::at(const std::string &scopes, Where where) {
  data->selections.push_back(
      {SelectionData::Reach::Scope, scopes, dsl::toPlace(where), {}});
  return Selection(data, data->selections.size() - 1);
}

Selection Plan::tensor(const std::string &name, Where where) {
  data->selections.push_back(
      {SelectionData::Reach::Tensor, name, dsl::toPlace(where), {}});
  return Selection(data, data->selections.size() - 1);
}

Plan &Plan::pipeline(const std::string &axis, const Pipeline &options,
                     Where where) {
  dsl::Place place = dsl::toPlace(where);
  dsl::AxisUse use;
  if (dsl::parseAxis(*data, place, axis, use)) {
    data->pipelines.push_back(
        {axis, options.stages, options.microbatches, place});
    data->error(place, "the plan cuts the layers into " +
                           std::to_string(options.stages) + " stages along '" +
                           axis +
                           "'; stages are not built in this version: remove "
                           "pipeline(), and shard a dim over '" +
                           axis + "' instead");
  }
  return *this;
}

} // namespace lang
} // namespace cleave

//===- Plan.h - The rules of a plan, and what they say of tensors *- C++
//-*-===//
#ifndef CLEAVE_DSL_PLAN_H
#define CLEAVE_DSL_PLAN_H

#include "dsl/Graph.h"

#include <map>

namespace cleave::dsl {

/// An axis as a rule names it: "tp", or "tp:(2)4".
struct AxisUse {
  std::string axis;
  int64_t pre = 1;
  /// 0: the whole axis.
  int64_t size = 0;
};

/// "\"tp\":(2)4", as shardings are written.
std::string toText(const AxisUse &use);

struct Rule {
  /// A dim that is cut, or left whole where there are no axes.
  std::string dim;
  int64_t dimSize = 0;
  std::vector<AxisUse> axes;
  /// Without a dim: tensors stay whole along `axes`.
  bool replicates = false;
  int priority = 0;
  bool open = false;
  Place place;
};

/// The rules for some tensors. The more special ones come first.
struct SelectionData {
  enum class Reach { All, Scope, Tensor };
  Reach reach = Reach::All;
  std::string pattern;
  Place place;
  std::vector<Rule> rules;
};

struct PlanData {
  std::string mesh;
  std::vector<std::pair<std::string, int64_t>> axes;
  std::vector<int64_t> ranks;
  Place place;
  std::vector<SelectionData> selections;
  /// Where a pipeline was asked for.
  struct PipelineData {
    std::string axis;
    int stages, microbatches;
    Place place;
  };
  std::vector<PipelineData> pipelines;
  std::vector<Diagnostic> diagnostics;

  const std::pair<std::string, int64_t> *
  findAxis(const std::string &name) const;
  void error(Place where, std::string text, std::vector<Note> notes = {}) {
    diagnostics.push_back(
        {std::move(where), std::move(text), std::move(notes)});
  }
};

/// How the plan cuts a tensor, written as in IR without the mesh:
/// `[{"dp"}, {?}]`.
struct Cut {
  std::string text;
  /// Whether a rule for scopes or for one tensor had a say.
  bool isSpecial = false;
};
/// Tensors of which no rule speaks are left out.
using Shardings = std::map<const Node *, Cut>;

/// Applies the plan to the model; all mistakes of both go to `diagnostics`.
Shardings resolvePlan(const Graph &graph, const PlanData &plan,
                      std::vector<Diagnostic> &diagnostics);

} // namespace cleave::dsl

#endif // CLEAVE_DSL_PLAN_H

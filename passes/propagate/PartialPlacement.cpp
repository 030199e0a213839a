//===- PartialPlacement.cpp - Where partial values are reduced ------------===//
// Axes that are always created together, with one kind, are one colour, and
// colours are decided one after the other.
#include "passes/propagate/PartialPainter.h"
#include "llvm/ADT/STLExtras.h"
#include <map>

namespace cleave {

AxisList PartialResult::reducedAt(unsigned value) const {
  return normalizeAxisSet(withoutAxes(produced[value], kept[value]));
}

//===----------------------------------------------------------------------===//
// Colours
//===----------------------------------------------------------------------===//

/// Splits all sets of one kind at each other's cuts, and joins what always
/// stands together.
static std::vector<Color> findColors(const PartialProblem &problem) {
  std::map<ReductionKind, AxisList> atoms;
  auto add = [&](ReductionKind kind, const AxisList &axes) {
    AxisList &known = atoms[kind], more = axes;
    alignAxes(known, more);
    for (AxisRef ref : more)
      if (ref.size > 1 && !llvm::is_contained(known, ref))
        known.push_back(ref);
  };
  for (const PartialValue &value : problem.values) {
    add(value.kind, value.created);
    add(value.declaredKind, value.declared);
  }
  std::vector<Color> colors;
  for (auto &[kind, refs] : atoms) {
    std::map<std::vector<bool>, AxisList> sets;
    llvm::sort(refs);
    for (AxisRef ref : refs) {
      std::vector<bool> where;
      for (const PartialValue &value : problem.values) {
        auto has = [&](const AxisList &axes) {
          return !axes.empty() && (llvm::is_contained(axes, ref) ||
                                   withoutAxes({ref}, axes).empty());
        };
        where.push_back(value.kind == kind && has(value.created));
        where.push_back(value.declaredKind == kind && has(value.declared));
      }
      sets[where].push_back(ref);
    }
    size_t first = colors.size();
    for (auto &[where, axes] : sets)
      colors.push_back({kind, axes});
    llvm::sort(colors.begin() + first, colors.end(),
               [](const Color &a, const Color &b) { return a.axes < b.axes; });
  }
  return colors;
}

PartialResult placePartials(const PartialProblem &given) {
  PartialProblem withCost;
  const PartialProblem *problem = &given;
  if (!given.reduceCost) {
    withCost = given;
    withCost.reduceCost = [&](unsigned value, llvm::ArrayRef<AxisRef> axes) {
      double n = static_cast<double>(axesSize(axes));
      return 2 * (n - 1) / n * given.values[value].bytes;
    };
    problem = &withCost;
  }
  PartialResult result;
  size_t numValues = given.values.size();
  result.produced.resize(numValues);
  result.kept.resize(numValues);
  result.kinds.resize(numValues, ReductionKind::Sum);
  std::vector<unsigned> producer(numValues, kNone);
  std::vector<std::optional<ReductionKind>> opKinds(given.ops.size());
  for (auto [i, op] : llvm::enumerate(given.ops)) {
    if (op.loop)
      producer[op.operands[kIterArg]] = i;
    for (unsigned r : op.results) {
      producer[r] = i;
      if (!given.values[r].created.empty())
        opKinds[i] = given.values[r].kind;
    }
  }
  for (const Color &color : findColors(given))
    Painter(*problem, color, producer, opKinds, result).run();
  for (unsigned v = 0; v < numValues; ++v) {
    result.produced[v] = normalizeAxisSet(result.produced[v]);
    result.kept[v] = normalizeAxisSet(result.kept[v]);
    AxisList reduced = result.reducedAt(v);
    if (!reduced.empty())
      result.bytes += given.values[v].times * problem->reduceCost(v, reduced);
  }
  return result;
}

} // namespace cleave

//===- PartialPainter.cpp - One set of partial axes -----------------------===//
// Each value is either kept partial or whole, and the cheapest labelling is a
// minimum cut:
//
//   source -> v   bytes to reduce v, if v is created partial
//   u -> r        bytes to reduce r, if u passes through an op to r
//   r -> u        infinite: r is not partial unless u is
//   v -> sink     infinite, if v is needed whole
//
// What a loop carries is tied to what it yields, and a partial init to both.
//
// An operand that an op only adds to summands of its own needs no edge.
// Operands that must be partial together (both summands of an add) are tied by
// infinite edges. Where an op admits several sets of partial operands (either
// side of a product, but not both) one set, its mode, is fixed before the cut,
// and other modes are tried afterwards. Each connected part of the graph is cut
// alone; between two non-linear ops they are small.
#include "passes/propagate/PartialPainter.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

namespace cleave {

/// What it costs to reduce a value that is declared partial.
static constexpr int64_t kDeclared = int64_t(1) << 52;
/// With this many potentially partial operands all sets of them are asked for.
static constexpr unsigned kAllSets = 4;
/// Up to this many combinations of modes are all tried, in parts up to this
/// size.
static constexpr size_t kAllModes = 128, kSmallPart = 64;
/// How many cuts a part may use to try other modes: many if it is small.
static constexpr size_t kTryWork = 20000, kMinTries = 8;

//===----------------------------------------------------------------------===//
// What could be partial
//===----------------------------------------------------------------------===//

bool Painter::creates(unsigned value) const {
  const PartialValue &v = problem.values[value];
  if (!v.created.empty() && v.kind == color.kind && has(v.created))
    return true;
  return producer[value] == kNone && declared[value];
}

/// Whether the operand may be partial as it likes: it is one more summand of
/// what the op creates.
bool Painter::joins(unsigned op, unsigned position) const {
  const PartialOp &o = problem.ops[op];
  return llvm::is_contained(o.accumulators, position) &&
         llvm::all_of(o.results, [&](unsigned result) {
           const PartialValue &r = problem.values[result];
           return r.kind == color.kind && has(r.created);
         });
}

bool Painter::allows(unsigned op, llvm::ArrayRef<unsigned> positions) const {
  const PartialOp &o = problem.ops[op];
  llvm::BitVector set(o.operands.size());
  for (unsigned i : positions)
    set.set(i);
  // Two uses of one value are partial together.
  for (auto [i, value] : llvm::enumerate(o.operands))
    for (unsigned k : positions)
      if (o.operands[k] == value && !set.test(i))
        return false;
  return problem.letsThrough(op, color.kind, set);
}

void Painter::findModes(unsigned op) {
  const PartialOp &o = problem.ops[op];
  Mode able;
  for (auto [i, value] : llvm::enumerate(o.operands))
    if (potential[value])
      able.push_back(i);
  if (able.empty() || (opKinds[op] && *opKinds[op] != color.kind) ||
      llvm::any_of(color.axes,
                   [&](AxisRef ref) { return overlaps(o.usedAxes, ref); }))
    return;
  auto add = [&](Mode set) {
    if (!set.empty() && !llvm::is_contained(modes[op], set) && allows(op, set))
      modes[op].push_back(std::move(set));
  };
  add(able);
  if (able.size() <= kAllSets) {
    for (unsigned bits = 1; bits < (1u << able.size()); ++bits) {
      Mode set;
      for (auto [i, position] : llvm::enumerate(able))
        if (bits & (1u << i))
          set.push_back(position);
      add(std::move(set));
    }
    return;
  }
  for (unsigned out : able) {
    add({out});
    Mode others;
    llvm::copy_if(able, std::back_inserter(others),
                  [&](unsigned i) { return i != out; });
    add(std::move(others));
  }
}

/// Whether nothing forbids that the loop carries summands.
bool Painter::mayCarry(unsigned op) const {
  const PartialOp &o = problem.ops[op];
  return o.loop && llvm::none_of(color.axes, [&](AxisRef ref) {
           return overlaps(problem.values[o.operands[kIterArg]].cutAxes, ref);
         });
}

/// From what is created and carried to what follows from it.
void Painter::spread() {
  for (auto [i, op] : llvm::enumerate(problem.ops)) {
    modes[i].clear();
    if (!op.loop)
      findModes(i);
    else if (potential[op.operands[kIterArg]])
      modes[i].push_back({kYielded});
    if (!modes[i].empty())
      for (unsigned r : op.results)
        potential[r] = true;
  }
}

void Painter::findPotential() {
  std::vector<unsigned> loops;
  for (unsigned i = 0; i < problem.ops.size(); ++i)
    if (mayCarry(i))
      loops.push_back(i);
  for (auto [v, value] : llvm::enumerate(problem.values))
    declared[v] = !value.declared.empty() && value.declaredKind == color.kind &&
                  has(value.declared);
  // A loop carries summands as long as nothing shows that it yields none.
  size_t numLoops = 0;
  do {
    numLoops = loops.size();
    for (unsigned v = 0; v < potential.size(); ++v)
      potential[v] = creates(v);
    for (unsigned i : loops)
      potential[problem.ops[i].operands[kIterArg]] = true;
    spread();
    llvm::erase_if(loops, [&](unsigned i) {
      return !potential[problem.ops[i].operands[kYielded]];
    });
  } while (loops.size() < numLoops);
}

/// Values that cannot stay partial, and declarations that contradict that.
void Painter::findWhole() {
  for (auto [v, value] : llvm::enumerate(problem.values)) {
    if (declared[v] && !potential[v]) {
      report(PartialError::NotPartial, v, producer[v]);
      declared[v] = false;
    }
    // One tensor holds summands of one kind only.
    bool otherKind = !result.kept[v].empty() && result.kinds[v] != color.kind;
    bool cut = llvm::any_of(
        color.axes, [&](AxisRef ref) { return overlaps(value.cutAxes, ref); });
    whole[v] = otherKind || cut || (value.neededWhole && !declared[v]);
  }
  for (auto [i, op] : llvm::enumerate(problem.ops))
    for (auto [position, v] : llvm::enumerate(op.operands)) {
      bool carried = op.loop && !modes[i].empty();
      if (!potential[v] || joins(i, position) || carried ||
          llvm::any_of(modes[i], [&](const Mode &mode) {
            return llvm::is_contained(mode, position);
          }))
        continue;
      if (declared[v])
        report(PartialError::NonLinearUse, v, i);
      declared[v] = false;
      whole[v] = true;
    }
}

void Painter::report(PartialError::Kind kind, unsigned value, unsigned op) {
  for (PartialError &error : result.errors)
    if (error.kind == kind && error.value == value && error.op == op) {
      llvm::append_range(error.axes, color.axes);
      error.axes = normalizeAxisSet(error.axes);
      return;
    }
  result.errors.push_back({kind, value, op, normalizeAxisSet(color.axes)});
}

//===----------------------------------------------------------------------===//
// The cut
//===----------------------------------------------------------------------===//

std::vector<Painter::Part> Painter::findParts() const {
  std::vector<unsigned> leader(problem.values.size());
  std::iota(leader.begin(), leader.end(), 0);
  auto find = [&](unsigned v) {
    while (leader[v] != v)
      v = leader[v] = leader[leader[v]];
    return v;
  };
  auto anchor = [&](unsigned op) {
    return problem.ops[op].operands[modes[op].front().front()];
  };
  for (auto [i, op] : llvm::enumerate(problem.ops)) {
    if (modes[i].empty())
      continue;
    auto unite = [&](unsigned v) {
      unsigned a = find(anchor(i)), b = find(v);
      leader[std::max(a, b)] = std::min(a, b);
    };
    for (const Mode &mode : modes[i])
      for (unsigned position : mode)
        unite(op.operands[position]);
    for (unsigned r : op.results)
      unite(r);
    if (op.loop)
      for (unsigned v : op.operands)
        if (potential[v])
          unite(v);
  }
  std::vector<unsigned> index(leader.size(), kNone);
  std::vector<Part> parts;
  for (unsigned v = 0; v < leader.size(); ++v) {
    if (!potential[v])
      continue;
    unsigned &part = index[find(v)];
    if (part == kNone) {
      part = parts.size();
      parts.emplace_back();
    }
    parts[part].values.push_back(v);
  }
  for (unsigned i = 0; i < problem.ops.size(); ++i)
    if (!modes[i].empty())
      parts[index[find(anchor(i))]].ops.push_back(i);
  return parts;
}

void Painter::build(MinCut &graph, const Part &part) const {
  for (unsigned v : part.values) {
    if (declared[v])
      graph.addSource(node[v], kDeclared);
    if (creates(v))
      graph.addSource(node[v], capacity(v));
    if (whole[v])
      graph.addSink(node[v], MinCut::kInfinite);
  }
  for (unsigned i : part.ops) {
    const PartialOp &op = problem.ops[i];
    if (op.loop) {
      buildLoop(graph, i);
      continue;
    }
    const Mode &mode = modes[i][chosen[i]];
    unsigned u = node[op.operands[mode.front()]];
    for (auto [position, v] : llvm::enumerate(op.operands)) {
      if (!potential[v])
        continue;
      if (!llvm::is_contained(mode, position)) {
        // One that no mode admits is whole, and may belong to another part.
        if (!whole[v])
          graph.addSink(node[v], MinCut::kInfinite);
        continue;
      }
      graph.addEdge(u, node[v], MinCut::kInfinite);
      graph.addEdge(node[v], u, MinCut::kInfinite);
    }
    for (unsigned r : op.results) {
      if (creates(r))
        continue;
      graph.addEdge(u, node[r], capacity(r));
      graph.addEdge(node[r], u, MinCut::kInfinite);
    }
  }
}

void Painter::buildLoop(MinCut &graph, unsigned op) const {
  const PartialOp &loop = problem.ops[op];
  unsigned arg = node[loop.operands[kIterArg]];
  unsigned yielded = node[loop.operands[kYielded]];
  graph.addEdge(arg, yielded, MinCut::kInfinite);
  graph.addEdge(yielded, arg, MinCut::kInfinite);
  if (unsigned init = loop.operands[kInit]; potential[init])
    graph.addEdge(node[init], arg, MinCut::kInfinite);
  unsigned result = loop.results.front();
  graph.addEdge(yielded, node[result], capacity(result));
  graph.addEdge(node[result], yielded, MinCut::kInfinite);
}

bool Painter::passes(unsigned op, const std::vector<bool> &kept) const {
  return !modes[op].empty() &&
         kept[node[problem.ops[op].operands[modes[op][chosen[op]].front()]]];
}

bool Painter::isProduced(unsigned value, const std::vector<bool> &kept) const {
  return creates(value) ||
         (producer[value] != kNone && passes(producer[value], kept));
}

/// Cuts with the chosen modes; the bytes, with declarations broken counted as
/// kDeclared.
double Painter::cut(const Part &part, std::vector<bool> &kept) {
  MinCut graph(part.values.size());
  build(graph, part);
  kept = graph.solve();
  double bytes = 0;
  for (unsigned v : part.values) {
    if (kept[node[v]])
      continue;
    if (declared[v])
      bytes += static_cast<double>(kDeclared);
    if (isProduced(v, kept))
      bytes += reduceBytes(v);
  }
  return bytes;
}

/// First what is dear to reduce stays partial.
void Painter::chooseDearest(unsigned op) {
  double most = -1;
  for (auto [m, mode] : llvm::enumerate(modes[op])) {
    double bytes = 0;
    for (unsigned position : mode)
      bytes += reduceBytes(problem.ops[op].operands[position]);
    if (bytes > most) {
      most = bytes;
      chosen[op] = m;
    }
  }
}

/// Tries every combination of modes.
void Painter::tryAllModes(const Part &part, llvm::ArrayRef<unsigned> undecided,
                          std::vector<bool> &kept) {
  double best = cut(part, kept);
  std::vector<unsigned> bestModes = chosen;
  std::vector<bool> other;
  for (unsigned i : undecided)
    chosen[i] = 0;
  size_t at = 0;
  while (at < undecided.size()) {
    double bytes = cut(part, other);
    if (bytes < best) {
      best = bytes;
      kept.swap(other);
      bestModes = chosen;
    }
    for (at = 0; at < undecided.size(); ++at) {
      unsigned i = undecided[at];
      if (++chosen[i] < modes[i].size())
        break;
      chosen[i] = 0;
    }
  }
  chosen = std::move(bestModes);
}

/// Changes one mode at a time while that saves bytes.
void Painter::improveModes(const Part &part, llvm::ArrayRef<unsigned> undecided,
                           std::vector<bool> &kept) {
  double best = cut(part, kept);
  size_t tries = std::max(kMinTries, kTryWork / part.values.size());
  std::vector<bool> other;
  bool improved = true;
  while (improved) {
    improved = false;
    for (unsigned i : undecided)
      for (unsigned m = 0; m < modes[i].size() && tries > 0; ++m) {
        unsigned before = chosen[i];
        if (m == before)
          continue;
        --tries;
        chosen[i] = m;
        double bytes = cut(part, other);
        if (bytes < best) {
          best = bytes;
          kept.swap(other);
          improved = true;
        } else {
          chosen[i] = before;
        }
      }
  }
}

void Painter::solve(Part &part) {
  for (auto [i, v] : llvm::enumerate(part.values))
    node[v] = i;
  std::vector<unsigned> undecided;
  size_t combinations = 1;
  for (unsigned i : part.ops) {
    if (modes[i].size() < 2)
      continue;
    undecided.push_back(i);
    combinations = std::min(combinations * modes[i].size(), kAllModes + 1);
    chooseDearest(i);
  }
  std::vector<bool> kept;
  if (undecided.empty())
    cut(part, kept);
  else if (combinations <= kAllModes && part.values.size() <= kSmallPart)
    tryAllModes(part, undecided, kept);
  else
    improveModes(part, undecided, kept);
  finish(part, kept);
}

void Painter::finish(const Part &part, const std::vector<bool> &kept) {
  for (unsigned v : part.values) {
    bool produced = isProduced(v, kept), stays = kept[node[v]];
    if (produced) {
      llvm::append_range(result.produced[v], color.axes);
      if (producer[v] != kNone)
        opKinds[producer[v]] = color.kind;
    }
    if (stays)
      llvm::append_range(result.kept[v], color.axes);
    if (produced)
      result.kinds[v] = color.kind;
    if (declared[v] && !stays)
      reportBroken(part, v, produced);
  }
}

/// Says why a value could not stay partial although it is declared so.
void Painter::reportBroken(const Part &part, unsigned value, bool produced) {
  if (!produced) {
    report(PartialError::NotPartial, value, producer[value]);
    return;
  }
  std::optional<unsigned> user;
  for (unsigned i : part.ops) {
    const auto &operands = problem.ops[i].operands;
    for (auto [position, operand] : llvm::enumerate(operands)) {
      if (operand != value)
        continue;
      // The op itself, or, if it would let the value through, the first one:
      // what must be partial together with the value is needed whole.
      if (!llvm::is_contained(modes[i][chosen[i]], position)) {
        report(PartialError::NonLinearUse, value, i);
        return;
      }
      user = user.value_or(i);
    }
  }
  if (user)
    report(PartialError::NonLinearUse, value, *user);
}

void Painter::run() {
  findPotential();
  findWhole();
  for (Part &part : findParts())
    solve(part);
}

} // namespace cleave

//===- SharedMoves.cpp - Values moved once for several readers ------------===//
// A reader wishes for a move if it is computed at axes that its other tensors
// do not have, because the value has them. All values with such readers are
// moved at once, on trial, and the program is solved again. What differs then
// falls into parts that have nothing to do with each other: in each layer the
// one around the first norm, the one around the second. A part that sends less
// keeps its moves; the others are taken back. So a trial costs two propagations
// whatever the number of values. Values with several wishes, and those that
// only show after a move, have their turn in another trial.
#include "passes/propagate/SharedMoves.h"
#include "passes/propagate/AxisLists.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include <map>
#include <numeric>

namespace cleave {
namespace {

constexpr unsigned kTrials = 3;
/// Less than this saves nothing: what is counted are bytes.
constexpr double kLeastSaving = 0.5;

/// What some readers of a value would like.
struct Wish {
  Sharding sharding;
  llvm::SmallVector<unsigned, 4> readers;
};

class Sharer {
public:
  Sharer(PropagationProblem &problem, Placer &placer, PropagationResult &result,
         Placement &placement)
      : problem(problem), placer(placer), result(result), placement(placement) {
  }
  std::vector<SharedMove> run();

private:
  using Moves = std::vector<SharedMove>;
  struct Solution {
    PropagationResult result;
    Placement placement;
    std::vector<double> bytes;
    bool valid = false;
  };
  Moves find();
  void addWishes(unsigned op);
  AxisList lostAxes(unsigned op, unsigned value, bool ofResults) const;
  Sharding without(unsigned value, llvm::ArrayRef<AxisRef> lost) const;
  Sharding exchanged(unsigned op, unsigned value,
                     llvm::ArrayRef<AxisRef> lost) const;
  void addWish(unsigned value, Sharding sharding, unsigned reader);
  void setPriorities(Moves &moves) const;
  bool tryOut(Moves trial);
  void apply(Moves &moves);
  void revert(const Moves &moves);
  Solution solve();
  Moves better(const Moves &trial, const Solution &now) const;
  void take(const Moves &moves, Solution solution);

  PropagationProblem &problem;
  Placer &placer;
  PropagationResult &result;
  Placement &placement;
  /// By value.
  std::vector<double> bytes;
  std::vector<bool> cheap;
  Moves taken;
  std::map<unsigned, llvm::SmallVector<Wish, 2>> wishes;
  /// Per value, where it was moved to on trial.
  std::map<unsigned, llvm::SmallVector<Sharding, 1>> tried;
};

bool sameCut(const Sharding &a, const Sharding &b) {
  return llvm::all_of(llvm::zip_equal(a.dims, b.dims), [](auto pair) {
    return std::get<0>(pair).axes == std::get<1>(pair).axes;
  });
}

} // namespace

//===----------------------------------------------------------------------===//
// Wishes
//===----------------------------------------------------------------------===//

/// Axes that cut the value, and other operands (or results) too, but those not
/// while the op is computed: they are moved although the op could as well be
/// computed where they lie.
AxisList Sharer::lostAxes(unsigned index, unsigned value,
                          bool ofResults) const {
  const PropagationOp &op = problem.ops[index];
  const FactorChoice &choice = *placement.choices[index];
  AxisList lost;
  auto add = [&](const Sharding &lies, const Sharding &at) {
    for (auto [is, used] : llvm::zip_equal(lies.dims, at.dims))
      for (AxisRef ref : comparePrefix(is.axes, used.axes).restA)
        // What a reduction scatters is no loss.
        if (!overlaps(at.partial, ref))
          lost.push_back(ref);
  };
  if (ofResults)
    for (auto [id, at] : llvm::zip_equal(op.results, choice.results))
      add(placement.shardings[id], at);
  else
    for (auto [id, at] : llvm::zip_equal(op.operands, choice.operands))
      if (id != value && !cheap[id])
        add(placement.shardings[id], at);
  AxisList own = placement.shardings[value].shardedAxes();
  llvm::erase_if(lost, [&](AxisRef ref) { return !overlaps(own, ref); });
  return lost;
}

Sharding Sharer::without(unsigned value, llvm::ArrayRef<AxisRef> lost) const {
  Sharding sharding = placement.shardings[value];
  sharding.replicated.clear();
  for (DimSharding &dim : sharding.dims)
    dim.axes = withoutAxes(dim.axes, AxisList(lost.begin(), lost.end()));
  return sharding;
}

/// The lost axes cut the value where they cut the factors of the op's other
/// tensors: summed dims, so that only a partial result is left to move.
Sharding Sharer::exchanged(unsigned index, unsigned value,
                           llvm::ArrayRef<AxisRef> lost) const {
  const PropagationOp &op = problem.ops[index];
  Sharding sharding = without(value, lost);
  unsigned position = llvm::find(op.operands, value) - op.operands.begin();
  for (auto [dim, factors] :
       llvm::zip_equal(sharding.dims, op.rule.operands[position].dims)) {
    if (factors.size() != 1)
      continue;
    for (auto [k, id] : llvm::enumerate(op.operands))
      for (auto [d, other] : llvm::enumerate(op.rule.operands[k].dims)) {
        const AxisList &axes = placement.shardings[id].dims[d].axes;
        if (id == value || cheap[id] || other != factors || axes.empty())
          continue;
        AxisList used = sharding.shardedAxes();
        if (dim.axes.empty() && freePrefix(axes, used) == axes)
          dim.axes = axes;
      }
  }
  return sharding;
}

void Sharer::addWish(unsigned value, Sharding sharding, unsigned reader) {
  if (sameCut(sharding, placement.shardings[value]))
    return;
  for (const Sharding &other : tried[value])
    if (sameCut(other, sharding))
      return;
  for (Wish &wish : wishes[value])
    if (sameCut(wish.sharding, sharding)) {
      if (wish.readers.back() != reader)
        wish.readers.push_back(reader);
      return;
    }
  wishes[value].push_back({std::move(sharding), {reader}});
}

void Sharer::addWishes(unsigned index) {
  const PropagationOp &op = problem.ops[index];
  for (auto [position, id] : llvm::enumerate(op.operands)) {
    const Sharding &lies = placement.shardings[id];
    // Summands are left to the placement of reductions.
    if (cheap[id] || problem.values[id].foreign || !lies.partial.empty() ||
        llvm::is_contained(llvm::ArrayRef(op.operands).take_front(position),
                           id))
      continue;
    AxisList lost = lostAxes(index, id, /*ofResults=*/false);
    if (!lost.empty()) {
      addWish(id, exchanged(index, id, lost), index);
      addWish(id, without(id, lost), index);
    }
    lost = lostAxes(index, id, /*ofResults=*/true);
    if (!lost.empty())
      addWish(id, without(id, lost), index);
  }
}

/// A moved value speaks when the value itself would have: its dims have the
/// priorities of what cuts them.
void Sharer::setPriorities(Moves &moves) const {
  std::map<unsigned, Sharding *> moved;
  for (SharedMove &move : moves) {
    moved[move.value] = &move.sharding;
    for (auto [dim, own] : llvm::zip_equal(
             move.sharding.dims, problem.values[move.value].initial.dims))
      dim.priority = own.priority;
  }
  for (const Decision &decision : result.decisions)
    if (auto it = moved.find(decision.value); it != moved.end()) {
      auto &priority = it->second->dims[decision.dim].priority;
      priority = std::max(priority.value_or(0), decision.priority);
    }
}

/// For each value the wish of most readers, if they are several.
Sharer::Moves Sharer::find() {
  wishes.clear();
  cheap = cheapValues(problem);
  for (unsigned i = 0; i < problem.ops.size(); ++i)
    if (placement.choices[i] && placement.choices[i]->bytes > kLeastSaving)
      addWishes(i);
  Moves moves;
  for (auto &[value, wished] : wishes) {
    Wish &most = *llvm::max_element(wished, [](const Wish &a, const Wish &b) {
      return a.readers.size() < b.readers.size();
    });
    if (most.readers.size() < 2)
      continue;
    SharedMove &move = moves.emplace_back();
    move.value = value;
    move.sharding = most.sharding;
    move.readers = most.readers;
  }
  if (!moves.empty())
    setPriorities(moves);
  return moves;
}

//===----------------------------------------------------------------------===//
// Trials
//===----------------------------------------------------------------------===//

static void redirect(PropagationOp &reader, unsigned from, unsigned to) {
  llvm::replace(reader.operands, from, to);
}

void Sharer::apply(Moves &moves) {
  for (SharedMove &move : moves) {
    move.moved = problem.values.size();
    move.op = problem.ops.size();
    PropagationValue value = problem.values[move.value];
    value.initial = move.sharding;
    PropagationOp op;
    op.rule = identityRule(value.shape);
    op.operands.push_back(move.value);
    op.results.push_back(move.moved);
    op.direction = Direction::None;
    op.tie = Tie::Move;
    op.times = value.times;
    problem.values.push_back(std::move(value));
    problem.ops.push_back(std::move(op));
    for (unsigned reader : move.readers)
      redirect(problem.ops[reader], move.value, move.moved);
  }
}

void Sharer::revert(const Moves &moves) {
  for (const SharedMove &move : llvm::reverse(moves)) {
    for (unsigned reader : move.readers)
      redirect(problem.ops[reader], move.moved, move.value);
    problem.values.pop_back();
    problem.ops.pop_back();
  }
}

Sharer::Solution Sharer::solve() {
  Solution solution;
  solution.result = propagate(problem);
  solution.placement = placer.place(problem, solution.result.shardings);
  solution.bytes = bytesOfValues(problem, solution.placement);
  solution.valid = solution.result.errors.empty() &&
                   solution.placement.partials.errors.empty();
  return solution;
}

namespace {
/// What differs between two solutions, in parts that do not touch.
class Differences {
public:
  Differences(const PropagationProblem &problem, const Placement &before,
              llvm::ArrayRef<double> bytesBefore, const Placement &now,
              llvm::ArrayRef<double> bytesNow);
  struct Change {
    double before = 0, now = 0;
  };
  /// Of the part that the value belongs to.
  Change at(unsigned value) { return parts[find(value)]; }

private:
  unsigned find(unsigned value) {
    while (leader[value] != value)
      value = leader[value] = leader[leader[value]];
    return value;
  }
  void join(unsigned a, unsigned b) {
    a = find(a), b = find(b);
    leader[std::max(a, b)] = std::min(a, b);
  }

  std::vector<unsigned> leader;
  std::map<unsigned, Change> parts;
};
} // namespace

Differences::Differences(const PropagationProblem &problem,
                         const Placement &before,
                         llvm::ArrayRef<double> bytesBefore,
                         const Placement &now, llvm::ArrayRef<double> bytesNow)
    : leader(problem.values.size()) {
  std::iota(leader.begin(), leader.end(), 0);
  auto differs = [&](unsigned v) {
    return v >= bytesBefore.size() || bytesBefore[v] != bytesNow[v] ||
           !before.shardings[v].sameLayout(now.shardings[v]);
  };
  for (auto [i, op] : llvm::enumerate(problem.ops)) {
    bool isMove = i >= before.choices.size();
    if (!isMove && before.choices[i] == now.choices[i])
      continue;
    std::optional<unsigned> first;
    auto add = [&](unsigned v) {
      if (isMove || differs(v))
        join(first.value_or(v), v);
      if (isMove || differs(v))
        first = v;
    };
    llvm::for_each(op.operands, add);
    llvm::for_each(op.results, add);
  }
  for (unsigned v = 0; v < leader.size(); ++v)
    if (differs(v)) {
      Change &change = parts[find(v)];
      change.before += v < bytesBefore.size() ? bytesBefore[v] : 0;
      change.now += bytesNow[v];
    }
}

/// The moves of those parts that send less.
Sharer::Moves Sharer::better(const Moves &trial, const Solution &now) const {
  Differences differences(problem, placement, bytes, now.placement, now.bytes);
  Moves kept;
  for (const SharedMove &move : trial) {
    Differences::Change change = differences.at(move.value);
    if (change.now > change.before - kLeastSaving)
      continue;
    kept.push_back(move);
    kept.back().bytes = change.now;
    kept.back().bytesBefore = change.before;
  }
  return kept;
}

void Sharer::take(const Moves &moves, Solution solution) {
  llvm::append_range(taken, moves);
  result = std::move(solution.result);
  placement = std::move(solution.placement);
  bytes = std::move(solution.bytes);
}

bool Sharer::tryOut(Moves trial) {
  for (const SharedMove &move : trial)
    tried[move.value].push_back(move.sharding);
  apply(trial);
  Solution solution = solve();
  Moves kept = solution.valid ? better(trial, solution) : Moves();
  if (kept.size() < trial.size()) {
    revert(trial);
    if (kept.empty())
      return false;
    apply(kept);
    solution = solve();
  }
  auto sum = [](llvm::ArrayRef<double> bytes) {
    return std::accumulate(bytes.begin(), bytes.end(), 0.0);
  };
  if (!solution.valid || sum(solution.bytes) > sum(bytes) - kLeastSaving) {
    revert(kept);
    return false;
  }
  take(kept, std::move(solution));
  return true;
}

std::vector<SharedMove> Sharer::run() {
  for (unsigned n = 0; n < kTrials; ++n) {
    Moves trial = find();
    if (trial.empty())
      break;
    if (n == 0)
      bytes = bytesOfValues(problem, placement);
    tryOut(std::move(trial));
  }
  return std::move(taken);
}

std::vector<SharedMove> shareMoves(PropagationProblem &problem, Placer &placer,
                                   PropagationResult &result,
                                   Placement &placement) {
  return Sharer(problem, placer, result, placement).run();
}

} // namespace cleave

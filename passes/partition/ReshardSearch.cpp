//===- ReshardSearch.cpp - The cheapest path between two shardings --------===//
// Two Dijkstra searches, forwards from the start and backwards from the goal.
// A path is found where they share a state, or where a permute leads from a
// state of one to a state of the other that has the same blocks. Since a
// permute is no move of either, both run until no state that they have yet to
// settle can be on a cheaper path.
//
// The first bound is the plan that gathers what differs and cuts it again.
//===----------------------------------------------------------------------===//
#include "passes/partition/ReshardState.h"
#include "llvm/ADT/STLExtras.h"
#include <queue>
#include <unordered_map>

using namespace llvm;

namespace cleave::reshard {

//===----------------------------------------------------------------------===//
// Permutes
//===----------------------------------------------------------------------===//

/// Appends what is left of both lists without their common ends.
static void appendDifference(ArrayRef<Atom> from, ArrayRef<Atom> to,
                             PermuteAxes &out) {
  while (!from.empty() && !to.empty() && from.front() == to.front()) {
    from = from.drop_front();
    to = to.drop_front();
  }
  while (!from.empty() && !to.empty() && from.back() == to.back()) {
    from = from.drop_back();
    to = to.drop_back();
  }
  append_range(out.source, from);
  append_range(out.target, to);
}

std::optional<PermuteAxes> permuteBetween(const Problem &problem,
                                          const State &from, const State &to) {
  PermuteAxes result;
  for (unsigned dim = 0; dim < from.numDims(); ++dim)
    appendDifference(from.axes(dim), to.axes(dim), result);
  for (Atom atom = 0; atom < problem.atoms.size(); ++atom) {
    if (from.partial & ~to.partial & bit(atom))
      result.source.push_back(atom);
    if (to.partial & ~from.partial & bit(atom))
      result.target.push_back(atom);
  }
  // Both lists over the same digits: then it is a permutation of the ranks.
  AtomSet source = setOf(result.source), target = setOf(result.target);
  AtomSet used = from.used() | to.used();
  for (Atom atom = 0; atom < problem.atoms.size(); ++atom) {
    if (!(used & bit(atom)))
      continue;
    if (problem.atoms[atom].conflicts & used & ~bit(atom))
      return std::nullopt;
    if (target & ~source & bit(atom))
      result.source.push_back(atom);
    if (source & ~target & bit(atom))
      result.target.push_back(atom);
  }
  return result;
}

namespace {

struct Node {
  State state;
  Cost cost;
  int parent = -1;
  Move move;
  bool settled = false;
};

struct StateHash {
  size_t operator()(const State &state) const { return state.hash(); }
};

/// One of the two searches.
struct Side {
  using Entry = std::pair<Cost, unsigned>;
  std::vector<Node> nodes;
  std::unordered_map<State, unsigned, StateHash> known;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> queue;
  /// Settled nodes by what a permute keeps.
  std::map<SmallVector<int64_t, 12>, SmallVector<unsigned, 4>> bySignature;

  /// The next node to settle, or null.
  Node *top();
};

class Search {
public:
  Search(Problem &problem, unsigned limit) : problem(problem), limit(limit) {}
  Path run();

private:
  void reach(unsigned side, State state, Cost cost, int parent, Move move);
  void settle(unsigned side);
  void meet(unsigned forwardNode, unsigned backwardNode, Cost cost);
  void meetByPermute(unsigned side, unsigned node);
  bool done();
  Path gatherAndCut();
  std::optional<Path> cutAndPermute();
  Path trace() const;

  Problem &problem;
  unsigned limit;
  Side sides[2];
  Cost best;
  /// No path by a permute is cheaper than the states it joins and this.
  Cost permuteAtLeast;
  std::optional<std::pair<unsigned, unsigned>> meeting;
  unsigned numSettled = 0;
  int64_t localBytes[2] = {0, 0};
  /// Of the fastest link.
  double bandwidth = 0;
  double overhead = 0;
  bool uneven = false;
};

} // namespace

Node *Side::top() {
  while (!queue.empty()) {
    auto [cost, index] = queue.top();
    Node &node = nodes[index];
    if (!node.settled && node.cost == cost)
      return &node;
    queue.pop();
  }
  return nullptr;
}

static SmallVector<int64_t, 12> signature(const Problem &problem,
                                          const State &state) {
  SmallVector<int64_t, 12> result;
  for (unsigned dim = 0; dim < state.numDims(); ++dim) {
    result.push_back(problem.product(state.axes(dim)));
    result.push_back(state.block[dim]);
  }
  int64_t summands = 1;
  for (Atom atom = 0; atom < problem.atoms.size(); ++atom)
    if (state.partial & bit(atom))
      summands *= problem.atoms[atom].ref.size;
  result.push_back(summands);
  result.push_back(static_cast<int64_t>(state.kind));
  return result;
}

void Search::reach(unsigned side, State state, Cost cost, int parent,
                   Move move) {
  // What a rank lacks it must still receive (or have received before).
  int64_t lacks = side == 0 ? localBytes[1] - problem.localBytes(state)
                            : problem.localBytes(state) - localBytes[0];
  if (cost >= best ||
      (lacks > 0 && !uneven &&
       cost + problem.makeCost(overhead + lacks / bandwidth, lacks) >= best))
    return;
  Side &mine = sides[side];
  auto [it, isNew] = mine.known.try_emplace(state, mine.nodes.size());
  if (isNew) {
    mine.nodes.push_back({std::move(state), cost, parent, move, false});
  } else {
    Node &node = mine.nodes[it->second];
    if (node.settled || node.cost <= cost)
      return;
    node.cost = cost;
    node.parent = parent;
    node.move = move;
  }
  unsigned index = it->second;
  mine.queue.push({cost, index});
  Side &other = sides[1 - side];
  if (auto found = other.known.find(it->first); found != other.known.end()) {
    unsigned ends[2] = {index, found->second};
    meet(ends[side], ends[1 - side], cost + other.nodes[found->second].cost);
  }
}

void Search::meet(unsigned forwardNode, unsigned backwardNode, Cost cost) {
  if (cost < best) {
    best = cost;
    meeting = {forwardNode, backwardNode};
  }
}

void Search::meetByPermute(unsigned side, unsigned index) {
  const Node &node = sides[side].nodes[index];
  SmallVector<int64_t, 12> key = signature(problem, node.state);
  sides[side].bySignature[key].push_back(index);
  auto found = sides[1 - side].bySignature.find(key);
  if (found == sides[1 - side].bySignature.end())
    return;
  int64_t bytes = problem.localBytes(node.state);
  for (unsigned otherIndex : found->second) {
    const Node &other = sides[1 - side].nodes[otherIndex];
    if (node.cost + other.cost >= best)
      break; // the others were settled later
    const State &from = side == 0 ? node.state : other.state;
    const State &to = side == 0 ? other.state : node.state;
    std::optional<PermuteAxes> axes = permuteBetween(problem, from, to);
    if (!axes || axes->source.empty())
      continue;
    Cost cost = node.cost + other.cost +
                problem.cost(Collective::Permute, axes->source, bytes);
    unsigned ends[2] = {index, otherIndex};
    meet(ends[side], ends[1 - side], cost);
  }
}

void Search::settle(unsigned side) {
  Node *node = sides[side].top();
  unsigned index = node - sides[side].nodes.data();
  node->settled = true;
  ++numSettled;
  meetByPermute(side, index);
  State state = node->state;
  Cost cost = node->cost;
  expand(problem, state, side == 0, [&](State next, Move move, Cost step) {
    reach(side, std::move(next), cost + step, index, move);
  });
}

bool Search::done() {
  Node *forward = sides[0].top(), *backward = sides[1].top();
  if (!forward && !backward)
    return true;
  auto exceeds = [&](Node *node) {
    return !node || node->cost + permuteAtLeast >= best;
  };
  if (!exceeds(forward) || !exceeds(backward))
    return false;
  return !forward || !backward || forward->cost + backward->cost >= best;
}

Path Search::run() {
  Path fallback = gatherAndCut();
  if (std::optional<Path> other = cutAndPermute())
    if (other->cost < fallback.cost)
      fallback = std::move(*other);
  best = fallback.cost;
  const Machine &machine = problem.topology.machine();
  double hop = machine.tiers.front().latency;
  for (const Tier &tier : machine.tiers)
    hop = std::min(hop, tier.latency);
  overhead = machine.overhead;
  uneven = is_contained(problem.irregular, true);
  for (unsigned end : {0, 1})
    localBytes[end] = problem.localBytes(problem.ends[end]);
  for (const Tier &tier : machine.tiers)
    bandwidth = std::max(bandwidth, tier.bandwidth);
  permuteAtLeast = problem.makeCost(machine.overhead + hop, 1);
  // `best` must be reachable by an equal path of the search, so that equal
  // costs are settled in one way.
  best.second += 1;
  reach(0, problem.ends[0], {}, -1, {});
  reach(1, problem.ends[1], {}, -1, {});
  bool complete = true;
  while (!done()) {
    if (numSettled >= limit) {
      complete = false;
      break;
    }
    Node *forward = sides[0].top(), *backward = sides[1].top();
    bool first = forward && (!backward || forward->cost <= backward->cost);
    settle(first ? 0 : 1);
  }
  Path path = meeting ? trace() : std::move(fallback);
  path.complete = complete;
  return path;
}

Path Search::trace() const {
  Path path;
  path.cost = best;
  SmallVector<unsigned, 8> forward;
  for (int i = meeting->first; i >= 0; i = sides[0].nodes[i].parent)
    forward.push_back(i);
  for (unsigned i : reverse(forward)) {
    path.states.push_back(sides[0].nodes[i].state);
    path.moves.push_back(sides[0].nodes[i].move);
  }
  int i = meeting->second;
  const Node &joined = sides[1].nodes[i];
  if (!(joined.state == path.states.back())) {
    path.states.push_back(joined.state);
    path.moves.push_back({Move::Kind::Step, ReshardKind::Permute, 0, 0, 0});
  }
  for (; sides[1].nodes[i].parent >= 0; i = sides[1].nodes[i].parent) {
    path.moves.push_back(sides[1].nodes[i].move);
    path.states.push_back(sides[1].nodes[sides[1].nodes[i].parent].state);
  }
  return path;
}

/// Reduces, gathers every dim that differs whole, and cuts again.
Path Search::gatherAndCut() {
  Path path;
  const State &goal = problem.ends[1];
  State state = problem.ends[0];
  auto add = [&](Move move, State next, Cost cost) {
    path.states.push_back(next);
    path.moves.push_back(move);
    path.cost = path.cost + cost;
    state = std::move(next);
  };
  add({}, state, {});
  bool sameKind = state.kind == goal.kind;
  AtomSet reduced = sameKind ? state.partial & ~goal.partial : state.partial;
  if (reduced) {
    AtomList group;
    for (Atom atom = 0; atom < problem.atoms.size(); ++atom)
      if (reduced & bit(atom))
        group.push_back(atom);
    State next = state;
    next.partial &= ~reduced;
    next.kind = next.partial ? next.kind : ReductionKind::Sum;
    add({Move::Kind::Step, ReshardKind::AllReduce, 0, 0, 0}, next,
        problem.cost(Collective::AllReduce, group, problem.localBytes(state)));
  }
  for (unsigned dim = 0; dim < state.numDims(); ++dim) {
    AtomList run(state.axes(dim));
    if (run.empty() || (ArrayRef<Atom>(run) == goal.axes(dim) &&
                        state.block[dim] == goal.block[dim]))
      continue;
    State next = state;
    int64_t extent = state.block[dim] * problem.product(run);
    State gathered = state;
    gathered.block[dim] = extent;
    next.setAxes(dim, {});
    next.block[dim] = problem.sizes[dim];
    add({Move::Kind::Step, ReshardKind::AllGather, static_cast<uint8_t>(dim), 0,
         extent},
        next,
        problem.cost(Collective::AllGather, run, problem.localBytes(gathered)));
  }
  for (unsigned dim = 0; dim < state.numDims(); ++dim) {
    if (state.axes(dim) == goal.axes(dim))
      continue;
    State next = state;
    next.setAxes(dim, goal.axes(dim));
    next.block[dim] = goal.block[dim];
    add({Move::Kind::Step, ReshardKind::Slice, static_cast<uint8_t>(dim), 0,
         problem.padded[1][dim]},
        next, problem.localCost());
  }
  if (goal.partial & ~state.partial) {
    State next = state;
    next.partial = goal.partial;
    next.kind = goal.kind;
    add({Move::Kind::Step, ReshardKind::MakePartial, 0, 0, 0}, next,
        problem.localCost());
  }
  return path;
}

/// Even dims: gathers until every dim has a divisor of the goal's number of
/// blocks, cuts by whatever axes are free, and permutes.
std::optional<Path> Search::cutAndPermute() {
  const State &goal = problem.ends[1];
  State state = problem.ends[0];
  if (is_contained(problem.irregular, true) || state.partial)
    return std::nullopt;
  Path path;
  auto add = [&](ReshardKind kind, unsigned dim, int64_t extent, State next,
                 Cost cost) {
    path.states.push_back(next);
    path.moves.push_back(
        {Move::Kind::Step, kind, static_cast<uint8_t>(dim), 0, extent});
    path.cost = path.cost + cost;
    state = std::move(next);
  };
  path.states.push_back(state);
  path.moves.push_back({});
  for (unsigned dim = 0; dim < state.numDims(); ++dim) {
    int64_t wanted = problem.product(goal.axes(dim));
    AtomList axes(state.axes(dim)), run;
    while (wanted % problem.product(axes) != 0)
      run.insert(run.begin(), axes.pop_back_val());
    if (run.empty())
      continue;
    State next = state;
    next.setAxes(dim, axes);
    next.block[dim] *= problem.product(run);
    int64_t extent = next.block[dim];
    int64_t bytes = problem.localBytes(next);
    add(ReshardKind::AllGather, dim, extent, std::move(next),
        problem.cost(Collective::AllGather, run, bytes));
  }
  for (unsigned dim = 0; dim < state.numDims(); ++dim) {
    int64_t rest =
        problem.product(goal.axes(dim)) / problem.product(state.axes(dim));
    State next = state;
    AtomList axes(state.axes(dim));
    for (Atom atom = 0; atom < problem.atoms.size() && rest > 1; ++atom) {
      int64_t size = problem.atoms[atom].ref.size;
      if (rest % size != 0 || !(problem.room(next.used()) & bit(atom)))
        continue;
      axes.push_back(atom);
      next.setAxes(dim, axes);
      rest /= size;
    }
    if (rest > 1)
      return std::nullopt;
    if (axes.size() == state.axes(dim).size())
      continue;
    int64_t extent = state.block[dim];
    next.block[dim] = goal.block[dim];
    add(ReshardKind::Slice, dim, extent, std::move(next), problem.localCost());
  }
  State whole = goal;
  whole.partial = 0;
  whole.kind = ReductionKind::Sum;
  if (!(state == whole)) {
    std::optional<PermuteAxes> axes = permuteBetween(problem, state, whole);
    if (!axes || state.block != whole.block)
      return std::nullopt;
    int64_t bytes = problem.localBytes(state);
    add(ReshardKind::Permute, 0, 0, whole,
        problem.cost(Collective::Permute, axes->source, bytes));
  }
  if (goal.partial)
    add(ReshardKind::MakePartial, 0, 0, goal, problem.localCost());
  return path;
}

Path search(Problem &problem, unsigned limit) {
  return Search(problem, limit).run();
}

} // namespace cleave::reshard

//===- ReshardMoves.cpp - Neighbours of a state ---------------------------===//
#include "passes/partition/ReshardState.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace cleave::reshard {

namespace {

/// Generates the neighbours of one state in one direction.
class Expander {
public:
  Expander(Problem &problem, const State &state, bool forwards, Found found)
      : problem(problem), state(state), forwards(forwards), found(found),
        ahead(problem.ends[forwards ? 1 : 0]),
        room(problem.room(state.used())) {}
  void run();

private:
  void appendAxes(unsigned dim);
  void removeAxes(unsigned dim);
  void moveAxes(unsigned from);
  void reduce();
  void scatter(AtomSet reducible);
  void unscatter();
  void makePartial();
  void realign(unsigned dim);
  void realignTo(unsigned dim, ArrayRef<Atom> axes, int64_t block);
  void respell();

  /// Local extents that `dim` may be padded to before a cut by n.
  SmallVector<int64_t, 3> extents(unsigned dim, int64_t n) const;
  /// Lists of atoms of `set` worth cutting dims with.
  SmallVector<AtomList, 8> runs(AtomSet set) const;
  /// The state after `dim` has lost its last `count` atoms.
  State shortened(unsigned dim, size_t count) const;
  /// ... has taken `run` at an extent.
  static State extended(State from, unsigned dim, ArrayRef<Atom> run,
                        int64_t block);
  int64_t bytesWith(unsigned dim, int64_t block) const;

  Problem &problem;
  const State &state;
  bool forwards;
  Found found;
  /// The end that this direction heads for.
  const State &ahead;
  AtomSet room;
};

} // namespace

SmallVector<int64_t, 3> Expander::extents(unsigned dim, int64_t n) const {
  int64_t block = state.block[dim], size = problem.sizes[dim];
  if (block < size) {
    if (block % n == 0)
      return {block};
    return {};
  }
  // All data lies in the first shard: padding is free. Pad to what either end
  // has, so that later cuts meet its blocks.
  SmallVector<int64_t, 3> result = {ceilDiv(size, n) * n};
  for (unsigned end : {0, 1}) {
    int64_t extent = problem.padded[end][dim];
    if (extent >= size && extent % n == 0 && extent / n <= size &&
        !is_contained(result, extent))
      result.push_back(extent);
  }
  return result;
}

SmallVector<AtomList, 8> Expander::runs(AtomSet set) const {
  SmallVector<AtomList, 8> result;
  for (Atom atom = 0; atom < problem.atoms.size(); ++atom)
    if (set & bit(atom))
      result.push_back({atom});
  if (problem.generous)
    for (Atom major = 0; major < problem.atoms.size(); ++major)
      for (Atom minor = 0; minor < problem.atoms.size(); ++minor)
        if ((set & bit(major)) && (set & bit(minor)) &&
            !(problem.atoms[major].conflicts & bit(minor)))
          result.push_back({major, minor});
  for (unsigned dim = 0; dim < ahead.numDims(); ++dim) {
    ArrayRef<Atom> axes = ahead.axes(dim);
    for (size_t begin = 0; begin < axes.size(); ++begin)
      for (size_t end = begin + 1; end <= axes.size(); ++end) {
        if (!(set & bit(axes[end - 1])))
          break;
        if (end - begin > (problem.generous ? 2 : 1))
          result.push_back(AtomList(axes.slice(begin, end - begin)));
      }
  }
  return result;
}

State Expander::extended(State next, unsigned dim, ArrayRef<Atom> run,
                         int64_t block) {
  AtomList axes(next.axes(dim));
  append_range(axes, run);
  next.setAxes(dim, axes);
  next.block[dim] = block;
  return next;
}

State Expander::shortened(unsigned dim, size_t count) const {
  State next = state;
  ArrayRef<Atom> axes = state.axes(dim);
  next.block[dim] =
      std::min(problem.sizes[dim],
               state.block[dim] * problem.product(axes.take_back(count)));
  next.setAxes(dim, axes.drop_back(count));
  return next;
}

int64_t Expander::bytesWith(unsigned dim, int64_t block) const {
  int64_t bytes = problem.restElements * problem.elementBytes * block;
  for (unsigned d = 0; d < state.numDims(); ++d)
    if (d != dim)
      bytes *= state.block[d];
  return bytes;
}

/// Forwards a slice; backwards an all-gather has made this state.
void Expander::appendAxes(unsigned dim) {
  AtomSet wanted = problem.appendable[forwards ? 0 : 1];
  for (const AtomList &run : runs(room & wanted)) {
    int64_t n = problem.product(run);
    for (int64_t extent : extents(dim, n)) {
      Move move{Move::Kind::Step,
                forwards ? ReshardKind::Slice : ReshardKind::AllGather,
                static_cast<uint8_t>(dim), 0, extent};
      Cost cost = forwards ? problem.localCost()
                           : problem.cost(Collective::AllGather, run,
                                          bytesWith(dim, extent));
      found(extended(state, dim, run, extent / n), move, cost);
    }
  }
}

/// Forwards an all-gather; backwards a slice has made this state.
void Expander::removeAxes(unsigned dim) {
  ArrayRef<Atom> axes = state.axes(dim);
  for (size_t count = 1; count <= axes.size(); ++count) {
    ArrayRef<Atom> run = axes.take_back(count);
    int64_t extent = state.block[dim] * problem.product(run);
    Move move{Move::Kind::Step,
              forwards ? ReshardKind::AllGather : ReshardKind::Slice,
              static_cast<uint8_t>(dim), 0, extent};
    Cost cost = forwards ? problem.cost(Collective::AllGather, run,
                                        bytesWith(dim, extent))
                         : problem.localCost();
    found(shortened(dim, count), move, cost);
  }
}

/// An all-to-all: the last axes of one dim go to the end of another.
void Expander::moveAxes(unsigned from) {
  ArrayRef<Atom> axes = state.axes(from);
  for (size_t count = 1; count <= axes.size(); ++count) {
    AtomList run(axes.take_back(count));
    int64_t n = problem.product(run);
    State base = shortened(from, count);
    for (unsigned to = 0; to < state.numDims(); ++to) {
      if (to == from)
        continue;
      for (int64_t extent : extents(to, n)) {
        Move move{Move::Kind::Step, ReshardKind::AllToAll,
                  static_cast<uint8_t>(forwards ? to : from),
                  static_cast<uint8_t>(forwards ? from : to),
                  forwards ? extent : state.block[from] * n};
        Cost cost =
            problem.cost(Collective::AllToAll, run, bytesWith(to, extent));
        found(extended(base, to, run, extent / n), move, cost);
      }
    }
  }
}

/// All-reduces and reduce-scatters.
void Expander::reduce() {
  const State &source = problem.ends[0], &goal = problem.ends[1];
  if (!source.partial)
    return;
  bool sameKind = goal.partial == 0 || source.kind == goal.kind;
  AtomSet kept = sameKind ? goal.partial : 0;
  AtomSet set = source.partial & ~kept;
  if (forwards)
    set &= state.kind == source.kind ? state.partial : 0;
  else if (state.partial && state.kind != source.kind)
    return;
  else
    set &= room;
  if (set) {
    SmallVector<AtomSet, 8> subsets = {set};
    for (unsigned tier = 0; tier < problem.topology.machine().tiers.size();
         ++tier) {
      AtomSet near = 0;
      for (Atom atom = 0; atom < problem.atoms.size(); ++atom)
        if ((set & bit(atom)) && problem.atoms[atom].tier == tier)
          near |= bit(atom);
      if (near && !is_contained(subsets, near))
        subsets.push_back(near);
    }
    for (Atom atom = 0; atom < problem.atoms.size(); ++atom)
      if ((set & bit(atom)) && !is_contained(subsets, bit(atom)))
        subsets.push_back(bit(atom));
    int64_t bytes = problem.localBytes(state);
    for (AtomSet subset : subsets) {
      AtomList group;
      for (Atom atom = 0; atom < problem.atoms.size(); ++atom)
        if (subset & bit(atom))
          group.push_back(atom);
      State next = state;
      next.partial ^= subset;
      next.kind = next.partial ? source.kind : ReductionKind::Sum;
      found(next, {Move::Kind::Step, ReshardKind::AllReduce, 0, 0, 0},
            problem.cost(Collective::AllReduce, group, bytes));
    }
  }
  if (forwards)
    scatter(set);
  else
    unscatter();
}

void Expander::scatter(AtomSet reducible) {
  if (!reducible)
    return;
  for (const AtomList &run : runs(reducible)) {
    int64_t n = problem.product(run);
    for (unsigned dim = 0; dim < state.numDims(); ++dim)
      for (int64_t extent : extents(dim, n)) {
        State next = extended(state, dim, run, extent / n);
        next.partial &= ~setOf(run);
        if (!next.partial)
          next.kind = ReductionKind::Sum;
        found(next,
              {Move::Kind::Step, ReshardKind::ReduceScatter,
               static_cast<uint8_t>(dim), 0, extent},
              problem.cost(Collective::ReduceScatter, run,
                           bytesWith(dim, extent)));
      }
  }
}

void Expander::unscatter() {
  const State &source = problem.ends[0];
  for (unsigned dim = 0; dim < state.numDims(); ++dim) {
    ArrayRef<Atom> axes = state.axes(dim);
    for (size_t count = 1; count <= axes.size(); ++count) {
      ArrayRef<Atom> run = axes.take_back(count);
      if (!(source.partial & bit(run.front())))
        break;
      int64_t extent = state.block[dim] * problem.product(run);
      State next = shortened(dim, count);
      next.partial |= setOf(run);
      next.kind = source.kind;
      found(
          next,
          {Move::Kind::Step, ReshardKind::ReduceScatter,
           static_cast<uint8_t>(dim), 0, extent},
          problem.cost(Collective::ReduceScatter, run, bytesWith(dim, extent)));
    }
  }
}

/// Neutral elements make the axes partial that the goal has partial and the
/// source has not.
void Expander::makePartial() {
  const State &source = problem.ends[0], &goal = problem.ends[1];
  bool sameKind = source.partial == 0 || source.kind == goal.kind;
  AtomSet set = goal.partial & ~(sameKind ? source.partial : 0);
  if (!set)
    return;
  State next = state;
  if (forwards) {
    if (state.partial && state.kind != goal.kind)
      return;
    set &= room;
    next.partial |= set;
    next.kind = goal.kind;
  } else {
    if (state.partial && state.kind != goal.kind)
      return;
    set &= state.partial;
    next.partial &= ~set;
    next.kind = next.partial ? goal.kind : ReductionKind::Sum;
  }
  if (set)
    found(next, {Move::Kind::Step, ReshardKind::MakePartial, 0, 0, 0},
          problem.localCost());
}

/// Moves the block boundaries of a dim, or replaces its axes altogether.
void Expander::realign(unsigned dim) {
  AtomList axes(state.axes(dim));
  int64_t n = problem.product(axes), size = problem.sizes[dim];
  // The same axes with the smallest blocks, or with blocks that a later cut or
  // gather turns into those of an end.
  realignTo(dim, axes, ceilDiv(size, n));
  for (unsigned end : {0, 1})
    if (problem.padded[end][dim] % n == 0)
      realignTo(dim, axes, problem.padded[end][dim] / n);
  for (Atom atom = 0; atom < problem.atoms.size(); ++atom) {
    int64_t cut = n * problem.atoms[atom].ref.size;
    realignTo(dim, axes, ceilDiv(size, cut) * (cut / n));
  }
  // The axes of the end ahead, whole or in part.
  ArrayRef<Atom> wanted = ahead.axes(dim);
  for (size_t count = 1; count <= wanted.size(); ++count) {
    ArrayRef<Atom> prefix = wanted.take_front(count);
    int64_t m = problem.product(prefix);
    for (unsigned end : {0, 1})
      if (problem.padded[end][dim] % m == 0)
        realignTo(dim, prefix, problem.padded[end][dim] / m);
    realignTo(dim, prefix, ceilDiv(size, m));
  }
}

static constexpr int64_t kManyRanks = 512;

void Expander::realignTo(unsigned dim, ArrayRef<Atom> axes, int64_t block) {
  int64_t n = problem.product(axes), size = problem.sizes[dim];
  block = std::min(block, size);
  if (block * n < size)
    return;
  AtomSet others = state.used() & ~setOf(state.axes(dim));
  if (setOf(axes) & ~problem.room(others))
    return;
  // To count what a realign of thousands of ranks moves takes a while: there
  // only the one that reaches the end ahead is tried.
  AtomList group(state.axes(dim));
  for (Atom atom : axes)
    if (!is_contained(group, atom))
      group.push_back(atom);
  if (problem.product(group) > kManyRanks &&
      (axes != ahead.axes(dim) || block != ahead.block[dim]))
    return;
  State next = state;
  next.setAxes(dim, axes);
  next.block[dim] = block;
  if (next == state)
    return;
  Cost cost = forwards
                  ? problem.exchangeCost(state, dim, state.axes(dim),
                                         state.block[dim], axes, block)
                  : problem.exchangeCost(state, dim, axes, block,
                                         state.axes(dim), state.block[dim]);
  found(
      next,
      {Move::Kind::Step, ReshardKind::Realign, static_cast<uint8_t>(dim), 0, 0},
      cost);
}

/// The same digits cut otherwise: nothing moves.
void Expander::respell() {
  for (unsigned dim = 0; dim < state.numDims(); ++dim)
    for (const Spelling &spelling : problem.spellings)
      for (bool back : {false, true}) {
        ArrayRef<Atom> here = back ? spelling.other : spelling.one;
        ArrayRef<Atom> there = back ? spelling.one : spelling.other;
        AtomList axes(state.axes(dim));
        auto *at =
            std::search(axes.begin(), axes.end(), here.begin(), here.end());
        if (at == axes.end())
          continue;
        size_t begin = at - axes.begin();
        axes.erase(at, at + here.size());
        axes.insert(axes.begin() + begin, there.begin(), there.end());
        State next = state;
        next.setAxes(dim, axes);
        found(next, {Move::Kind::Respell, ReshardKind::Slice, 0, 0, 0},
              Cost{0, 0});
      }
  for (const Spelling &spelling : problem.spellings)
    for (bool back : {false, true}) {
      AtomSet here = setOf(back ? spelling.other : spelling.one);
      AtomSet there = setOf(back ? spelling.one : spelling.other);
      if ((state.partial & here) != here)
        continue;
      State next = state;
      next.partial = (state.partial & ~here) | there;
      found(next, {Move::Kind::Respell, ReshardKind::Slice, 0, 0, 0},
            Cost{0, 0});
    }
}

void Expander::run() {
  for (unsigned dim = 0; dim < state.numDims(); ++dim) {
    appendAxes(dim);
    removeAxes(dim);
    moveAxes(dim);
    if (problem.irregular[dim] || !problem.spellings.empty())
      realign(dim);
  }
  reduce();
  makePartial();
  if (!problem.spellings.empty())
    respell();
}

void expand(Problem &problem, const State &state, bool forwards, Found found) {
  Expander(problem, state, forwards, found).run();
}

} // namespace cleave::reshard

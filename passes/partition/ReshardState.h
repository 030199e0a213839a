//===- ReshardState.h - States and moves of the reshard search --*- C++ -*-===//
// Private to Reshard. A state says how the tensor lies: for each dim its axes
// and the local extent, and the partial axes. Axes are lists of atoms: digits
// cut so finely that the axes of both ends are lists of them.
//
// The search runs from both ends, and one structure serves both directions: to
// append axes to a dim is a slice forwards and the inverse of a gather
// backwards; to remove them is a gather forwards and the inverse of a slice
// backwards; to move them from one dim to another is an all-to-all either way.
// A permute is never a move: since it only renames ranks, one is enough, and it
// joins a state of the forward search to one of the backward search that has
// the same blocks.
//
// Normal form: a dim whose data lies in its first shard alone (block >= size)
// has block = size. Local padding and trimming there is free.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PASSES_PARTITION_RESHARDSTATE_H
#define CLEAVE_PASSES_PARTITION_RESHARDSTATE_H

#include "passes/partition/Reshard.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <map>

namespace cleave::reshard {

using Atom = uint8_t;
using AtomSet = uint64_t;
using AtomList = llvm::SmallVector<Atom, 8>;
inline AtomSet bit(Atom atom) { return AtomSet(1) << atom; }
AtomSet setOf(llvm::ArrayRef<Atom> atoms);

struct AtomInfo {
  AxisRef ref;
  unsigned tier = 0;
  /// Atoms that can't be used together with this one (itself included).
  AtomSet conflicts = 0;
};

/// Two spellings of the same digits: a:(1)2 a:(2)3 and a:(1)3 a:(3)2 of a=6.
struct Spelling {
  AtomList one, other;
};

struct State {
  /// For each dim the end of its atoms, then the atoms of all dims.
  llvm::SmallVector<uint8_t, 16> code;
  llvm::SmallVector<int64_t, 4> block;
  AtomSet partial = 0;
  /// Sum when nothing is partial.
  ReductionKind kind = ReductionKind::Sum;

  unsigned numDims() const { return block.size(); }
  llvm::ArrayRef<Atom> axes(unsigned dim) const;
  void setAxes(unsigned dim, llvm::ArrayRef<Atom> atoms);
  AtomSet used() const;
  size_t hash() const;
  bool operator==(const State &) const = default;
};

/// The step between two states; the rest follows from the states themselves.
struct Move {
  enum class Kind : uint8_t { Start, Step, Respell };
  Kind kind = Kind::Start;
  ReshardKind step = ReshardKind::Slice;
  uint8_t dim = 0;
  uint8_t concatDim = 0;
  /// Local extent of the dim that is cut, after padding.
  int64_t extent = 0;
};

/// Compared first by `first`. Both are whole numbers, so that sums are exact:
/// femtoseconds and bytes, in the order of the objective.
struct Cost {
  int64_t first = 0, second = 0;
  auto operator<=>(const Cost &) const = default;
  Cost operator+(Cost other) const {
    return {first + other.first, second + other.second};
  }
};

/// What an exchange of blocks along one dim moves, for the busiest rank.
struct Exchange {
  int64_t elements = 0;
  int64_t peers = 0;
  /// Whether every rank keeps what it has where it has it.
  bool local = true;
};

enum class Objective : uint8_t { Seconds, Bytes };

/// One question: from where to where, with which atoms, at what price.
struct Problem {
  Problem(const Topology &topology, llvm::ArrayRef<int64_t> shape,
          int64_t elementBytes, const Sharding &from, const Sharding &to,
          bool fine);

  const Topology &topology;
  Objective objective = Objective::Seconds;
  /// Under Objective::Bytes a communication counts as so many bytes more.
  int64_t stepBytes = 0;
  /// Dims that take part; the others hold `restElements` together.
  llvm::SmallVector<unsigned, 4> tensorDims;
  llvm::SmallVector<int64_t, 4> sizes;
  int64_t restElements = 1;
  int64_t elementBytes = 1;
  llvm::SmallVector<int64_t, 4> shape;
  llvm::SmallVector<AtomInfo, 8> atoms;
  llvm::SmallVector<Spelling, 1> spellings;
  /// Start and goal of the search forwards; [1] of [0] is the other end.
  State ends[2];
  /// Padded size of each dim at the ends.
  llvm::SmallVector<int64_t, 4> padded[2];
  /// Whether axes and dims may help that neither end cuts.
  bool generous = false;
  /// Atoms worth appending forwards and backwards.
  AtomSet appendable[2] = {0, 0};
  /// Dims whose blocks may have to move by less than a block.
  llvm::SmallVector<bool, 4> irregular;

  int64_t product(llvm::ArrayRef<Atom> atoms) const;
  AxisList refs(llvm::ArrayRef<Atom> atoms) const;
  AxisList refs(AtomSet atoms) const;
  /// Atoms that `used` leaves room for.
  AtomSet room(AtomSet used) const;
  int64_t localBytes(const State &state) const;
  Cost cost(Collective kind, llvm::ArrayRef<Atom> group, int64_t bytes) const;
  Cost localCost() const;
  Cost makeCost(double seconds, int64_t wire) const;
  /// Realign of `dim` from one list of atoms and block to another.
  Exchange exchange(unsigned dim, llvm::ArrayRef<Atom> from, int64_t fromBlock,
                    llvm::ArrayRef<Atom> to, int64_t toBlock);
  Cost exchangeCost(const State &state, unsigned dim, llvm::ArrayRef<Atom> from,
                    int64_t fromBlock, llvm::ArrayRef<Atom> to,
                    int64_t toBlock);

private:
  void makeAtoms(const Sharding &from, const Sharding &to, bool fine, bool all);
  void makeConflicts();
  State makeState(const Sharding &sharding) const;
  AtomList atomsOf(llvm::ArrayRef<AxisRef> axes) const;
  std::map<llvm::SmallVector<int64_t, 16>, Exchange> exchanges;
};

/// Calls `found` with each neighbour of `state`: the states it leads to
/// (forwards) or comes from (backwards), the move, and its cost.
using Found = llvm::function_ref<void(State, Move, Cost)>;
void expand(Problem &problem, const State &state, bool forwards, Found found);

/// Axes of the permute from one state to another with the same blocks; none
/// when no permutation of ranks does it.
struct PermuteAxes {
  AtomList source, target;
};
std::optional<PermuteAxes> permuteBetween(const Problem &problem,
                                          const State &from, const State &to);

/// A list of states from start to goal, with the move into each.
struct Path {
  llvm::SmallVector<State, 8> states;
  llvm::SmallVector<Move, 8> moves;
  Cost cost;
  bool complete = true;
};
/// The cheapest path. Looks at `limit` states at most; then `complete` is false
/// and the path is the best one seen.
Path search(Problem &problem, unsigned limit);

/// The steps of a path.
ReshardPlan emit(Problem &problem, const Path &path);

} // namespace cleave::reshard

#endif // CLEAVE_PASSES_PARTITION_RESHARDSTATE_H

//===- ReshardState.cpp - The question that a reshard asks ----------------===//
#include "passes/partition/ReshardState.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>

using namespace llvm;

namespace cleave::reshard {

AtomSet setOf(ArrayRef<Atom> atoms) {
  AtomSet set = 0;
  for (Atom atom : atoms)
    set |= bit(atom);
  return set;
}

//===----------------------------------------------------------------------===//
// State
//===----------------------------------------------------------------------===//

ArrayRef<Atom> State::axes(unsigned dim) const {
  unsigned begin = dim == 0 ? 0 : code[dim - 1];
  return ArrayRef(code).slice(numDims() + begin, code[dim] - begin);
}

void State::setAxes(unsigned dim, ArrayRef<Atom> atoms) {
  unsigned begin = dim == 0 ? 0 : code[dim - 1];
  int change = static_cast<int>(atoms.size()) - (code[dim] - begin);
  AtomList copy(atoms);
  code.erase(code.begin() + numDims() + begin,
             code.begin() + numDims() + code[dim]);
  code.insert(code.begin() + numDims() + begin, copy.begin(), copy.end());
  for (unsigned d = dim; d < numDims(); ++d)
    code[d] += change;
}

AtomSet State::used() const {
  return partial | setOf(ArrayRef(code).drop_front(numDims()));
}

size_t State::hash() const {
  return hash_combine(hash_combine_range(code.begin(), code.end()),
                      hash_combine_range(block.begin(), block.end()), partial,
                      static_cast<unsigned>(kind));
}

//===----------------------------------------------------------------------===//
// Atoms
//===----------------------------------------------------------------------===//

/// Sorted cuts of one axis by these refs, with 1 and the size of the axis.
static SmallVector<int64_t> cutsOf(unsigned axis, int64_t size,
                                   const Sharding &sharding) {
  SmallVector<int64_t> cuts = {1, size};
  AxisList refs = sharding.shardedAxes();
  append_range(refs, sharding.partial);
  for (AxisRef ref : refs)
    if (ref.axis == axis) {
      cuts.push_back(ref.pre);
      cuts.push_back(ref.next());
    }
  llvm::sort(cuts);
  cuts.erase(llvm::unique(cuts), cuts.end());
  return cuts;
}

static bool isChain(ArrayRef<int64_t> cuts) {
  for (size_t i = 0; i + 1 < cuts.size(); ++i)
    if (cuts[i + 1] % cuts[i] != 0)
      return false;
  return true;
}

/// Whether both digits can be digits of one value.
static bool coexist(AxisRef a, AxisRef b) {
  return a.axis != b.axis || b.pre % a.next() == 0 || a.pre % b.next() == 0;
}

/// Cuts a digit so that its parts match digits of the given sizes: of 8 beside
/// 2 remain 2, 2 and 2 (a 2 at either end); beside 8 it stays whole.
static SmallVector<AxisRef, 4> cutAtSizes(AxisRef ref,
                                          ArrayRef<int64_t> sizes) {
  SmallVector<int64_t, 8> cuts = {1, ref.size};
  for (int64_t size : sizes)
    for (int64_t cut : {size, ref.size / size}) {
      if (ref.size % size != 0 || is_contained(cuts, cut))
        continue;
      // Only cuts that refine each other: of 12, 2 goes with 4 but not with 3.
      if (all_of(cuts, [&](int64_t other) {
            return other % cut == 0 || cut % other == 0;
          }))
        cuts.push_back(cut);
    }
  llvm::sort(cuts);
  SmallVector<AxisRef, 4> parts;
  for (size_t i = 0; i + 1 < cuts.size(); ++i)
    parts.push_back({ref.axis, ref.pre * cuts[i], cuts[i + 1] / cuts[i]});
  return parts;
}

/// Sizes of all digits that either end uses.
static SmallVector<int64_t, 8> digitSizes(const Sharding &from,
                                          const Sharding &to) {
  SmallVector<int64_t, 8> sizes;
  for (const Sharding *sharding : {&from, &to}) {
    for (AxisRef ref : sharding->shardedAxes())
      sizes.push_back(ref.size);
    for (AxisRef ref : sharding->partial)
      sizes.push_back(ref.size);
  }
  llvm::sort(sizes);
  sizes.erase(llvm::unique(sizes), sizes.end());
  return sizes;
}

void Problem::makeAtoms(const Sharding &from, const Sharding &to, bool fine,
                        bool all) {
  atoms.clear();
  spellings.clear();
  SmallVector<int64_t, 8> sizes = digitSizes(from, to);
  auto append = [&](AxisRef ref) {
    AtomList added;
    for (const Topology::Part &part : topology.parts(ref)) {
      SmallVector<AxisRef, 4> digits = {part.digits};
      if (fine)
        digits = cutAtSizes(part.digits, sizes);
      for (AxisRef digit : digits) {
        added.push_back(atoms.size());
        atoms.push_back({digit, topology.tierOf(digit), 0});
      }
    }
    return added;
  };
  for (auto [axis, info] : enumerate(topology.mesh().axes)) {
    if (info.size == 1)
      continue;
    SmallVector<int64_t> mine = cutsOf(axis, info.size, from);
    SmallVector<int64_t> theirs = cutsOf(axis, info.size, to);
    AxisRef whole = topology.mesh().whole(axis);
    if (!all && !from.uses(whole) && !to.uses(whole))
      continue;
    SmallVector<int64_t> common;
    std::set_intersection(mine.begin(), mine.end(), theirs.begin(),
                          theirs.end(), std::back_inserter(common));
    for (size_t i = 0; i + 1 < common.size(); ++i) {
      auto inside = [&](int64_t cut) {
        return cut >= common[i] && cut <= common[i + 1];
      };
      SmallVector<int64_t> first, second, both;
      copy_if(mine, std::back_inserter(first), inside);
      copy_if(theirs, std::back_inserter(second), inside);
      std::set_union(first.begin(), first.end(), second.begin(), second.end(),
                     std::back_inserter(both));
      auto appendAll = [&](ArrayRef<int64_t> cuts) {
        AtomList all;
        for (size_t c = 0; c + 1 < cuts.size(); ++c)
          append_range(all, append({static_cast<unsigned>(axis), cuts[c],
                                    cuts[c + 1] / cuts[c]}));
        return all;
      };
      if (isChain(both)) {
        appendAll(both);
        continue;
      }
      Spelling spelling;
      spelling.one = appendAll(first);
      spelling.other = appendAll(second);
      spellings.push_back(spelling);
    }
  }
  assert(atoms.size() <= 64 && "a mesh of over 2^32 ranks");
}

void Problem::makeConflicts() {
  for (auto [i, a] : enumerate(atoms)) {
    a.conflicts = bit(i);
    for (auto [j, b] : enumerate(atoms))
      if (i != j && !coexist(a.ref, b.ref))
        a.conflicts |= bit(j);
  }
}

AtomList Problem::atomsOf(ArrayRef<AxisRef> axes) const {
  AtomList result;
  for (AxisRef ref : axes) {
    // The atoms that tile the digit, from major to minor.
    int64_t cut = ref.pre;
    while (cut < ref.next()) {
      // A digit may begin in either spelling; take the one that tiles.
      std::optional<Atom> next;
      for (auto [i, atom] : enumerate(atoms))
        if (atom.ref.axis == ref.axis && atom.ref.pre == cut &&
            ref.next() % atom.ref.next() == 0 && !next) {
          // Follow the atoms of one spelling only.
          bool tiles = true;
          int64_t end = atom.ref.next();
          for (size_t j = i + 1; tiles && end < ref.next(); ++j) {
            tiles = j < atoms.size() && atoms[j].ref.axis == ref.axis &&
                    atoms[j].ref.pre == end;
            end = tiles ? atoms[j].ref.next() : end;
          }
          if (tiles && end == ref.next())
            next = i;
        }
      assert(next && "every digit in use is a list of atoms");
      result.push_back(*next);
      cut = atoms[*next].ref.next();
    }
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Problem
//===----------------------------------------------------------------------===//

State Problem::makeState(const Sharding &sharding) const {
  State state;
  state.code.assign(tensorDims.size(), 0);
  state.block.assign(tensorDims.size(), 0);
  for (auto [d, dim] : enumerate(tensorDims)) {
    state.setAxes(d, atomsOf(sharding.dims[dim].axes));
    state.block[d] = blockSize(sizes[d], sharding.dims[dim]);
  }
  state.partial = setOf(atomsOf(sharding.partial));
  state.kind = state.partial ? sharding.kind : ReductionKind::Sum;
  return state;
}

/// Up to so many atoms and 3 dims, the search may use all that could help.
static constexpr size_t kGenerousAtoms = 4;

Problem::Problem(const Topology &topology, ArrayRef<int64_t> shape,
                 int64_t elementBytes, const Sharding &from, const Sharding &to,
                 bool fine)
    : topology(topology), elementBytes(elementBytes),
      shape(shape.begin(), shape.end()) {
  bool tiered = topology.machine().tiers.size() > 1;
  // Axes and dims that neither end cuts can still help: to split the work of a
  // permute among ranks that hold the same, to do an all-reduce tier by tier.
  // All of them while the search stays small.
  makeAtoms(from, to, fine, /*all=*/true);
  generous = atoms.size() <= kGenerousAtoms && shape.size() <= 3;
  if (!generous && !tiered)
    makeAtoms(from, to, fine, /*all=*/false);
  makeConflicts();
  for (unsigned d = 0; d < shape.size(); ++d)
    if (from.dims[d].numShards() > 1 || to.dims[d].numShards() > 1 ||
        (generous && shape[d] > 1))
      tensorDims.push_back(d);
  // A dim to scatter over, when an all-reduce may be done tier by tier.
  if (tensorDims.empty() && tiered && !shape.empty() && !from.partial.empty())
    tensorDims.push_back(std::max_element(shape.begin(), shape.end()) -
                         shape.begin());
  for (unsigned d = 0; d < shape.size(); ++d)
    if (!is_contained(tensorDims, d))
      restElements *= shape[d];
  for (unsigned d : tensorDims)
    sizes.push_back(shape[d]);

  ends[0] = makeState(from);
  ends[1] = makeState(to);
  for (unsigned end : {0, 1}) {
    for (unsigned d = 0; d < sizes.size(); ++d)
      padded[end].push_back(ends[end].block[d] * product(ends[end].axes(d)));
    // Forwards (0) what the goal wants is appended, backwards what the start
    // had.
    const State &wanted = ends[1 - end];
    appendable[end] = tiered || generous ? ~AtomSet(0) : wanted.used();
  }
  for (unsigned d = 0; d < sizes.size(); ++d) {
    AtomSet mine = setOf(ends[0].axes(d)), room = this->room(mine) | mine;
    bool respelled = (setOf(ends[1].axes(d)) & ~room) != 0;
    irregular.push_back(respelled || sizes[d] % product(ends[0].axes(d)) != 0 ||
                        sizes[d] % product(ends[1].axes(d)) != 0);
  }
  // Uneven blocks can save a few bytes by more and more steps.
  if (is_contained(irregular, true))
    stepBytes = std::max(localBytes(ends[0]), localBytes(ends[1])) / 8;
}

int64_t Problem::product(ArrayRef<Atom> list) const {
  int64_t n = 1;
  for (Atom atom : list)
    n *= atoms[atom].ref.size;
  return n;
}

AxisList Problem::refs(ArrayRef<Atom> list) const {
  AxisList result;
  for (Atom atom : list)
    result.push_back(atoms[atom].ref);
  return mergeAxes(result);
}

AxisList Problem::refs(AtomSet set) const {
  AxisList result;
  for (Atom atom = 0; atom < atoms.size(); ++atom)
    if (set & bit(atom))
      result.push_back(atoms[atom].ref);
  return normalizeAxisSet(result);
}

AtomSet Problem::room(AtomSet used) const {
  AtomSet taken = 0;
  for (Atom atom = 0; atom < atoms.size(); ++atom)
    if (used & bit(atom))
      taken |= atoms[atom].conflicts;
  AtomSet all = atoms.size() == 64 ? ~AtomSet(0) : bit(atoms.size()) - 1;
  return all & ~taken;
}

int64_t Problem::localBytes(const State &state) const {
  int64_t bytes = restElements * elementBytes;
  for (int64_t block : state.block)
    bytes *= block;
  return bytes;
}

/// A step without traffic still is a copy: fewer of them is better.
static constexpr int64_t kLocalTicks = 1000;

Cost Problem::makeCost(double seconds, int64_t wire) const {
  int64_t ticks = std::llround(seconds * 1e15) + kLocalTicks;
  if (objective == Objective::Seconds)
    return {ticks, wire};
  return {wire + (wire > 0 ? stepBytes : 0), ticks};
}

Cost Problem::localCost() const { return makeCost(0, 0); }

Cost Problem::cost(Collective kind, ArrayRef<Atom> group, int64_t bytes) const {
  SmallVector<Topology::Part, 6> parts;
  for (Atom atom : group)
    parts.push_back({atoms[atom].tier, atoms[atom].ref});
  int64_t wire = Topology::wireBytes(kind, product(group), bytes);
  return makeCost(topology.seconds(kind, parts, wire), wire);
}

} // namespace cleave::reshard

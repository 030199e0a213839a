//===- ReshardExchange.cpp - What a realign moves -------------------------===//
// A realign gives every rank its block under the target axes. What a rank lacks
// of block s comes from the rank that has its own digits except those of the
// source axes, which are those of s. Counted here exactly, rank by rank.
//===----------------------------------------------------------------------===//
#include "passes/partition/ReshardState.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>

using namespace llvm;

namespace cleave::reshard {

namespace {

/// A part of the coordinates of the group: the digits cut..next of one axis.
struct Component {
  unsigned axis;
  int64_t pre, next;
  /// Distance of neighbouring values in the index of the group.
  int64_t stride = 1;
  int64_t size() const { return next / pre; }
  int64_t digit(AxisRef ref, int64_t value) const {
    return value / (next / ref.next()) % ref.size;
  }
};

/// All ranks of one group, and the block that each has and wants.
class Members {
public:
  Members(const Problem &problem, ArrayRef<Atom> from, ArrayRef<Atom> to);
  int64_t size() const { return count; }
  int64_t fromIndex(int64_t member) const { return index(member, from); }
  int64_t toIndex(int64_t member) const { return index(member, to); }
  /// `member` with the source digits of block `source`.
  int64_t withSource(int64_t member, int64_t source) const;

private:
  int64_t index(int64_t member, ArrayRef<AxisRef> axes) const;
  const Component &componentOf(AxisRef ref) const;

  AxisList from, to;
  SmallVector<Component, 6> components;
  int64_t count = 1;
};

} // namespace

Members::Members(const Problem &problem, ArrayRef<Atom> fromAtoms,
                 ArrayRef<Atom> toAtoms) {
  for (Atom atom : fromAtoms)
    from.push_back(problem.atoms[atom].ref);
  for (Atom atom : toAtoms)
    to.push_back(problem.atoms[atom].ref);
  AxisList all = from;
  append_range(all, to);
  for (AxisRef ref : all) {
    // Digits that overlap or can't be told apart form one component.
    Component merged{ref.axis, ref.pre, ref.next()};
    for (size_t i = 0; i < components.size();) {
      Component &old = components[i];
      if (old.axis != merged.axis || merged.pre % old.next == 0 ||
          old.pre % merged.next == 0) {
        ++i;
        continue;
      }
      merged.pre = std::gcd(merged.pre, old.pre);
      merged.next = std::lcm(merged.next, old.next);
      components.erase(components.begin() + i);
      i = 0;
    }
    components.push_back(merged);
  }
  for (Component &component : components) {
    component.stride = count;
    count *= component.size();
  }
}

const Component &Members::componentOf(AxisRef ref) const {
  for (const Component &component : components)
    if (component.axis == ref.axis && component.pre <= ref.pre &&
        ref.next() <= component.next)
      return component;
  llvm_unreachable("every digit lies in a component");
}

int64_t Members::index(int64_t member, ArrayRef<AxisRef> axes) const {
  int64_t result = 0;
  for (AxisRef ref : axes) {
    const Component &component = componentOf(ref);
    int64_t value = member / component.stride % component.size();
    result = result * ref.size + component.digit(ref, value);
  }
  return result;
}

int64_t Members::withSource(int64_t member, int64_t source) const {
  for (AxisRef ref : reverse(from)) {
    const Component &component = componentOf(ref);
    int64_t value = member / component.stride % component.size();
    int64_t change = source % ref.size - component.digit(ref, value);
    member += change * (component.next / ref.next()) * component.stride;
    source /= ref.size;
  }
  return member;
}

Exchange Problem::exchange(unsigned dim, ArrayRef<Atom> from, int64_t fromBlock,
                           ArrayRef<Atom> to, int64_t toBlock) {
  SmallVector<int64_t, 16> key = {dim, fromBlock, toBlock,
                                  static_cast<int64_t>(from.size())};
  append_range(key, from);
  append_range(key, to);
  auto [it, isNew] = exchanges.try_emplace(key);
  if (!isNew)
    return it->second;

  int64_t size = sizes[dim];
  Members members(*this, from, to);
  std::vector<Exchange> sent(members.size());
  Exchange worst;
  for (int64_t member = 0; member < members.size(); ++member) {
    int64_t own = members.fromIndex(member);
    int64_t begin = members.toIndex(member) * toBlock;
    int64_t end = std::min(size, begin + toBlock);
    if (begin < end && begin != own * fromBlock)
      worst.local = false;
    for (int64_t at = begin; at < end;) {
      int64_t source = at / fromBlock;
      int64_t stop = std::min(end, (source + 1) * fromBlock);
      if (source != own) {
        worst.local = false;
        Exchange &sender = sent[members.withSource(member, source)];
        sender.elements += stop - at;
        ++sender.peers;
      }
      at = stop;
    }
  }
  for (const Exchange &one : sent) {
    worst.elements = std::max(worst.elements, one.elements);
    worst.peers = std::max(worst.peers, one.peers);
  }
  return it->second = worst;
}

Cost Problem::exchangeCost(const State &state, unsigned dim,
                           ArrayRef<Atom> from, int64_t fromBlock,
                           ArrayRef<Atom> to, int64_t toBlock) {
  Exchange worst = exchange(dim, from, fromBlock, to, toBlock);
  if (worst.local)
    return localCost();
  int64_t bytes = restElements * elementBytes * worst.elements;
  for (unsigned d = 0; d < state.numDims(); ++d)
    if (d != dim)
      bytes *= state.block[d];
  unsigned tier = 0;
  for (ArrayRef<Atom> list : {from, to})
    for (Atom atom : list)
      tier = std::max(tier, atoms[atom].tier);
  return makeCost(topology.exchangeSeconds(tier, worst.peers, bytes), bytes);
}

} // namespace cleave::reshard

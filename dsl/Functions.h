//===- Functions.h - From a graph to functions -----------------*- C++ -*-===//
// Two decisions that need no IR: which maps are computed inside the body of
// their only reader, and which turns of a repeat are the same function.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DSL_FUNCTIONS_H
#define CLEAVE_DSL_FUNCTIONS_H

#include "dsl/Plan.h"

#include <unordered_map>
#include <unordered_set>

namespace cleave::dsl {

/// A map or reduction as it is written: with the maps that it absorbed.
struct Fused {
  std::vector<const Node *> operands;
  Body body;
};

/// What one entry computes, and in which functions.
class Functions {
public:
  Functions(const Entry &entry, const Shardings &shardings);

  /// Whether anybody needs the node, and not only inside a reader's body.
  bool isWritten(const Node *node) const {
    return live.count(node) && !inlined.count(node);
  }
  const Fused &fused(const Node *node) const { return bodies.at(node); }
  bool isLoopWritten(const Region *region) const;
  /// What the node reads when it is written.
  const std::vector<const Node *> &operands(const Node *node) const {
    auto it = bodies.find(node);
    return it == bodies.end() ? plain.at(node) : it->second.operands;
  }

  /// How a turn of a repeat is called.
  struct Turn {
    /// Values from outside in the order of their first use; values that
    /// somebody outside needs.
    std::vector<const Node *> inputs, results;
    /// Turns with equal keys are one function.
    std::string key;
  };
  const Turn &turn(const Region *region) const { return turns.at(region); }
  /// How many turns the function of this key has.
  unsigned numTurns(const std::string &key) const { return counts.at(key); }

private:
  void findLive();
  void findInlined();
  bool mayInline(const Node *node, const Node *reader) const;
  void fuse(const Node *node);
  void describe(const Region *region);
  void collect(const Region *region, const Region *top, Turn &turn);
  std::string keyOf(const Region *region, const Turn &turn) const;
  using ValueNames = std::unordered_map<const Node *, std::string>;
  void addKey(const Region *region, ValueNames &names, std::string &key) const;
  std::string shardingOf(const Node *node) const;

  const Entry &entry;
  const Shardings &shardings;
  std::unordered_set<const Node *> live, inlined, returned;
  std::unordered_map<const Node *, std::vector<const Node *>> readers, plain;
  /// Steps of a body with those of the maps that it absorbed.
  std::unordered_map<const Node *, size_t> sizes;
  std::unordered_map<const Node *, Fused> bodies;
  std::unordered_map<const Region *, Turn> turns;
  std::unordered_map<std::string, unsigned> counts;
};

} // namespace cleave::dsl

#endif // CLEAVE_DSL_FUNCTIONS_H

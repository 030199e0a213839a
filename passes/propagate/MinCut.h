//===- MinCut.h - The cheapest division of nodes in two --------*- C++ -*-===//
#ifndef CLEAVE_PASSES_PROPAGATE_MINCUT_H
#define CLEAVE_PASSES_PROPAGATE_MINCUT_H

#include <cstdint>
#include <vector>

namespace cleave {

/// Dinic's algorithm with integer capacities. Used on the small graphs between
/// two reductions; on chains and trees its time is near-linear.
class MinCut {
public:
  static constexpr int64_t kInfinite = int64_t(1) << 60;

  explicit MinCut(unsigned numNodes)
      : numNodes(numNodes), first(numNodes + 2, kNone) {}
  /// Costs `capacity` if `from` is on the source side and `to` is not.
  void addEdge(unsigned from, unsigned to, int64_t capacity);
  /// Costs `capacity` if `node` is not on the source side.
  void addSource(unsigned node, int64_t capacity) {
    addEdge(numNodes, node, capacity);
  }
  /// Costs `capacity` if `node` is on the source side.
  void addSink(unsigned node, int64_t capacity) {
    addEdge(node, numNodes + 1, capacity);
  }
  /// Returns, per node, whether it is on the source side, which is the smallest
  /// of all cheapest ones.
  std::vector<bool> solve();

private:
  static constexpr unsigned kNone = ~0u;
  struct Edge {
    unsigned to, next;
    int64_t left;
  };
  bool findLevels();
  int64_t augment();

  unsigned numNodes;
  std::vector<unsigned> first, current, level;
  std::vector<Edge> edges;
};

} // namespace cleave

#endif // CLEAVE_PASSES_PROPAGATE_MINCUT_H

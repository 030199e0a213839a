//===- MinCut.cpp - The cheapest division of nodes in two -----------------===//
#include "passes/propagate/MinCut.h"
#include <algorithm>

namespace cleave {

void MinCut::addEdge(unsigned from, unsigned to, int64_t capacity) {
  if (from == to)
    return;
  edges.push_back({to, first[from], capacity});
  first[from] = edges.size() - 1;
  edges.push_back({from, first[to], 0});
  first[to] = edges.size() - 1;
}

bool MinCut::findLevels() {
  level.assign(numNodes + 2, kNone);
  std::vector<unsigned> queue{numNodes};
  level[numNodes] = 0;
  for (size_t i = 0; i < queue.size(); ++i)
    for (unsigned e = first[queue[i]]; e != kNone; e = edges[e].next) {
      unsigned to = edges[e].to;
      if (edges[e].left == 0 || level[to] != kNone)
        continue;
      level[to] = level[queue[i]] + 1;
      queue.push_back(to);
    }
  return level[numNodes + 1] != kNone;
}

/// One path along rising levels, without recursion: chains may be long.
int64_t MinCut::augment() {
  std::vector<unsigned> path;
  unsigned at = numNodes;
  while (at != numNodes + 1) {
    unsigned &e = current[at];
    while (e != kNone &&
           (edges[e].left == 0 || level[edges[e].to] != level[at] + 1))
      e = edges[e].next;
    if (e != kNone) {
      path.push_back(e);
      at = edges[e].to;
      continue;
    }
    if (path.empty())
      return 0;
    level[at] = kNone;
    at = edges[path.back() ^ 1].to;
    path.pop_back();
  }
  int64_t flow = kInfinite;
  for (unsigned e : path)
    flow = std::min(flow, edges[e].left);
  for (unsigned e : path) {
    edges[e].left -= flow;
    edges[e ^ 1].left += flow;
  }
  return flow;
}

std::vector<bool> MinCut::solve() {
  while (findLevels()) {
    current = first;
    while (augment() != 0)
      ;
  }
  std::vector<bool> side(numNodes);
  for (unsigned i = 0; i < numNodes; ++i)
    side[i] = level[i] != kNone;
  return side;
}

} // namespace cleave

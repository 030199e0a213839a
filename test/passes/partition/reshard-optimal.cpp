//===- reshard-optimal.cpp - No cheaper list of steps exists --------------===//
// A plain Dijkstra over every state and every step: all orders of all prime
// digits, all paddings, all permutes and, for uneven dims, all realigns. It
// shares the prices of Topology with the planner and nothing of its search.
//===----------------------------------------------------------------------===//
#include "passes/partition/Reshard.h"
#include "test/passes/partition/ReshardSimulation.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>
#include <queue>
#include <set>

using namespace cleave;
using namespace cleave::test;

namespace {

struct Layout {
  std::vector<std::vector<int>> dims; // digits, major to minor
  std::vector<int64_t> block;
  std::vector<int> partial; // sorted
  auto operator<=>(const Layout &) const = default;
};

struct Price {
  double seconds = 0;
  int64_t bytes = 0;
};

class BruteForce {
public:
  BruteForce(const Mesh &mesh, const Machine &machine,
             llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<AxisRef> digits,
             bool withPartial)
      : topology(mesh, machine), shape(shape), digits(digits),
        withPartial(withPartial) {
    for (int64_t size : shape)
      uneven |= size % mesh.numRanks() != 0;
    makeArrangements();
  }

  /// Cheapest prices from one layout to all, by seconds or by bytes.
  std::vector<Price> from(unsigned start, bool bytesFirst);
  unsigned idOf(const Layout &layout);
  Layout layoutOf(const Sharding &sharding);

  bool uneven = false;

private:
  using Found = llvm::function_ref<void(Layout, Price)>;
  using Edge = std::pair<unsigned, Price>;
  struct Node {
    Layout layout;
    std::vector<Edge> edges;
    bool expanded = false;
  };
  const std::vector<Edge> &edges(unsigned id);
  void makeArrangements();
  void expand(const Layout &at, Found found);
  void cut(const Layout &at, unsigned dim, Found found);
  void join(const Layout &at, unsigned dim, Found found);
  void reduce(const Layout &at, Found found);
  void permute(const Layout &at, Found found);
  void realign(const Layout &at, unsigned dim, Found found);
  std::vector<std::vector<int>> sequences(const std::vector<int> &of);
  std::vector<int64_t> extents(const Layout &at, unsigned dim, int64_t n);

  AxisList refs(llvm::ArrayRef<int> list) {
    AxisList result;
    for (int digit : list)
      result.push_back(digits[digit]);
    return mergeAxes(result);
  }
  std::vector<int> freeDigits(const Layout &at) {
    std::vector<int> result;
    for (int i = 0; i < int(digits.size()); ++i)
      if (!llvm::is_contained(at.partial, i) &&
          llvm::none_of(at.dims,
                        [&](auto &dim) { return llvm::is_contained(dim, i); }))
        result.push_back(i);
    return result;
  }
  int64_t bytes(const Layout &at) {
    int64_t result = 4;
    for (int64_t block : at.block)
      result *= block;
    return result;
  }
  Price price(Collective kind, llvm::ArrayRef<int> list, int64_t value) {
    AxisList axes = refs(list);
    int64_t wire = Topology::wireBytes(kind, axesSize(axes), value);
    return {topology.seconds(kind, axes, wire), wire};
  }

  Topology topology;
  llvm::ArrayRef<int64_t> shape;
  llvm::ArrayRef<AxisRef> digits;
  bool withPartial;
  /// All ways to place the digits; blocks are left empty.
  std::vector<Layout> arrangements;
  std::map<std::vector<int64_t>, Price> realigns;
  std::map<Layout, unsigned> ids;
  std::vector<Node> nodes;
};

} // namespace

void BruteForce::makeArrangements() {
  for (const Sharding &sharding : allShardings(
           shape.size(), digits,
           withPartial ? std::optional(ReductionKind::Sum) : std::nullopt))
    arrangements.push_back(layoutOf(sharding));
}

Layout BruteForce::layoutOf(const Sharding &sharding) {
  // Split merged axes again.
  auto split = [&](llvm::ArrayRef<AxisRef> axes) {
    std::vector<int> list;
    for (AxisRef ref : axes)
      for (auto [i, digit] : llvm::enumerate(digits))
        if (overlaps(ref, digit))
          list.push_back(i);
    return list;
  };
  Layout layout;
  for (auto [size, dim] : llvm::zip(shape, sharding.dims)) {
    layout.dims.push_back(split(dim.axes));
    layout.block.push_back(blockSize(size, dim));
  }
  layout.partial = split(sharding.partial);
  llvm::sort(layout.partial);
  return layout;
}

/// All ordered selections of at least one.
std::vector<std::vector<int>>
BruteForce::sequences(const std::vector<int> &of) {
  std::vector<std::vector<int>> result;
  for (int first : of) {
    result.push_back({first});
    std::vector<int> rest = of;
    llvm::erase(rest, first);
    for (std::vector<int> tail : sequences(rest)) {
      tail.insert(tail.begin(), first);
      result.push_back(tail);
    }
  }
  return result;
}

std::vector<int64_t> BruteForce::extents(const Layout &at, unsigned dim,
                                         int64_t n) {
  std::vector<int64_t> result;
  if (at.block[dim] < shape[dim] || !uneven) {
    if (at.block[dim] % n == 0)
      result.push_back(at.block[dim]);
    return result;
  }
  for (int64_t block = 1; block <= shape[dim]; ++block)
    if (block * n >= shape[dim])
      result.push_back(block * n);
  return result;
}

void BruteForce::cut(const Layout &at, unsigned dim, Found found) {
  for (const std::vector<int> &run : sequences(freeDigits(at))) {
    int64_t n = axesSize(refs(run));
    for (int64_t extent : extents(at, dim, n)) {
      Layout next = at;
      llvm::append_range(next.dims[dim], run);
      next.block[dim] = extent / n;
      found(next, {});
    }
  }
}

void BruteForce::join(const Layout &at, unsigned dim, Found found) {
  const std::vector<int> &list = at.dims[dim];
  for (size_t count = 1; count <= list.size(); ++count) {
    llvm::ArrayRef<int> run = llvm::ArrayRef(list).take_back(count);
    int64_t n = axesSize(refs(run));
    Layout next = at;
    next.dims[dim].resize(list.size() - count);
    next.block[dim] = std::min(shape[dim], at.block[dim] * n);
    found(next, price(Collective::AllGather, run, bytes(at) * n));
    for (unsigned to = 0; to < shape.size(); ++to) {
      if (to == dim)
        continue;
      for (int64_t extent : extents(at, to, n)) {
        Layout moved = next, padded = at;
        padded.block[to] = extent;
        llvm::append_range(moved.dims[to], run);
        moved.block[to] = extent / n;
        found(moved, price(Collective::AllToAll, run, bytes(padded)));
      }
    }
  }
}

void BruteForce::reduce(const Layout &at, Found found) {
  for (const std::vector<int> &run : sequences(at.partial)) {
    Layout next = at;
    for (int digit : run)
      llvm::erase(next.partial, digit);
    found(next, price(Collective::AllReduce, run, bytes(at)));
    int64_t n = axesSize(refs(run));
    for (unsigned dim = 0; dim < shape.size(); ++dim)
      for (int64_t extent : extents(at, dim, n)) {
        Layout scattered = next, padded = at;
        padded.block[dim] = extent;
        llvm::append_range(scattered.dims[dim], run);
        scattered.block[dim] = extent / n;
        found(scattered, price(Collective::ReduceScatter, run, bytes(padded)));
      }
  }
  if (!withPartial)
    return;
  for (const std::vector<int> &run : sequences(freeDigits(at))) {
    Layout next = at;
    llvm::append_range(next.partial, run);
    llvm::sort(next.partial);
    found(next, {});
  }
}

void BruteForce::permute(const Layout &at, Found found) {
  auto sizes = [&](const Layout &layout) {
    std::vector<int64_t> result;
    for (const std::vector<int> &dim : layout.dims)
      result.push_back(axesSize(refs(dim)));
    result.push_back(axesSize(refs(layout.partial)));
    return result;
  };
  for (Layout next : arrangements) {
    if (sizes(next) != sizes(at))
      continue;
    next.block = at.block;
    if (next == at)
      continue;
    // The group: what differs (common ends of lists take no part).
    std::set<int> group;
    for (size_t d = 0; d < shape.size(); ++d) {
      llvm::ArrayRef<int> a = at.dims[d], b = next.dims[d];
      while (!a.empty() && !b.empty() && a.front() == b.front()) {
        a = a.drop_front();
        b = b.drop_front();
      }
      while (!a.empty() && !b.empty() && a.back() == b.back()) {
        a = a.drop_back();
        b = b.drop_back();
      }
      group.insert(a.begin(), a.end());
      group.insert(b.begin(), b.end());
    }
    for (int i = 0; i < int(digits.size()); ++i)
      if (llvm::is_contained(at.partial, i) !=
          llvm::is_contained(next.partial, i))
        group.insert(i);
    std::vector<int> list(group.begin(), group.end());
    found(next, price(Collective::Permute, list, bytes(at)));
  }
}

void BruteForce::realign(const Layout &at, unsigned dim, Found found) {
  Layout without = at;
  without.dims[dim].clear();
  std::vector<std::vector<int>> lists = sequences(freeDigits(without));
  for (const std::vector<int> &list : lists) {
    int64_t n = axesSize(refs(list));
    for (int64_t block = 1; block <= shape[dim]; ++block) {
      if (block * n < shape[dim])
        continue;
      Layout next = at;
      next.dims[dim] = list;
      next.block[dim] = block;
      if (next == at)
        continue;
      AxisList source = refs(at.dims[dim]), target = refs(list);
      // One element per index elsewhere, moved by the simulation.
      const Mesh &mesh = topology.mesh();
      std::vector<int64_t> key = {at.block[dim], block, shape[dim], -1};
      llvm::append_range(key, at.dims[dim]);
      key.push_back(-1);
      llvm::append_range(key, list);
      auto [it, isNew] = realigns.try_emplace(key);
      if (isNew) {
        bool shifted = false;
        std::vector<int64_t> sent(mesh.numRanks()), peers(mesh.numRanks());
        for (int64_t rank = 0; rank < mesh.numRanks(); ++rank) {
          auto coordinates = mesh.coordinates(rank);
          int64_t own = mesh.linearIndex(source, coordinates);
          int64_t begin = mesh.linearIndex(target, coordinates) * block;
          if (begin < shape[dim])
            shifted |= begin != own * at.block[dim];
          std::set<int64_t> senders;
          for (int64_t i = begin; i < std::min(shape[dim], begin + block);
               ++i) {
            int64_t holder = i / at.block[dim];
            if (holder == own)
              continue;
            auto there = coordinates;
            int64_t k = holder;
            for (AxisRef ref : llvm::reverse(source)) {
              int64_t weight = mesh.axes[ref.axis].size / ref.next();
              there[ref.axis] +=
                  (k % ref.size - mesh.digit(ref, there)) * weight;
              k /= ref.size;
            }
            ++sent[mesh.rankAt(there)];
            senders.insert(mesh.rankAt(there));
          }
          for (int64_t sender : senders)
            ++peers[sender];
        }
        int64_t wire = *std::max_element(sent.begin(), sent.end());
        int64_t most = *std::max_element(peers.begin(), peers.end());
        it->second = {shifted || wire > 0 ? double(most) : -1.0, wire};
      }
      int64_t rest = bytes(at) / at.block[dim];
      int64_t wire = it->second.bytes * rest;
      AxisList all = source;
      llvm::append_range(all, target);
      Price cost;
      if (it->second.seconds >= 0)
        cost = {topology.exchangeSeconds(topology.tierOf(all),
                                         int64_t(it->second.seconds), wire),
                wire};
      found(next, cost);
    }
  }
}

void BruteForce::expand(const Layout &at, Found found) {
  for (unsigned dim = 0; dim < shape.size(); ++dim) {
    cut(at, dim, found);
    join(at, dim, found);
    if (uneven)
      realign(at, dim, found);
  }
  reduce(at, found);
  permute(at, found);
}

unsigned BruteForce::idOf(const Layout &layout) {
  auto [it, isNew] = ids.try_emplace(layout, nodes.size());
  if (isNew)
    nodes.push_back({layout, {}, false});
  return it->second;
}

const std::vector<BruteForce::Edge> &BruteForce::edges(unsigned id) {
  if (!nodes[id].expanded) {
    std::map<unsigned, Price> found;
    Layout layout = nodes[id].layout;
    expand(layout, [&](Layout next, Price price) {
      auto [it, isNew] = found.try_emplace(idOf(next), price);
      if (!isNew && price.seconds < it->second.seconds)
        it->second = price;
    });
    nodes[id].expanded = true;
    nodes[id].edges.assign(found.begin(), found.end());
  }
  return nodes[id].edges;
}

std::vector<Price> BruteForce::from(unsigned start, bool bytesFirst) {
  using Cost = std::pair<double, double>;
  constexpr double kFar = 1e300;
  std::vector<Price> best;
  std::vector<Cost> cost;
  std::set<std::pair<Cost, unsigned>> queue;
  auto grow = [&] {
    best.resize(nodes.size());
    cost.resize(nodes.size(), {kFar, kFar});
  };
  grow();
  cost[start] = {0, 0};
  queue.insert({{0, 0}, start});
  while (!queue.empty()) {
    auto [so, at] = *queue.begin();
    queue.erase(queue.begin());
    const std::vector<Edge> &out = edges(at);
    grow();
    for (auto [next, step] : out) {
      Cost total = so;
      double seconds = step.seconds + 1e-12;
      total.first += bytesFirst ? double(step.bytes) : seconds;
      total.second += bytesFirst ? seconds : double(step.bytes);
      if (cost[next] <= total)
        continue;
      queue.erase({cost[next], next});
      cost[next] = total;
      best[next] = {best[at].seconds + step.seconds,
                    best[at].bytes + step.bytes};
      queue.insert({total, next});
    }
  }
  return best;
}

namespace {

Mesh makeMesh(llvm::ArrayRef<int64_t> sizes) {
  Mesh mesh;
  mesh.name = "mesh";
  for (auto [i, size] : llvm::enumerate(sizes))
    mesh.axes.push_back({std::string(1, char('a' + i)), size});
  return mesh;
}

/// The plan of each pair must be the fastest of all, unless that moves more
/// bytes than needed; then the fastest of those with the fewest bytes. For
/// uneven dims, where the rule weighs bytes against steps, only how often a
/// plan is neither the fastest nor the smallest is counted.
int checkOptimal(const Mesh &mesh, llvm::ArrayRef<int64_t> shape,
                 llvm::ArrayRef<AxisRef> digits, bool withPartial,
                 const Machine &machine = cpuLocalMachine()) {
  BruteForce brute(mesh, machine, shape, digits, withPartial);
  Resharder resharder(mesh, machine);
  int worse = 0;
  std::vector<Sharding> all = allShardings(
      shape.size(), digits,
      withPartial ? std::optional(ReductionKind::Sum) : std::nullopt);
  for (const Sharding &from : all) {
    unsigned start = brute.idOf(brute.layoutOf(from));
    std::vector<Price> bySeconds = brute.from(start, false);
    std::vector<Price> byBytes = brute.from(start, true);
    for (const Sharding &to : all) {
      unsigned goal = brute.idOf(brute.layoutOf(to));
      const ReshardPlan &plan = resharder.plan(shape, 4, from, to);
      Price fast = bySeconds[goal], small = byBytes[goal];
      bool isFast = plan.seconds <= fast.seconds * (1 + 1e-9);
      bool isSmall = plan.wireBytes <= small.bytes;
      // One collective after which nothing is cut away is left alone.
      bool isSingle = plan.steps.size() == 1 ||
                      (plan.steps.size() == 2 && !plan.steps[0].communicates());
      if (isFast && isSingle)
        continue;
      bool isFastSmall = isSmall && plan.seconds <= small.seconds * (1 + 1e-9);
      if (isFastSmall || (isFast && (isSmall || brute.uneven)))
        continue;
      if (brute.uneven && plan.seconds <= small.seconds * (1 + 1e-9))
        continue;
      if (++worse > 5)
        continue;
      ADD_FAILURE() << toString(mesh, from) << " -> " << toString(mesh, to)
                    << "\n"
                    << toString(mesh, plan) << plan.seconds * 1e6 << " us, "
                    << plan.wireBytes << " B; fastest " << fast.seconds * 1e6
                    << " us, " << fast.bytes << " B; smallest "
                    << small.seconds * 1e6 << " us, " << small.bytes << " B";
    }
  }
  return worse;
}

TEST(ReshardOptimal, EvenMatricesOnTwoAxes) {
  for (const std::vector<int64_t> &sizes :
       std::vector<std::vector<int64_t>>{{2, 2}, {2, 3}}) {
    Mesh mesh = makeMesh(sizes);
    AxisList digits = {mesh.whole(0), mesh.whole(1)};
    for (int64_t scale : {1, 1000})
      checkOptimal(mesh, {12, 36 * scale}, digits, /*withPartial=*/true);
  }
}

TEST(ReshardOptimal, EvenMatricesOnThreeAxes) {
  Mesh mesh = makeMesh({2, 2, 2});
  AxisList digits = {mesh.whole(0), mesh.whole(1), mesh.whole(2)};
  for (int64_t scale : {1, 1000})
    checkOptimal(mesh, {8, 16 * scale}, digits, /*withPartial=*/false);
}

TEST(ReshardOptimal, EvenMatricesOnSubAxes) {
  Mesh mesh = makeMesh({4, 2});
  AxisList digits = {{0, 1, 2}, {0, 2, 2}, mesh.whole(1)};
  for (int64_t scale : {1, 1000})
    checkOptimal(mesh, {8, 16 * scale}, digits, /*withPartial=*/false);
}

// Two neighbourhoods of two ranks: slow traffic is worth detours.
TEST(ReshardOptimal, EvenMatricesOnTwoTiers) {
  Machine machine = cpuLocalMachine();
  machine.tiers = {{"near", 2, 1e-6, 100e9}, {"far", 0, 5e-6, 10e9}};
  Mesh mesh = makeMesh({2, 2});
  AxisList digits = {mesh.whole(0), mesh.whole(1)};
  for (int64_t scale : {1, 100000})
    checkOptimal(mesh, {8, 16 * scale}, digits, /*withPartial=*/true, machine);
}

// Realigns and paddings of every kind: hardly any pair may be planned worse.
TEST(ReshardOptimal, UnevenVectors) {
  int worse = 0;
  for (const std::vector<int64_t> &sizes :
       std::vector<std::vector<int64_t>>{{2, 2}, {2, 3}, {3, 2}, {6}}) {
    Mesh mesh = makeMesh(sizes);
    AxisList digits;
    for (unsigned i = 0; i < sizes.size(); ++i)
      digits.push_back(mesh.whole(i));
    for (int64_t size : {1, 2, 3, 5, 7, 10, 13})
      worse += checkOptimal(mesh, {size}, digits, /*withPartial=*/false);
  }
  EXPECT_EQ(worse, 0);
}

} // namespace

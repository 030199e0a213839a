//===- MemoryPlan.cpp - Offsets of buffers in one arena -------------------===//
#include "passes/memory/MemoryPlan.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <limits>
#include <numeric>

using namespace cleave;

namespace {
/// Where a buffer goes among those that are already placed.
enum class Fit { First, Best };

class Planner {
public:
  explicit Planner(llvm::ArrayRef<PlannedBuffer> buffers);
  void tryOrder(llvm::StringRef name, llvm::ArrayRef<int64_t> keys);
  MemoryPlan take() { return std::move(best); }
  bool optimal() const { return best.bytes == best.lowerBound; }

private:
  void findNeighbours();
  void place(llvm::ArrayRef<size_t> order, Fit fit, llvm::StringRef name);
  int64_t offsetFor(size_t buffer, Fit fit,
                    llvm::ArrayRef<int64_t> offsets) const;

  llvm::ArrayRef<PlannedBuffer> buffers;
  std::vector<int64_t> sizes;
  /// Buffers alive at a common moment.
  std::vector<std::vector<uint32_t>> neighbours;
  MemoryPlan best;
};
} // namespace

Planner::Planner(llvm::ArrayRef<PlannedBuffer> buffers) : buffers(buffers) {
  for (const PlannedBuffer &buffer : buffers)
    sizes.push_back(llvm::alignTo(buffer.bytes, kMemoryAlignment));
  findNeighbours();
  best.bytes = std::numeric_limits<int64_t>::max();
}

void Planner::findNeighbours() {
  neighbours.resize(buffers.size());
  std::vector<uint32_t> byBegin(buffers.size()), alive;
  std::iota(byBegin.begin(), byBegin.end(), 0);
  llvm::sort(byBegin, [&](uint32_t a, uint32_t b) {
    return std::pair(buffers[a].begin, a) < std::pair(buffers[b].begin, b);
  });
  for (uint32_t buffer : byBegin) {
    llvm::erase_if(alive, [&](uint32_t other) {
      return buffers[other].end < buffers[buffer].begin;
    });
    // One of them may lie last and end where its content ends.
    int64_t sum = sizes[buffer];
    int64_t spare = sizes[buffer] - buffers[buffer].bytes;
    for (uint32_t other : alive) {
      sum += sizes[other];
      spare = std::max(spare, sizes[other] - buffers[other].bytes);
      neighbours[buffer].push_back(other);
      neighbours[other].push_back(buffer);
    }
    best.lowerBound = std::max(best.lowerBound, sum - spare);
    alive.push_back(buffer);
  }
}

int64_t Planner::offsetFor(size_t buffer, Fit fit,
                           llvm::ArrayRef<int64_t> offsets) const {
  std::vector<std::pair<int64_t, int64_t>> taken;
  for (uint32_t other : neighbours[buffer])
    if (offsets[other] >= 0 && sizes[other] > 0)
      taken.push_back({offsets[other], offsets[other] + sizes[other]});
  llvm::sort(taken);
  int64_t end = 0, chosen = -1;
  int64_t smallest = std::numeric_limits<int64_t>::max();
  for (auto [from, to] : taken) {
    int64_t gap = from - end;
    if (gap >= sizes[buffer] && gap < smallest) {
      chosen = end;
      smallest = gap;
      if (fit == Fit::First)
        break;
    }
    end = std::max(end, to);
  }
  return chosen >= 0 ? chosen : end;
}

void Planner::place(llvm::ArrayRef<size_t> order, Fit fit,
                    llvm::StringRef name) {
  std::vector<int64_t> offsets(buffers.size(), -1);
  int64_t bytes = 0;
  for (size_t buffer : order) {
    offsets[buffer] = offsetFor(buffer, fit, offsets);
    // The last buffer needs no room behind it.
    bytes = std::max(bytes, offsets[buffer] + buffers[buffer].bytes);
  }
  best.tried.push_back(bytes);
  if (bytes >= best.bytes)
    return;
  best.bytes = bytes;
  best.offsets = std::move(offsets);
  best.order = name;
}

void Planner::tryOrder(llvm::StringRef name, llvm::ArrayRef<int64_t> keys) {
  if (optimal())
    return;
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::sort(order, [&](size_t a, size_t b) {
    return std::pair(keys[a], a) < std::pair(keys[b], b);
  });
  place(order, Fit::Best, name);
  if (!optimal())
    place(order, Fit::First, name);
}

MemoryPlan cleave::planMemory(llvm::ArrayRef<PlannedBuffer> buffers) {
  Planner planner(buffers);
  auto keys = [&](auto key) {
    std::vector<int64_t> result;
    for (const PlannedBuffer &buffer : buffers)
      result.push_back(key(buffer));
    return result;
  };
  using B = const PlannedBuffer &;
  planner.tryOrder("size", keys([](B b) { return -b.bytes; }));
  planner.tryOrder("begin", keys([](B b) { return b.begin; }));
  planner.tryOrder(
      "area", keys([](B b) { return -b.bytes / 64 * (b.end - b.begin + 1); }));
  planner.tryOrder("length", keys([](B b) { return b.begin - b.end; }));
  planner.tryOrder("end", keys([](B b) { return -b.end; }));
  return planner.take();
}

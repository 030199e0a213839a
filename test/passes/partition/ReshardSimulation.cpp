//===- ReshardSimulation.cpp - Runs reshard steps on local arrays ---------===//
#include "test/passes/partition/ReshardSimulation.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <limits>

using namespace llvm;

namespace cleave::test {

using Coordinates = SmallVector<int64_t, 4>;

//===----------------------------------------------------------------------===//
// Arrays and indices
//===----------------------------------------------------------------------===//

static int64_t volume(ArrayRef<int64_t> shape) {
  int64_t n = 1;
  for (int64_t size : shape)
    n *= size;
  return n;
}

static int64_t flatten(ArrayRef<int64_t> shape, ArrayRef<int64_t> index) {
  int64_t flat = 0;
  for (auto [size, i] : zip_equal(shape, index))
    flat = flat * size + i;
  return flat;
}

double &LocalArray::at(ArrayRef<int64_t> index) {
  return data[flatten(shape, index)];
}

static LocalArray makeArray(ArrayRef<int64_t> shape) {
  return {SmallVector<int64_t, 4>(shape),
          std::vector<double>(volume(shape),
                              std::numeric_limits<double>::quiet_NaN())};
}

void forEachIndex(ArrayRef<int64_t> shape,
                  function_ref<void(ArrayRef<int64_t>)> body) {
  SmallVector<int64_t, 4> index(shape.size(), 0);
  for (int64_t i = 0, e = volume(shape); i < e; ++i) {
    int64_t rest = i;
    for (size_t d = shape.size(); d-- > 0;) {
      index[d] = rest % shape[d];
      rest /= shape[d];
    }
    body(index);
  }
}

/// Coordinates with the digits of `axes` set to those of index `k`.
static Coordinates withIndex(const Mesh &mesh, Coordinates at,
                             ArrayRef<AxisRef> axes, int64_t k) {
  for (AxisRef ref : reverse(axes)) {
    int64_t weight = mesh.axes[ref.axis].size / ref.next();
    at[ref.axis] += (k % ref.size - mesh.digit(ref, at)) * weight;
    k /= ref.size;
  }
  return at;
}

//===----------------------------------------------------------------------===//
// The tensor
//===----------------------------------------------------------------------===//

static double combine(ReductionKind kind, double a, double b) {
  auto bits = [](double x) { return static_cast<int64_t>(x); };
  switch (kind) {
  case ReductionKind::Sum:
    return a + b;
  case ReductionKind::Prod:
    return a * b;
  case ReductionKind::Max:
  case ReductionKind::UMax:
  case ReductionKind::MaxNum:
    return std::isnan(a) || std::isnan(b) ? NAN : std::max(a, b);
  case ReductionKind::Min:
  case ReductionKind::UMin:
  case ReductionKind::MinNum:
    return std::isnan(a) || std::isnan(b) ? NAN : std::min(a, b);
  case ReductionKind::And:
    return std::isnan(a + b) ? NAN : double(bits(a) & bits(b));
  case ReductionKind::Or:
    return std::isnan(a + b) ? NAN : double(bits(a) | bits(b));
  case ReductionKind::Xor:
    return std::isnan(a + b) ? NAN : double(bits(a) ^ bits(b));
  }
  return NAN;
}

static double neutral(ReductionKind kind) {
  switch (kind) {
  case ReductionKind::Sum:
  case ReductionKind::Or:
  case ReductionKind::Xor:
  case ReductionKind::UMax:
    return 0;
  case ReductionKind::Prod:
    return 1;
  case ReductionKind::Max:
  case ReductionKind::MaxNum:
    return -INFINITY;
  case ReductionKind::Min:
  case ReductionKind::UMin:
  case ReductionKind::MinNum:
    return INFINITY;
  case ReductionKind::And:
    return (int64_t(1) << 40) - 1;
  }
  return NAN;
}

double summandAt(ArrayRef<int64_t> shape, ArrayRef<int64_t> index,
                 const Sharding &sharding, int64_t k) {
  int64_t flat = flatten(shape, index);
  if (sharding.partial.empty())
    return flat + 1;
  // Small and of both parities, so that products stay exact.
  return (flat * 7 + k * 5 + flat / 3 * k) % 11 + 1;
}

double valueAt(ArrayRef<int64_t> shape, ArrayRef<int64_t> index,
               const Sharding &sharding) {
  double value = summandAt(shape, index, sharding, 0);
  for (int64_t k = 1, e = axesSize(sharding.partial); k < e; ++k)
    value = combine(sharding.kind, value, summandAt(shape, index, sharding, k));
  return value;
}

/// First global index of each dim that these coordinates hold.
static SmallVector<int64_t, 4> origin(const Mesh &mesh, ArrayRef<int64_t> shape,
                                      const Sharding &sharding,
                                      ArrayRef<int64_t> at) {
  SmallVector<int64_t, 4> result;
  for (auto [size, dim] : zip_equal(shape, sharding.dims))
    result.push_back(mesh.linearIndex(dim.axes, at) * blockSize(size, dim));
  return result;
}

/// Calls `body` with local and global index of each element of a rank that is
/// no padding.
static void
forEachElement(const Mesh &mesh, ArrayRef<int64_t> shape,
               const Sharding &sharding, ArrayRef<int64_t> at,
               function_ref<void(ArrayRef<int64_t>, ArrayRef<int64_t>)> body) {
  SmallVector<int64_t, 4> first = origin(mesh, shape, sharding, at);
  forEachIndex(localShape(shape, sharding), [&](ArrayRef<int64_t> local) {
    SmallVector<int64_t, 4> global;
    for (auto [begin, i] : zip_equal(first, local))
      global.push_back(begin + i);
    for (auto [i, size] : zip_equal(global, shape))
      if (i >= size)
        return;
    body(local, global);
  });
}

Cluster scatter(const Mesh &mesh, ArrayRef<int64_t> shape,
                const Sharding &sharding) {
  Cluster cluster{mesh, {}};
  AxisList partial = normalizeAxisSet(sharding.partial);
  for (int64_t rank = 0; rank < mesh.numRanks(); ++rank) {
    Coordinates at = mesh.coordinates(rank);
    LocalArray array = makeArray(localShape(shape, sharding));
    int64_t k = mesh.linearIndex(partial, at);
    forEachElement(mesh, shape, sharding, at,
                   [&](ArrayRef<int64_t> local, ArrayRef<int64_t> global) {
                     array.at(local) = summandAt(shape, global, sharding, k);
                   });
    cluster.ranks.push_back(std::move(array));
  }
  return cluster;
}

std::string compare(Cluster &cluster, ArrayRef<int64_t> shape,
                    const Sharding &from, const Sharding &to) {
  const Mesh &mesh = cluster.mesh;
  std::string error;
  raw_string_ostream os(error);
  for (int64_t rank = 0; rank < mesh.numRanks(); ++rank) {
    Coordinates at = mesh.coordinates(rank);
    if (cluster.ranks[rank].shape != localShape(shape, to))
      return "the local shape is not that of the target";
    forEachElement(mesh, shape, to, at,
                   [&](ArrayRef<int64_t> local, ArrayRef<int64_t> global) {
                     double value = NAN;
                     for (int64_t k = 0, e = axesSize(to.partial); k < e; ++k) {
                       int64_t other =
                           mesh.rankAt(withIndex(mesh, at, to.partial, k));
                       double summand = cluster.ranks[other].at(local);
                       value =
                           k == 0 ? summand : combine(to.kind, value, summand);
                     }
                     double expected = valueAt(shape, global, from);
                     if (value != expected && error.empty())
                       os << "rank " << rank << " has " << value
                          << " instead of " << expected;
                   });
  }
  return error;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

namespace {

class Simulator {
public:
  Simulator(Cluster &cluster, const ReshardStep &step)
      : cluster(cluster), mesh(cluster.mesh), step(step), old(cluster.ranks),
        n(axesSize(step.axes)) {}
  void run();
  /// Elements that the busiest rank sends.
  int64_t worstSent() const {
    return sent.empty() ? 0 : *std::max_element(sent.begin(), sent.end());
  }

private:
  void runRank(int64_t rank);
  LocalArray &member(int64_t k) {
    return old[mesh.rankAt(withIndex(mesh, at, step.axes, k))];
  }
  double reduced(ArrayRef<int64_t> index) {
    double value = member(0).at(index);
    for (int64_t k = 1; k < n; ++k)
      value = combine(step.reduction, value, member(k).at(index));
    return value;
  }
  void realign();

  Cluster &cluster;
  const Mesh &mesh;
  const ReshardStep &step;
  std::vector<LocalArray> old;
  int64_t n;
  /// Of the rank that receives.
  Coordinates at;
  int64_t mine = 0;
  LocalArray out;
  std::vector<int64_t> sent;
};

} // namespace

void Simulator::run() {
  if (step.kind == ReshardKind::Realign)
    sent.assign(cluster.ranks.size(), 0);
  for (size_t rank = 0; rank < cluster.ranks.size(); ++rank) {
    runRank(rank);
    cluster.ranks[rank] = out;
  }
}

void Simulator::realign() {
  int64_t first = mine * step.outBlock;
  forEachIndex(out.shape, [&](ArrayRef<int64_t> index) {
    int64_t global = first + index[step.dim];
    if (global >= step.dimSize)
      return;
    int64_t block = global / step.inBlock;
    int64_t own = mesh.linearIndex(step.source, at);
    Coordinates from =
        block == own ? at : withIndex(mesh, at, step.source, block);
    int64_t sender = mesh.rankAt(from);
    SmallVector<int64_t, 4> there(index);
    there[step.dim] = global % step.inBlock;
    out.at(index) = old[sender].at(there);
    if (block != own)
      ++sent[sender];
  });
}

void Simulator::runRank(int64_t rank) {
  at = mesh.coordinates(rank);
  mine = mesh.linearIndex(step.axes, at);
  out = makeArray(step.localAfter);
  int64_t before = step.inBlock, after = step.outBlock;
  if (step.kind == ReshardKind::Realign)
    return realign();
  forEachIndex(out.shape, [&](ArrayRef<int64_t> index) {
    SmallVector<int64_t, 4> there(index);
    switch (step.kind) {
    case ReshardKind::AllReduce:
      out.at(index) = reduced(index);
      return;
    case ReshardKind::AllGather:
      there[step.dim] = index[step.dim] % before;
      out.at(index) = member(index[step.dim] / before).at(there);
      return;
    case ReshardKind::ReduceScatter:
      there[step.dim] += mine * after;
      out.at(index) = reduced(there);
      return;
    case ReshardKind::AllToAll: {
      int64_t block = step.localBefore[step.concatDim];
      there[step.dim] += mine * after;
      there[step.concatDim] = index[step.concatDim] % block;
      out.at(index) = member(index[step.concatDim] / block).at(there);
      return;
    }
    case ReshardKind::Permute:
      out.at(index) =
          old[mesh.rankAt(withIndex(mesh, at, step.source, mine))].at(there);
      return;
    case ReshardKind::Slice:
      there[step.dim] += mine * after;
      out.at(index) = old[rank].at(there);
      return;
    case ReshardKind::Pad:
    case ReshardKind::Trim:
      if (index[step.dim] < before)
        out.at(index) = old[rank].at(there);
      return;
    case ReshardKind::MakePartial:
      out.at(index) = mine == 0 ? old[rank].at(there) : neutral(step.reduction);
      return;
    case ReshardKind::Realign:
      return;
    }
  });
}

/// Whether the shapes of a step fit its kind.
static std::string checkShapes(const ReshardStep &step) {
  int64_t n = axesSize(step.axes);
  SmallVector<int64_t, 4> expected = step.localBefore;
  switch (step.kind) {
  case ReshardKind::AllGather:
    expected[step.dim] *= n;
    break;
  case ReshardKind::ReduceScatter:
  case ReshardKind::Slice:
    if (expected[step.dim] % n != 0)
      return "the group does not divide the dim";
    expected[step.dim] /= n;
    break;
  case ReshardKind::AllToAll:
    if (expected[step.dim] % n != 0)
      return "the group does not divide the split dim";
    expected[step.dim] /= n;
    expected[step.concatDim] *= n;
    break;
  case ReshardKind::Realign:
  case ReshardKind::Pad:
  case ReshardKind::Trim:
    expected[step.dim] = step.outBlock;
    if (step.kind == ReshardKind::Pad && step.outBlock <= step.inBlock)
      return "a pad that does not grow";
    if (step.kind == ReshardKind::Trim && step.outBlock >= step.inBlock)
      return "a trim that does not shrink";
    break;
  default:
    break;
  }
  if (expected != step.localAfter)
    return "wrong local shape after the step";
  bool hasDim = step.kind != ReshardKind::AllReduce &&
                step.kind != ReshardKind::Permute &&
                step.kind != ReshardKind::MakePartial;
  if ((hasDim ? step.localAfter[step.dim] : 0) != step.outBlock)
    return "wrong outBlock";
  if ((hasDim ? step.localBefore[step.dim] : 0) != step.inBlock)
    return "wrong inBlock";
  return "";
}

/// Bytes that one rank sends, by the conventions for rings.
static int64_t expectedWire(const ReshardStep &step, int64_t elementBytes,
                            int64_t realigned) {
  int64_t n = axesSize(step.axes);
  int64_t before = volume(step.localBefore) * elementBytes;
  int64_t after = volume(step.localAfter) * elementBytes;
  switch (step.kind) {
  case ReshardKind::AllReduce:
    return 2 * ceilDiv(before * (n - 1), n);
  case ReshardKind::AllGather:
    return after / n * (n - 1);
  case ReshardKind::ReduceScatter:
  case ReshardKind::AllToAll:
    return before / n * (n - 1);
  case ReshardKind::Permute:
    return before;
  case ReshardKind::Realign:
    return realigned * elementBytes;
  default:
    return 0;
  }
}

std::string simulate(Cluster &cluster, const ReshardStep &step,
                     int64_t elementBytes) {
  if (cluster.ranks.front().shape != step.localBefore)
    return "wrong local shape before the step";
  if (std::string error = checkShapes(step); !error.empty())
    return error;
  Simulator simulator(cluster, step);
  simulator.run();
  int64_t wire = expectedWire(step, elementBytes, simulator.worstSent());
  if (wire != step.wireBytes)
    return "moves " + std::to_string(wire) + " bytes";
  return "";
}

std::string runReshard(Resharder &resharder, ArrayRef<int64_t> shape,
                       const Sharding &from, const Sharding &to) {
  const Mesh &mesh = resharder.topology().mesh();
  constexpr int64_t kElementBytes = 4;
  const ReshardPlan &plan = resharder.plan(shape, kElementBytes, from, to);
  Cluster cluster = scatter(mesh, shape, from);
  std::string error;
  for (const ReshardStep &step : plan.steps) {
    error = simulate(cluster, step, kElementBytes);
    if (!error.empty())
      break;
  }
  if (error.empty())
    error = compare(cluster, shape, from, to);
  if (error.empty())
    return "";
  std::string text;
  raw_string_ostream os(text);
  interleave(shape, os, [&](int64_t size) { os << size; }, "x");
  os << ": " << toString(mesh, from) << " -> " << toString(mesh, to) << ": "
     << error << '\n'
     << toString(mesh, plan);
  return text;
}

//===----------------------------------------------------------------------===//
// All shardings
//===----------------------------------------------------------------------===//

static void placeDigits(ArrayRef<AxisRef> digits, const Sharding &sharding,
                        bool partial, std::vector<Sharding> &out) {
  if (digits.empty()) {
    Sharding merged = sharding;
    for (DimSharding &dim : merged.dims)
      dim.axes = mergeAxes(dim.axes);
    merged.partial = normalizeAxisSet(merged.partial);
    out.push_back(merged);
    return;
  }
  ArrayRef<AxisRef> rest = digits.drop_front();
  placeDigits(rest, sharding, partial, out);
  for (size_t d = 0; d < sharding.dims.size(); ++d)
    for (size_t i = 0; i <= sharding.dims[d].axes.size(); ++i) {
      Sharding next = sharding;
      next.dims[d].axes.insert(next.dims[d].axes.begin() + i, digits.front());
      placeDigits(rest, next, partial, out);
    }
  if (!partial)
    return;
  Sharding next = sharding;
  next.partial.push_back(digits.front());
  placeDigits(rest, next, partial, out);
}

std::vector<Sharding> allShardings(unsigned rank, ArrayRef<AxisRef> digits,
                                   std::optional<ReductionKind> kind) {
  std::vector<Sharding> result;
  Sharding whole = Sharding::whole(rank, /*open=*/false);
  whole.kind = kind.value_or(ReductionKind::Sum);
  placeDigits(digits, whole, kind.has_value(), result);
  return result;
}

} // namespace cleave::test

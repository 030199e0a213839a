//===- Plan.cpp - One communication as one rank sees it -------------------===//
#include "runtime/comm/Plan.h"
#include "runtime/cpu/Copy.h"
#include "runtime/support/Dtype.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace cleave::rt {

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

/// Whether one list of digits has both: their bounds divide each other in
/// order.
static bool alignable(const CleaveAxisRef &a, const CleaveAxisRef &b) {
  int64_t cuts[] = {a.pre, a.pre * a.size, b.pre, b.pre * b.size};
  std::sort(std::begin(cuts), std::end(cuts));
  for (int i = 0; i < 3; ++i)
    if (cuts[i + 1] % cuts[i] != 0)
      return false;
  return true;
}

/// The digits of `axes` and `source`. Two of one axis that no list of digits
/// has both, a:(1)2 and a:(3)2 of 6, count as the digits from the first to the
/// last.
static std::vector<CleaveAxisRef> groupDigits(const CleaveComm &comm) {
  std::vector<CleaveAxisRef> digits(comm.axes.refs,
                                    comm.axes.refs + comm.axes.count);
  for (int64_t i = 0; i < comm.source.count; ++i) {
    CleaveAxisRef b = comm.source.refs[i];
    for (CleaveAxisRef &a : digits) {
      if (a.axis != b.axis || alignable(a, b))
        continue;
      int64_t first = std::gcd(a.pre, b.pre);
      int64_t last = std::lcm(a.pre * a.size, b.pre * b.size);
      a = b = {a.axis, first, last / first};
    }
    digits.push_back(b);
  }
  return digits;
}

static void findMembers(const Mesh &mesh, int64_t rank, CommPlan &plan) {
  const CleaveComm &comm = *plan.comm;
  std::vector<CleaveAxisRef> digits = groupDigits(comm);
  CleaveAxes group{int64_t(digits.size()), digits.data()};
  auto canonical = [&](int64_t position) {
    return mesh.withoutDigits(position, group);
  };
  int64_t mine = canonical(mesh.position(rank));
  uint64_t key = 0xcbf29ce484222325ull; // FNV-1a over the group of position 0
  for (int64_t p = 0; p < mesh.numRanks(); ++p) {
    int64_t group = canonical(p);
    if (group == 0)
      key = (key ^ uint64_t(p + 1)) * 0x100000001b3ull;
    if (group == mine)
      plan.members.push_back(
          {mesh.rank(p), mesh.index(p, comm.axes), mesh.index(p, comm.source)});
  }
  plan.groupKey = key | 1; // never zero, which means "free"
  std::sort(plan.members.begin(), plan.members.end(),
            [](const Member &a, const Member &b) {
              return std::pair(a.axesIndex, a.sourceIndex) <
                     std::pair(b.axesIndex, b.sourceIndex);
            });
  for (size_t i = 0; i < plan.members.size(); ++i)
    if (plan.members[i].rank == rank)
      plan.self = int64_t(i);
}

//===----------------------------------------------------------------------===//
// Who takes what: for each kind, the regions that `receiver` takes
//===----------------------------------------------------------------------===//

static Region gatherRegion(const CommPlan &plan, int64_t from) {
  const CleaveComm &c = *plan.comm;
  Region r;
  r.bytes = c.dim0 * c.inner * plan.elementBytes;
  r.count[0] = c.outer;
  r.sourceStep[0] = r.bytes;
  r.targetStep[0] = r.bytes * int64_t(plan.members.size());
  r.targetOffset = from * r.bytes;
  return r;
}

static Region scatterRegion(const CommPlan &plan, int64_t receiver) {
  const CleaveComm &c = *plan.comm;
  int64_t n = int64_t(plan.members.size());
  Region r;
  r.bytes = c.dim0 / n * c.inner * plan.elementBytes;
  r.count[0] = c.outer;
  r.sourceStep[0] = r.bytes * n;
  r.targetStep[0] = r.bytes;
  r.sourceOffset = receiver * r.bytes;
  return r;
}

static Region allToAllRegion(const CommPlan &plan, int64_t from,
                             int64_t receiver) {
  const CleaveComm &c = *plan.comm;
  int64_t n = int64_t(plan.members.size()), piece = c.dim0 / n;
  int64_t unit = c.inner * plan.elementBytes;
  Region r;
  if (c.swapped) { // [outer, dim1, middle, dim0, inner]
    r.bytes = piece * unit;
    r.count = {c.outer, c.dim1, c.middle};
    r.sourceStep[2] = c.dim0 * unit;
    r.sourceStep[1] = r.sourceStep[2] * c.middle;
    r.sourceStep[0] = r.sourceStep[1] * c.dim1;
    r.targetStep[2] = piece * unit;
    r.targetStep[1] = r.targetStep[2] * c.middle;
    r.targetStep[0] = r.targetStep[1] * c.dim1 * n;
    r.sourceOffset = receiver * piece * unit;
    r.targetOffset = from * c.dim1 * r.targetStep[1];
    return r;
  }
  r.bytes = c.dim1 * unit; // [outer, dim0, middle, dim1, inner]
  r.count = {c.outer, piece, c.middle};
  r.sourceStep[2] = c.dim1 * unit;
  r.sourceStep[1] = r.sourceStep[2] * c.middle;
  r.sourceStep[0] = r.sourceStep[1] * c.dim0;
  r.targetStep[2] = n * c.dim1 * unit;
  r.targetStep[1] = r.targetStep[2] * c.middle;
  r.targetStep[0] = r.targetStep[1] * piece;
  r.sourceOffset = receiver * piece * r.sourceStep[1];
  r.targetOffset = from * c.dim1 * unit;
  return r;
}

/// Who sends input block `block` to members[receiver]: the receiver itself when
/// it has it, else one of the holders, spread so that no one serves all.
static int64_t holderOf(const CommPlan &plan, int64_t block, int64_t receiver) {
  if (plan.members[receiver].sourceIndex == block)
    return receiver;
  std::vector<int64_t> holders;
  for (size_t i = 0; i < plan.members.size(); ++i)
    if (plan.members[i].sourceIndex == block)
      holders.push_back(int64_t(i));
  return holders.empty() ? -1 : holders[receiver % int64_t(holders.size())];
}

/// One run of a realign: `count` output indices from `target` on, read from
/// `source` on in steps of the stride.
struct Run {
  int64_t block, source, target, count;
};

static std::vector<Run> realignRuns(const CleaveComm &c, int64_t outBlock) {
  std::vector<Run> runs;
  int64_t begin = outBlock * c.dim1;
  int64_t end = std::min(c.outSize, begin + c.dim1);
  for (int64_t j = begin; j < end;) {
    int64_t g = c.offset + j * c.stride;
    if (g < 0 || g >= c.inSize) {
      ++j;
      continue;
    }
    int64_t block = g / c.dim0, first = block * c.dim0;
    int64_t last = std::min(c.inSize, first + c.dim0) - 1;
    int64_t steps = end - 1 - j; // how many more indices stay in the block
    if (c.stride > 0)
      steps = std::min(steps, (last - g) / c.stride);
    else if (c.stride < 0)
      steps = std::min(steps, (g - first) / -c.stride);
    runs.push_back({block, g - first, j - begin, steps + 1});
    j += steps + 1;
  }
  return runs;
}

static Region runRegion(const CommPlan &plan, const Run &run) {
  const CleaveComm &c = *plan.comm;
  int64_t unit = c.inner * plan.elementBytes;
  Region r;
  r.count[0] = c.outer;
  r.sourceStep[0] = c.dim0 * unit;
  r.targetStep[0] = c.dim1 * unit;
  r.sourceOffset = run.source * unit;
  r.targetOffset = run.target * unit;
  bool dense = c.stride == 1;
  r.bytes = dense ? run.count * unit : unit;
  r.count[1] = dense ? 1 : run.count;
  r.sourceStep[1] = c.stride * unit;
  r.targetStep[1] = unit;
  return r;
}

/// Calls take(from, region) for each piece that members[receiver] takes.
template <typename Take>
static void forEachPull(const CommPlan &plan, int64_t receiver, Take take) {
  const CleaveComm &c = *plan.comm;
  int64_t n = int64_t(plan.members.size());
  switch (c.kind) {
  case CLEAVE_ALL_GATHER:
    for (int64_t from = 0; from < n; ++from)
      take(from, gatherRegion(plan, from));
    break;
  case CLEAVE_REDUCE_SCATTER:
    for (int64_t from = 0; from < n; ++from)
      take(from, scatterRegion(plan, receiver));
    break;
  case CLEAVE_ALL_TO_ALL:
    for (int64_t from = 0; from < n; ++from)
      take(from, allToAllRegion(plan, from, receiver));
    break;
  case CLEAVE_PERMUTE:
    for (int64_t from = 0; from < n; ++from)
      if (plan.members[from].sourceIndex == plan.members[receiver].axesIndex) {
        Region r;
        r.bytes = plan.inBytes;
        take(from, r);
      }
    break;
  case CLEAVE_REALIGN:
    for (const Run &run : realignRuns(c, plan.members[receiver].axesIndex))
      take(holderOf(plan, run.block, receiver), runRegion(plan, run));
    break;
  default:
    break;
  }
}

//===----------------------------------------------------------------------===//
// Checks and sizes
//===----------------------------------------------------------------------===//

static Status checkFields(const CleaveComm &c, int64_t n) {
  if (c.kind > CLEAVE_RECV || c.dtype >= kNumDtypes)
    return internalError("kind ", c.kind, " with dtype ", c.dtype,
                         " is no communication");
  if (c.outer < 0 || c.dim0 < 0 || c.middle < 0 || c.dim1 < 0 || c.inner < 0)
    return internalError("a size is negative");
  bool splits = c.kind == CLEAVE_REDUCE_SCATTER || c.kind == CLEAVE_ALL_TO_ALL;
  if (splits && c.dim0 % n != 0)
    return internalError("dim of size ", c.dim0, " is split over ", n,
                         " ranks");
  if (c.kind == CLEAVE_PERMUTE && numBlocks(c.source) != n)
    return internalError("source has ", numBlocks(c.source),
                         " blocks, the group ", n, " ranks");
  if (c.kind == CLEAVE_REALIGN && ((c.dim0 == 0 && c.inSize > 0) ||
                                   c.inSize > c.dim0 * numBlocks(c.source) ||
                                   c.outSize > c.dim1 * numBlocks(c.axes)))
    return internalError("the blocks do not cover the dim");
  return Status();
}

static void setSizes(CommPlan &plan) {
  const CleaveComm &c = *plan.comm;
  int64_t n = int64_t(plan.members.size());
  int64_t slab = c.outer * c.inner * plan.elementBytes;
  int64_t flat = c.dim0 * plan.elementBytes;
  switch (c.kind) {
  case CLEAVE_ALL_REDUCE:
  case CLEAVE_PERMUTE:
    plan.inBytes = plan.outBytes = flat;
    break;
  case CLEAVE_ALL_GATHER:
    plan.inBytes = slab * c.dim0;
    plan.outBytes = plan.inBytes * n;
    break;
  case CLEAVE_REDUCE_SCATTER:
    plan.inBytes = slab * c.dim0;
    plan.outBytes = plan.inBytes / n;
    break;
  case CLEAVE_ALL_TO_ALL:
    plan.inBytes = plan.outBytes = slab * c.dim0 * c.middle * c.dim1;
    break;
  case CLEAVE_REALIGN:
    plan.inBytes = slab * c.dim0;
    plan.outBytes = slab * c.dim1;
    break;
  case CLEAVE_SEND:
    plan.inBytes = flat;
    break;
  case CLEAVE_RECV:
    plan.outBytes = flat;
    break;
  }
}

static Status findPeer(const Mesh &mesh, int64_t rank, CommPlan &plan) {
  const CleaveComm &c = *plan.comm;
  if (c.axes.count != 1 || c.axes.refs[0].pre != 1 ||
      c.axes.refs[0].size != mesh.axisSize(c.axes.refs[0].axis))
    return internalError("send and recv need one whole axis");
  int64_t position = mesh.position(rank), axis = c.axes.refs[0].axis;
  int64_t other = mesh.neighbour(position, axis, c.peer);
  if (other < 0 || other == position)
    return internalError("rank ", rank, " at coordinate ",
                         mesh.coordinate(position, axis),
                         " has no peer at distance ", c.peer);
  plan.peer = mesh.rank(other);
  return Status();
}

Status planComm(const Mesh &mesh, int64_t rank, const CleaveComm &comm,
                CommPlan *plan) {
  CLEAVE_RETURN_IF_ERROR(mesh.check(comm.axes).within(describe(comm)));
  CLEAVE_RETURN_IF_ERROR(mesh.check(comm.source).within(describe(comm)));
  plan->comm = &comm;
  findMembers(mesh, rank, *plan);
  int64_t n = int64_t(plan->members.size());
  CLEAVE_RETURN_IF_ERROR(checkFields(comm, n).within(describe(comm)));
  plan->elementBytes = dtypeBytes(comm.dtype);
  setSizes(*plan);
  if (comm.kind == CLEAVE_SEND || comm.kind == CLEAVE_RECV)
    return findPeer(mesh, rank, *plan).within(describe(comm));
  if (comm.kind == CLEAVE_ALL_REDUCE || comm.kind == CLEAVE_REDUCE_SCATTER) {
    plan->reduce = reduceKernel(comm.dtype, comm.reduction);
    if (!plan->reduce)
      return internalError(describe(comm), ": ", reductionName(comm.reduction),
                           " has no meaning for ", dtypeName(comm.dtype));
  }
  for (int64_t receiver = 0; receiver < n; ++receiver)
    forEachPull(*plan, receiver, [&](int64_t from, const Region &region) {
      if (region.totalBytes() == 0)
        return;
      if (receiver == plan->self)
        plan->pulls.push_back({from, region});
      if (from == plan->self)
        plan->pushes.push_back({receiver, region});
    });
  return Status();
}

//===----------------------------------------------------------------------===//
// Regions
//===----------------------------------------------------------------------===//

template <int64_t kBytes>
static void copyRows(char *target, int64_t targetStep, const char *source,
                     int64_t sourceStep, int64_t rows) {
  for (int64_t i = 0; i < rows; ++i)
    std::memcpy(target + i * targetStep, source + i * sourceStep, kBytes);
}

static void copyRows(char *target, int64_t targetStep, const char *source,
                     int64_t sourceStep, int64_t rows, int64_t bytes,
                     bool streams) {
  constexpr int64_t kLongRow = 4096;
  if (streams && bytes >= kLongRow) {
    for (int64_t i = 0; i < rows; ++i)
      copyStreaming(target + i * targetStep, source + i * sourceStep,
                    size_t(bytes));
    return;
  }
  switch (bytes) { // a call of memcpy would cost more than these copies
  case 1:
    return copyRows<1>(target, targetStep, source, sourceStep, rows);
  case 2:
    return copyRows<2>(target, targetStep, source, sourceStep, rows);
  case 4:
    return copyRows<4>(target, targetStep, source, sourceStep, rows);
  case 8:
    return copyRows<8>(target, targetStep, source, sourceStep, rows);
  case 16:
    return copyRows<16>(target, targetStep, source, sourceStep, rows);
  case 32:
    return copyRows<32>(target, targetStep, source, sourceStep, rows);
  default:
    for (int64_t i = 0; i < rows; ++i)
      std::memcpy(target + i * targetStep, source + i * sourceStep,
                  size_t(bytes));
  }
}

/// Steps in `packed` that hold the rows of a region without gaps.
static std::array<int64_t, 3> denseSteps(const Region &r) {
  return {r.bytes * r.count[2] * r.count[1], r.bytes * r.count[2], r.bytes};
}

static void copyNested(const Region &r, char *target,
                       const std::array<int64_t, 3> &targetStep,
                       const char *source,
                       const std::array<int64_t, 3> &sourceStep,
                       bool streams = false) {
  // The innermost loop that does something runs in copyRows.
  int last = r.count[2] > 1 ? 2 : r.count[1] > 1 ? 1 : 0;
  std::array<int64_t, 3> count = r.count;
  int64_t rows = count[last];
  count[last] = 1;
  for (int64_t i = 0; i < count[0]; ++i)
    for (int64_t j = 0; j < count[1]; ++j)
      copyRows(target + i * targetStep[0] + j * targetStep[1], targetStep[last],
               source + i * sourceStep[0] + j * sourceStep[1], sourceStep[last],
               rows, r.bytes, streams);
}

void copyRegion(const Region &r, char *target, const char *source,
                bool streams) {
  copyNested(r, target + r.targetOffset, r.targetStep, source + r.sourceOffset,
             r.sourceStep, streams);
}

void packRegion(const Region &r, char *packed, const char *source) {
  copyNested(r, packed, denseSteps(r), source + r.sourceOffset, r.sourceStep);
}

void unpackRegion(const Region &r, char *target, const char *packed) {
  copyNested(r, target + r.targetOffset, r.targetStep, packed, denseSteps(r));
}

int64_t sentBytes(const CommPlan &plan) {
  int64_t n = int64_t(plan.members.size());
  auto shareOf = [n](int64_t bytes) { return ((n - 1) * bytes + n - 1) / n; };
  switch (plan.comm->kind) {
  case CLEAVE_ALL_REDUCE:
    return 2 * shareOf(plan.inBytes);
  case CLEAVE_ALL_GATHER:
    return shareOf(plan.outBytes);
  case CLEAVE_REDUCE_SCATTER:
  case CLEAVE_ALL_TO_ALL:
    return shareOf(plan.inBytes);
  case CLEAVE_SEND:
    return plan.inBytes;
  case CLEAVE_RECV:
    return 0;
  default: { // permute, realign: what the others take
    int64_t bytes = 0;
    for (const Pull &push : plan.pushes)
      bytes += push.member == plan.self ? 0 : push.region.totalBytes();
    return bytes;
  }
  }
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

std::string describe(const CleaveComm &comm) {
  std::string text = comm.name ? comm.name : "a communication";
  if (comm.cause && *comm.cause)
    text += concat(" in ", comm.cause);
  return text;
}

static const char *kindName(uint32_t kind) {
  static constexpr const char *names[] = {
      "all_reduce", "all_gather", "reduce_scatter", "all_to_all",
      "permute",    "realign",    "send",           "recv"};
  return kind < 8 ? names[kind] : "unknown";
}

std::string signatureText(const CleaveComm &c) {
  int64_t count = c.dim0;
  if (c.kind == CLEAVE_ALL_GATHER || c.kind == CLEAVE_REDUCE_SCATTER ||
      c.kind == CLEAVE_REALIGN)
    count = c.outer * c.dim0 * c.inner;
  if (c.kind == CLEAVE_ALL_TO_ALL)
    count = c.outer * c.dim0 * c.middle * c.dim1 * c.inner;
  std::string text =
      concat(kindName(c.kind), " of ", count, " ", dtypeName(c.dtype));
  if (c.kind == CLEAVE_ALL_REDUCE || c.kind == CLEAVE_REDUCE_SCATTER)
    text += concat(", ", reductionName(c.reduction));
  return text;
}

static bool sameAxes(const CleaveAxes &a, const CleaveAxes &b) {
  if (a.count != b.count)
    return false;
  for (int64_t i = 0; i < a.count; ++i)
    if (a.refs[i].axis != b.refs[i].axis || a.refs[i].pre != b.refs[i].pre ||
        a.refs[i].size != b.refs[i].size)
      return false;
  return true;
}

bool sameSignature(const CleaveComm &a, const CleaveComm &b) {
  bool pair = (a.kind == CLEAVE_SEND && b.kind == CLEAVE_RECV) ||
              (a.kind == CLEAVE_RECV && b.kind == CLEAVE_SEND);
  if (pair)
    return a.dtype == b.dtype && a.dim0 == b.dim0 && sameAxes(a.axes, b.axes);
  bool reduces = a.kind == CLEAVE_ALL_REDUCE || a.kind == CLEAVE_REDUCE_SCATTER;
  bool flat = a.kind == CLEAVE_ALL_REDUCE || a.kind == CLEAVE_PERMUTE;
  if (a.kind != b.kind || a.dtype != b.dtype || a.dim0 != b.dim0 ||
      (reduces && a.reduction != b.reduction) || !sameAxes(a.axes, b.axes) ||
      !sameAxes(a.source, b.source))
    return false;
  if (flat)
    return true;
  if (a.outer != b.outer || a.inner != b.inner)
    return false;
  if (a.kind == CLEAVE_ALL_TO_ALL)
    return a.middle == b.middle && a.dim1 == b.dim1 && a.swapped == b.swapped;
  if (a.kind == CLEAVE_REALIGN)
    return a.dim1 == b.dim1 && a.inSize == b.inSize && a.outSize == b.outSize &&
           a.offset == b.offset && a.stride == b.stride;
  return true;
}

} // namespace cleave::rt

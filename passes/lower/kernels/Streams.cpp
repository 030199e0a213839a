//===- Streams.cpp - Groups whose data no cache holds ---------------------===//
// A row is read in its first segment and computed on in the others. While these
// work from the first-level cache, memory would idle: one of them asks for the
// next row. What is written goes around the caches, so that its lines are not
// fetched only to be overwritten, and do not push out what is still needed.
// Sizes are static, so which kernels do this is known when they are built.
//===----------------------------------------------------------------------===//
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/lower/kernels/Rows.h"

using namespace mlir;
using namespace cleave::kernels;

/// More than the last-level caches that one core of today's servers can fill:
/// whoever reads the result finds it in memory anyway.
static constexpr int64_t kStreamedBytes = 64 << 20;
/// A row stays in the second-level cache until its turn comes, beside the row
/// that is computed on.
static constexpr int64_t kLongestRowBytes = 128 << 10;
/// How far a single loop reads ahead: past the page that the hardware's own
/// prefetchers stop at.
static constexpr int64_t kAheadBytes = 2048;

int64_t cleave::kernels::bytesOf(Type element) {
  return element.isIndex()
             ? sizeof(int64_t)
             : llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
}

/// Arguments are what other kernels wrote, and will read.
static bool isArgument(const Access &access) {
  return !access.isScalar() && isa<BlockArgument>(access.root);
}

static int64_t argumentBytes(const Group &group) {
  llvm::SmallDenseSet<Value> roots;
  int64_t bytes = 0;
  for (const Member &member : group.members)
    for (const Access &access : member.nest.accesses) {
      if (!isArgument(access) || !roots.insert(access.root).second)
        continue;
      auto type = cast<MemRefType>(access.root.getType());
      bytes += type.getNumElements() * bytesOf(type.getElementType());
    }
  return bytes;
}

/// The segment that asks for the next row: the one with most work, but for the
/// last where there is another, as that one also writes.
static Segment *chooseSegment(Group &group) {
  SmallVector<std::pair<int64_t, Segment *>> choices;
  for (Segment &segment : llvm::drop_begin(group.segments)) {
    int64_t work = 0;
    for (unsigned i : segment.members) {
      const Member &member = group.members[i];
      if (member.inner.size() == 1 && member.extra.empty())
        work += weight(member.nest);
    }
    if (work)
      choices.push_back({work, &segment});
  }
  if (choices.empty())
    return nullptr;
  if (choices.size() > 1)
    choices.pop_back();
  return llvm::max_element(choices, llvm::less_first())->second;
}

static void readNextRow(Group &group) {
  Segment *segment = chooseSegment(group);
  if (!segment || group.rowSizes.empty())
    return;
  const Member &host = group.members[segment->members.front()];
  int64_t length = host.nest.sizes[host.vectorLoop()];
  llvm::SmallDenseSet<Value> roots;
  for (auto [i, member] : llvm::enumerate(group.members))
    for (unsigned k = 0; k < member.nest.numInputs(); ++k) {
      const Access &access = member.nest.accesses[k];
      int loop = member.vectorLoop();
      if (!isArgument(access) || member.inner.size() != 1 ||
          access.strides[loop] != 1 || member.nest.sizes[loop] != length ||
          length * bytesOf(access.element) > kLongestRowBytes)
        continue;
      int64_t distance = access.strides[member.rows.back()];
      if (distance && roots.insert(access.root).second)
        segment->readAheads.push_back({unsigned(i), k, distance});
    }
}

static void readAheadInLoop(Group &group) {
  Segment &segment = group.segments.front();
  if (segment.members.size() != 1)
    return;
  unsigned i = segment.members.front();
  const Nest &nest = group.members[i].nest;
  int loop = group.members[i].vectorLoop();
  for (unsigned k = 0; loop >= 0 && k < nest.numInputs(); ++k) {
    const Access &access = nest.accesses[k];
    // What stays the same in an outer loop stays in the cache.
    bool streams = isArgument(access) && access.strides[loop] == 1;
    for (auto [stride, size] : llvm::zip_equal(access.strides, nest.sizes))
      streams &= stride != 0 || size == 1;
    if (streams)
      segment.readAheads.push_back(
          {i, k, kAheadBytes / bytesOf(access.element)});
  }
}

void cleave::kernels::planStreams(Group &group) {
  group.streams = argumentBytes(group) >= kStreamedBytes;
  if (!group.streams)
    return;
  if (group.segments.size() > 1)
    readNextRow(group);
  else
    readAheadInLoop(group);
}

bool cleave::kernels::bypassesCaches(const Group &group, const Access &access,
                                     int64_t width) {
  // Only aligned stores can, and parts of a vector would fill no line.
  int64_t bytes = width * bytesOf(access.element);
  if (bytes < kLeastBypassBytes || !isArgument(access) || access.dynamicOffset)
    return false;
  auto isAligned = [&](int64_t elements) {
    return elements * bytesOf(access.element) % bytes == 0;
  };
  if (!isAligned(access.offset) ||
      !llvm::all_of(access.strides,
                    [&](int64_t s) { return s == 1 || isAligned(s); }))
    return false;
  // Whatever is read again, here or by a later member, belongs in the cache.
  for (const Member &member : group.members)
    for (const Access &other : member.nest.accesses)
      if (&other != &access && !other.isScalar() && other.root == access.root)
        return false;
  return true;
}

void cleave::kernels::fenceStreams(func::FuncOp kernel) {
  bool streams = false;
  kernel.walk(
      [&](vector::StoreOp store) { streams |= store.getNontemporal(); });
  if (!streams)
    return;
  // Stores around the caches are ordered by no later store, also not by the
  // one that tells another rank that this result is there.
  Operation *end = kernel.getBody().front().getTerminator();
  OpBuilder b(end);
  LLVM::CallIntrinsicOp::create(
      b, end->getLoc(), b.getStringAttr("llvm.x86.sse.sfence"), ValueRange());
}

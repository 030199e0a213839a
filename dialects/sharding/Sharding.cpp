//===- Sharding.cpp - Meshes, axes and shardings without IR ---------------===//
#include "dialects/sharding/Sharding.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/raw_ostream.h"

namespace cleave {

static constexpr llvm::StringLiteral kReductionNames[] = {
    "sum",    "prod",   "max", "min", "umax", "umin",
    "maxnum", "minnum", "and", "or",  "xor"};

llvm::StringRef reductionName(ReductionKind kind) {
  return kReductionNames[static_cast<unsigned>(kind)];
}

std::optional<ReductionKind> parseReduction(llvm::StringRef name) {
  for (auto [i, known] : llvm::enumerate(kReductionNames))
    if (name == known)
      return static_cast<ReductionKind>(i);
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Mesh
//===----------------------------------------------------------------------===//

int64_t Mesh::numRanks() const {
  int64_t n = 1;
  for (const MeshAxis &axis : axes)
    n *= axis.size;
  return n;
}

std::optional<unsigned> Mesh::findAxis(llvm::StringRef axisName) const {
  for (auto [i, axis] : llvm::enumerate(axes))
    if (axis.name == axisName)
      return i;
  return std::nullopt;
}

llvm::SmallVector<int64_t, 4> Mesh::coordinates(int64_t rank) const {
  int64_t index = rank;
  if (!ranks.empty())
    index = llvm::find(ranks, rank) - ranks.begin();
  llvm::SmallVector<int64_t, 4> result(axes.size());
  for (size_t i = axes.size(); i-- > 0;) {
    result[i] = index % axes[i].size;
    index /= axes[i].size;
  }
  return result;
}

int64_t Mesh::rankAt(llvm::ArrayRef<int64_t> coordinates) const {
  int64_t index = 0;
  for (auto [axis, c] : llvm::zip_equal(axes, coordinates))
    index = index * axis.size + c;
  return ranks.empty() ? index : ranks[index];
}

int64_t Mesh::digit(AxisRef ref, llvm::ArrayRef<int64_t> coordinates) const {
  int64_t right = axes[ref.axis].size / ref.next();
  return (coordinates[ref.axis] / right) % ref.size;
}

int64_t Mesh::linearIndex(llvm::ArrayRef<AxisRef> refs,
                          llvm::ArrayRef<int64_t> coordinates) const {
  int64_t index = 0;
  for (AxisRef ref : refs)
    index = index * ref.size + digit(ref, coordinates);
  return index;
}

//===----------------------------------------------------------------------===//
// Axis lists
//===----------------------------------------------------------------------===//

int64_t axesSize(llvm::ArrayRef<AxisRef> axes) {
  int64_t n = 1;
  for (AxisRef ref : axes)
    n *= ref.size;
  return n;
}

bool overlaps(AxisRef a, AxisRef b) {
  return a.axis == b.axis && a.size > 1 && b.size > 1 &&
         a.pre % b.next() != 0 && b.pre % a.next() != 0;
}

bool overlaps(llvm::ArrayRef<AxisRef> axes, AxisRef b) {
  return llvm::any_of(axes, [&](AxisRef a) { return overlaps(a, b); });
}

AxisList mergeAxes(llvm::ArrayRef<AxisRef> axes) {
  AxisList result;
  for (AxisRef ref : axes) {
    if (!result.empty() && result.back().axis == ref.axis &&
        result.back().next() == ref.pre)
      result.back().size *= ref.size;
    else
      result.push_back(ref);
  }
  return result;
}

AxisList normalizeAxisSet(llvm::ArrayRef<AxisRef> axes) {
  AxisList sorted(axes.begin(), axes.end());
  llvm::sort(sorted);
  return mergeAxes(sorted);
}

/// Splits `ref` at `cut` (a value of pre) if it lies inside and divides.
static bool splitAt(AxisList &list, size_t i, int64_t cut) {
  AxisRef ref = list[i];
  if (cut <= ref.pre || cut >= ref.next() || cut % ref.pre != 0 ||
      ref.next() % cut != 0)
    return false;
  list[i] = {ref.axis, ref.pre, cut / ref.pre};
  list.insert(list.begin() + i + 1, {ref.axis, cut, ref.next() / cut});
  return true;
}

static bool splitAll(AxisList &list, llvm::ArrayRef<AxisRef> cuts) {
  bool changed = false;
  for (AxisRef other : cuts)
    for (size_t i = 0; i < list.size(); ++i) {
      if (list[i].axis != other.axis || !overlaps(list[i], other))
        continue;
      changed |= splitAt(list, i, other.pre);
      if (overlaps(list[i], other))
        changed |= splitAt(list, i, other.next());
    }
  return changed;
}

void alignAxes(AxisList &a, AxisList &b) {
  bool changed = true;
  while (changed) {
    AxisList cuts = b;
    changed = splitAll(a, cuts);
    cuts = a;
    changed |= splitAll(b, cuts);
  }
}

AxisList withoutAxes(AxisList axes, AxisList removed) {
  alignAxes(axes, removed);
  llvm::erase_if(axes,
                 [&](AxisRef ref) { return llvm::is_contained(removed, ref); });
  return mergeAxes(axes);
}

//===----------------------------------------------------------------------===//
// Sharding
//===----------------------------------------------------------------------===//

Sharding Sharding::whole(unsigned rank, bool open) {
  Sharding result;
  result.dims.resize(rank);
  for (DimSharding &dim : result.dims)
    dim.open = open;
  return result;
}

bool Sharding::isFullyReplicated() const {
  return partial.empty() && llvm::all_of(dims, [](const DimSharding &dim) {
           return dim.numShards() == 1;
         });
}

AxisList Sharding::shardedAxes() const {
  AxisList result;
  for (const DimSharding &dim : dims)
    llvm::append_range(result, dim.axes);
  return result;
}

bool Sharding::uses(AxisRef axis) const {
  return overlaps(replicated, axis) || overlaps(partial, axis) ||
         llvm::any_of(dims, [&](const DimSharding &dim) {
           return overlaps(dim.axes, axis);
         });
}

static AxisList dropUnit(llvm::ArrayRef<AxisRef> axes) {
  AxisList result;
  llvm::copy_if(axes, std::back_inserter(result),
                [](AxisRef ref) { return ref.size > 1; });
  return mergeAxes(result);
}

bool Sharding::sameLayout(const Sharding &other) const {
  if (dims.size() != other.dims.size())
    return false;
  for (auto [a, b] : llvm::zip(dims, other.dims))
    if (dropUnit(a.axes) != dropUnit(b.axes))
      return false;
  AxisList mine = dropUnit(normalizeAxisSet(partial));
  AxisList theirs = dropUnit(normalizeAxisSet(other.partial));
  return mine == theirs && (mine.empty() || kind == other.kind);
}

llvm::SmallVector<int64_t, 4> localShape(llvm::ArrayRef<int64_t> shape,
                                         const Sharding &sharding) {
  llvm::SmallVector<int64_t, 4> result;
  for (auto [size, dim] : llvm::zip_equal(shape, sharding.dims))
    result.push_back(blockSize(size, dim));
  return result;
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

void print(llvm::raw_ostream &os, const Mesh &mesh, AxisRef ref) {
  os << '"' << mesh.axes[ref.axis].name << '"';
  if (ref.pre != 1 || ref.size != mesh.axes[ref.axis].size)
    os << ":(" << ref.pre << ')' << ref.size;
}

void print(llvm::raw_ostream &os, const Mesh &mesh,
           llvm::ArrayRef<AxisRef> axes) {
  llvm::interleave(
      axes, [&](AxisRef ref) { print(os, mesh, ref); }, [&] { os << ", "; });
}

static void print(llvm::raw_ostream &os, const Mesh &mesh,
                  const DimSharding &dim) {
  os << '{';
  print(os, mesh, dim.axes);
  if (dim.open)
    os << (dim.axes.empty() ? "?" : ", ?");
  os << '}';
  if (dim.priority)
    os << 'p' << *dim.priority;
}

void print(llvm::raw_ostream &os, const Mesh &mesh, const Sharding &sharding) {
  os << '[';
  llvm::interleave(
      sharding.dims, [&](const DimSharding &dim) { print(os, mesh, dim); },
      [&] { os << ", "; });
  os << ']';
  if (!sharding.replicated.empty()) {
    os << ", replicated={";
    print(os, mesh, sharding.replicated);
    os << '}';
  }
  if (!sharding.partial.empty()) {
    os << ", partial=" << reductionName(sharding.kind) << '{';
    print(os, mesh, sharding.partial);
    os << '}';
  }
}

std::string toString(const Mesh &mesh, const Sharding &sharding) {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(os, mesh, sharding);
  return text;
}

std::string toString(const Mesh &mesh, llvm::ArrayRef<AxisRef> axes) {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(os, mesh, axes);
  return text;
}

} // namespace cleave

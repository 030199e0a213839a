//===- RowGroups.cpp - Which nests share their outer loops ----------------===//
// Two nests may run row by row if every buffer that one of them writes and the
// other touches is cut into the same rows by both. Rows are parallel loops; a
// nest that finds no partner for a row of the group takes the row away from
// the group, or starts the next one when none would be left.
//===----------------------------------------------------------------------===//
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "passes/lower/kernels/Rows.h"

using namespace mlir;
using namespace cleave::kernels;

static bool isOutput(const Nest &nest, unsigned operand) {
  return operand >= nest.numInputs();
}

/// Calls `visit` for each pair of accesses that conflict.
static bool allConflicts(const Nest &a, const Nest &b,
                         llvm::function_ref<bool(unsigned, unsigned)> visit) {
  for (auto [i, x] : llvm::enumerate(a.accesses))
    for (auto [j, y] : llvm::enumerate(b.accesses)) {
      if (x.isScalar() || y.isScalar() || x.root != y.root ||
          (!isOutput(a, i) && !isOutput(b, j)))
        continue;
      if (!visit(i, j))
        return false;
    }
  return true;
}

/// A gather in the body reads a buffer without an access of the nest.
static bool gathersFrom(const Nest &nest, Value root) {
  bool found = false;
  nest.body().walk(
      [&](memref::LoadOp load) { found |= rootOf(load.getMemRef()) == root; });
  return found;
}

static bool gatherConflict(const Nest &a, const Nest &b) {
  for (auto [i, x] : llvm::enumerate(a.accesses))
    if (isOutput(a, i) && gathersFrom(b, x.root))
      return true;
  for (auto [i, x] : llvm::enumerate(b.accesses))
    if (isOutput(b, i) && gathersFrom(a, x.root))
      return true;
  return false;
}

/// How badly vectors along `loop` load and store.
static int64_t cost(const Nest &nest, int loop) {
  int64_t cost = 0;
  for (auto [i, access] : llvm::enumerate(nest.accesses)) {
    int64_t stride = access.strides[loop];
    bool isWrite = isOutput(nest, i);
    if (stride != 0 && stride != 1)
      cost += isWrite ? 12 : 8;
    else if (stride == 0 && isWrite && nest.parallel[loop])
      cost += 12;
    else if (stride == 1)
      cost -= 1;
  }
  return cost;
}

/// Whether every output is joined by an op that vectors can use, into one
/// element for all iterations of the reduction loops.
static bool hasCombiners(const Nest &nest) {
  for (unsigned i = 0, e = nest.fills.size(); i < e; ++i) {
    if (!nest.combiner(i))
      return false;
    const Access &access = nest.accesses[nest.numInputs() + i];
    for (auto [stride, isParallel] :
         llvm::zip_equal(access.strides, nest.parallel))
      if (!isParallel && stride != 0)
        return false;
  }
  return true;
}

/// Orders the loops that are no rows: the best for vectors last.
static void orderInner(Member &member) {
  const Nest &nest = member.nest;
  SmallVector<int> inner;
  for (int d = 0, e = nest.sizes.size(); d < e; ++d)
    if (!llvm::is_contained(member.rows, d))
      inner.push_back(d);
  member.extra.clear();
  member.inner = inner;
  if (inner.empty())
    return;
  bool mayReduce = hasCombiners(nest);
  auto better = [&](int a, int b) {
    // A reduction that vectors cannot do, and then a loop of a few iterations,
    // are the last to be taken.
    auto rank = [&](int d) {
      return 2 * (!nest.parallel[d] && !mayReduce) + (nest.sizes[d] < 4);
    };
    if (rank(a) != rank(b))
      return rank(a) < rank(b);
    int64_t costA = cost(nest, a), costB = cost(nest, b);
    return costA != costB ? costA < costB : a > b;
  };
  // A combiner that isn't known keeps its order: of the reduction loops only
  // the last one may be innermost.
  bool ordered = !hasCombiners(nest);
  auto mayBeInnermost = [&](int d) {
    return !ordered || nest.parallel[d] || llvm::none_of(inner, [&](int e) {
      return !nest.parallel[e] && e > d;
    });
  };
  int best = -1;
  for (int d : inner)
    if (mayBeInnermost(d) && (best < 0 || better(d, best)))
      best = d;
  llvm::erase(inner, best);
  member.inner.clear();
  if (!nest.parallel[best] && mayReduce) {
    // Accumulators stay in registers over all the reduction loops.
    for (int d : inner)
      (nest.parallel[d] ? member.extra : member.inner).push_back(d);
  } else {
    // Results go through memory. Streaming whole rows is best with the
    // reduction loops outside.
    llvm::sort(inner, [&](int a, int b) {
      if (nest.parallel[a] == nest.parallel[b])
        return a < b;
      return bool(nest.parallel[b]);
    });
    member.inner = inner;
  }
  member.inner.push_back(best);
}

bool Member::reducesAll() const {
  return !inner.empty() && hasCombiners(nest) &&
         llvm::none_of(inner, [&](int d) { return nest.parallel[d]; });
}

bool Member::isPointwise() const {
  return llvm::all_of(inner, [&](int d) { return nest.parallel[d]; });
}

/// Whether rows with `strides` in `access` are disjoint pieces of the buffer.
static bool rowsAreDisjoint(const Nest &nest, const Access &access,
                            ArrayRef<int> rows) {
  int64_t extent = 0;
  SmallVector<std::pair<int64_t, int64_t>> steps; // stride, size
  for (int d = 0, e = nest.sizes.size(); d < e; ++d) {
    if (!llvm::is_contained(rows, d))
      extent += (nest.sizes[d] - 1) * std::abs(access.strides[d]);
    else if (nest.sizes[d] > 1)
      steps.push_back({access.strides[d], nest.sizes[d]});
  }
  llvm::sort(steps);
  for (auto [stride, size] : steps) {
    if (stride <= extent)
      return false;
    extent += stride * (size - 1);
  }
  return true;
}

/// The rows of `group` that `nest` shares, as its loops; -1 where it does not.
static SmallVector<int> matchRows(const Group &group, const Nest &nest) {
  SmallVector<int> result;
  SmallVector<bool> used(nest.sizes.size(), false);
  for (unsigned r = 0; r < group.rowSizes.size(); ++r) {
    int found = -1;
    for (int d = 0, e = nest.sizes.size(); d < e && found < 0; ++d) {
      if (used[d] || !nest.parallel[d] || nest.sizes[d] != group.rowSizes[r])
        continue;
      bool fits = true;
      for (const Member &member : group.members)
        fits &= allConflicts(member.nest, nest, [&](unsigned i, unsigned j) {
          return member.nest.accesses[i].strides[member.rows[r]] ==
                 nest.accesses[j].strides[d];
        });
      if (fits)
        found = d;
    }
    if (found >= 0)
      used[found] = true;
    result.push_back(found);
  }
  return result;
}

static bool conflicts(const Nest &a, const Nest &b) {
  return !allConflicts(a, b, [](unsigned, unsigned) { return false; });
}

/// Adds `nest` to `group` if they can share rows.
static bool tryJoin(Group &group, const Nest &nest) {
  if (group.rowSizes.empty())
    return false;
  bool related = false;
  for (const Member &member : group.members) {
    if (gatherConflict(member.nest, nest))
      return false;
    related |= conflicts(member.nest, nest);
  }
  if (!related)
    return false;
  SmallVector<int> match = matchRows(group, nest);
  SmallVector<unsigned> kept;
  for (unsigned r = 0; r < match.size(); ++r)
    if (match[r] >= 0)
      kept.push_back(r);
  if (kept.empty())
    return false;
  auto keep = [&](ArrayRef<int> rows) {
    SmallVector<int> result;
    for (unsigned r : kept)
      result.push_back(rows[r]);
    return result;
  };
  SmallVector<int> nestRows = keep(match);
  for (const Member &member : group.members) {
    SmallVector<int> rows = keep(member.rows);
    bool fits = allConflicts(member.nest, nest, [&](unsigned i, unsigned j) {
      const Access &x = member.nest.accesses[i], &y = nest.accesses[j];
      return x.offset == y.offset && !x.dynamicOffset && !y.dynamicOffset &&
             rowsAreDisjoint(member.nest, x, rows) &&
             rowsAreDisjoint(nest, y, nestRows);
    });
    if (!fits)
      return false;
  }
  // The group's own members must still be cut apart by fewer rows.
  for (unsigned i = 0; i < group.members.size(); ++i)
    for (unsigned k = i + 1; k < group.members.size(); ++k) {
      const Member &a = group.members[i], &c = group.members[k];
      if (!allConflicts(a.nest, c.nest, [&](unsigned x, unsigned y) {
            return rowsAreDisjoint(a.nest, a.nest.accesses[x], keep(a.rows)) &&
                   rowsAreDisjoint(c.nest, c.nest.accesses[y], keep(c.rows));
          }))
        return false;
    }
  SmallVector<int64_t> sizes;
  for (unsigned r : kept)
    sizes.push_back(group.rowSizes[r]);
  group.rowSizes = sizes;
  for (Member &member : group.members)
    member.rows = keep(member.rows);
  group.members.push_back({nest, nestRows, {}, {}});
  return true;
}

/// Whether `member` may run in the same inner loops as those of `segment`.
static bool fitsSegment(const Group &group, const Segment &segment,
                        const Member &member) {
  bool pointwise = member.isPointwise();
  if ((!pointwise && !member.reducesAll()) || !member.extra.empty())
    return false;
  for (unsigned index : segment.members) {
    const Member &other = group.members[index];
    bool otherPointwise = other.isPointwise();
    if ((!otherPointwise && !other.reducesAll()) || !other.extra.empty() ||
        member.inner.size() != other.inner.size())
      return false;
    for (auto [d, e] : llvm::zip_equal(member.inner, other.inner))
      if (member.nest.sizes[d] != other.nest.sizes[e])
        return false;
    if (gatherConflict(other.nest, member.nest))
      return false;
    bool fits =
        allConflicts(other.nest, member.nest, [&](unsigned i, unsigned j) {
          // A reduction is known only after the loops.
          if ((isOutput(other.nest, i) && !otherPointwise) ||
              (isOutput(member.nest, j) && !pointwise))
            return false;
          const Access &x = other.nest.accesses[i];
          const Access &y = member.nest.accesses[j];
          if (x.offset != y.offset || x.dynamicOffset || y.dynamicOffset)
            return false;
          for (auto [d, e] : llvm::zip_equal(other.inner, member.inner))
            if (other.nest.sizes[d] > 1 &&
                (x.strides[d] != y.strides[e] || x.strides[d] == 0))
              return false;
          for (auto [d, e] : llvm::zip_equal(other.rows, member.rows))
            if (other.nest.sizes[d] > 1 && x.strides[d] != y.strides[e])
              return false;
          return true;
        });
    if (!fits)
      return false;
  }
  return true;
}

static void formSegments(Group &group) {
  for (Member &member : group.members)
    orderInner(member);
  group.segments.clear();
  for (auto [i, member] : llvm::enumerate(group.members)) {
    if (group.segments.empty() ||
        !fitsSegment(group, group.segments.back(), member))
      group.segments.emplace_back();
    group.segments.back().members.push_back(i);
  }
}

/// Starts a group: its rows are the parallel loops that vectors do not take.
static Group startGroup(const Nest &nest) {
  Group group;
  Member member{nest, {}, {}, {}};
  orderInner(member);
  for (int d = 0, e = nest.sizes.size(); d < e; ++d)
    if (nest.parallel[d] && d != member.vectorLoop()) {
      member.rows.push_back(d);
      group.rowSizes.push_back(nest.sizes[d]);
    }
  group.members.push_back(std::move(member));
  return group;
}

/// A segment of element-wise nests needs no rows: all loops may merge.
static void dropRows(Group &group) {
  if (group.segments.size() != 1)
    return;
  for (Member &member : group.members)
    if (member.nest.hasReduction())
      return;
  Group flat = group;
  flat.rowSizes.clear();
  for (Member &member : flat.members)
    member.rows.clear();
  formSegments(flat);
  if (flat.segments.size() == 1)
    group = flat;
}

/// Merges inner loops a, b into one where every access walks them as one.
static bool mergeInner(Group &group, Segment &segment, unsigned at) {
  for (unsigned index : segment.members) {
    Member &member = group.members[index];
    int outer = member.inner[at], inner = member.inner[at + 1];
    Nest &nest = member.nest;
    if (nest.parallel[outer] != nest.parallel[inner] || nest.indexed[outer] ||
        nest.indexed[inner])
      return false;
    for (const Access &access : nest.accesses)
      if (!access.isScalar() &&
          access.strides[outer] != access.strides[inner] * nest.sizes[inner])
        return false;
  }
  for (unsigned index : segment.members) {
    Member &member = group.members[index];
    int outer = member.inner[at], inner = member.inner[at + 1];
    member.nest.sizes[inner] *= member.nest.sizes[outer];
    member.nest.sizes[outer] = 1;
    member.inner.erase(member.inner.begin() + at);
  }
  return true;
}

static void mergeLoops(Group &group) {
  for (Segment &segment : group.segments) {
    // A loop of one iteration is none.
    Member &first = group.members[segment.members.front()];
    for (int at = int(first.inner.size()) - 2; at >= 0; --at)
      if (llvm::all_of(segment.members, [&](unsigned index) {
            Member &m = group.members[index];
            return m.nest.sizes[m.inner[at]] == 1;
          })) {
        for (unsigned index : segment.members) {
          Member &m = group.members[index];
          m.inner.erase(m.inner.begin() + at);
        }
      }
    for (int at = int(first.inner.size()) - 2; at >= 0; --at)
      mergeInner(group, segment, at);
  }
}

std::vector<Group> cleave::kernels::formGroups(std::vector<Nest> nests) {
  std::vector<Group> groups;
  for (Nest &nest : nests)
    if (groups.empty() || !tryJoin(groups.back(), nest))
      groups.push_back(startGroup(nest));
  for (Group &group : groups) {
    formSegments(group);
    dropRows(group);
    mergeLoops(group);
  }
  return groups;
}

void cleave::kernels::shrinkTemporaries(Group &group, OpBuilder &b) {
  if (group.rowSizes.empty())
    return;
  llvm::SmallPtrSet<Operation *, 8> ops;
  for (Member &member : group.members)
    ops.insert(member.nest.op);
  llvm::MapVector<Value, Access *> candidates;
  for (Member &member : group.members)
    for (Access &access : member.nest.accesses) {
      auto alloc = access.isScalar()
                       ? memref::AllocOp()
                       : access.root.getDefiningOp<memref::AllocOp>();
      if (alloc && access.buffer == access.root &&
          llvm::all_of(alloc->getUsers(),
                       [&](Operation *user) { return ops.contains(user); }))
        candidates[access.root] = &access;
    }
  for (auto &[root, any] : candidates) {
    int64_t extent = 1;
    bool fits = true;
    for (Member &member : group.members)
      for (Access &access : member.nest.accesses) {
        if (access.root != root)
          continue;
        fits &= rowsAreDisjoint(member.nest, access, member.rows) &&
                access.buffer == root;
        int64_t length = 1 + access.offset;
        for (int d = 0, e = member.nest.sizes.size(); d < e; ++d)
          if (!llvm::is_contained(member.rows, d))
            length += (member.nest.sizes[d] - 1) * access.strides[d];
        extent = std::max(extent, length);
      }
    if (!fits)
      continue;
    auto alloc = root.getDefiningOp<memref::AllocOp>();
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(alloc);
    Value row = memref::AllocOp::create(
        b, alloc.getLoc(),
        MemRefType::get({extent}, alloc.getType().getElementType()),
        alloc.getAlignmentAttr());
    for (Member &member : group.members)
      for (Access &access : member.nest.accesses)
        if (access.root == root) {
          access.buffer = access.root = row;
          for (int d : member.rows)
            access.strides[d] = 0;
        }
  }
}

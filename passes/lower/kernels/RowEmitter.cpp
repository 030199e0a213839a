//===- RowEmitter.cpp - Code of row groups --------------------------------===//
// For each row, each segment is one loop nest whose last loop takes several
// vectors at a time, then single vectors, then vectors of falling powers of
// two: sizes are static, so no masks are needed. Reductions keep that many
// vectors of partial results, joined in a fixed tree: the order of a sum is
// not the source's, but it is the same in every run.
//===----------------------------------------------------------------------===//
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "passes/lower/kernels/Rows.h"

using namespace mlir;
using namespace cleave::kernels;

namespace {
/// Partial results of one output of a reduction.
struct Partial {
  unsigned member, output;
  Combiner combiner;
  Type type;                  // of accumulation
  SmallVector<Value> vectors; // one per unrolled vector
  Value scalar;               // from pieces shorter than a vector
};

class SegmentEmitter {
public:
  SegmentEmitter(Group &group, Segment &segment, const CpuIsa &cpu,
                 NestEmitter &e, ArrayRef<Value> rowIvs,
                 ArrayRef<Value> extraIvs)
      : group(group), segment(segment), cpu(cpu), e(e), rowIvs(rowIvs),
        extraIvs(extraIvs) {}

  void emit();

private:
  Member &at(unsigned i) { return group.members[segment.members[i]]; }
  unsigned size() const { return segment.members.size(); }
  void choosePlan();
  void preload();
  void startPartials();
  void outerLoops(unsigned depth, SmallVector<Value> &innerIvs);
  void vectorLoop(ArrayRef<Value> innerIvs);
  void piece(ArrayRef<Value> innerIvs, Value position, int64_t width,
             unsigned slot);
  void finishPartials();
  SmallVector<Value> ivsOf(const Member &member, ArrayRef<Value> innerIvs,
                           Value position);
  SmallVector<Value> carried();
  void setCarried(ValueRange values);
  Value argument(unsigned i, unsigned operand, ArrayRef<Value> ivs,
                 int64_t width);
  bool storedForLater(unsigned i, unsigned operand);
  void readAhead(ArrayRef<Value> innerIvs, Value position, int64_t step);
  void reduce(Partial &partial, Value term, int64_t width, unsigned slot);

  Group &group;
  Segment &segment;
  const CpuIsa &cpu;
  NestEmitter &e;
  ArrayRef<Value> rowIvs, extraIvs;

  int64_t lanes = 1, unroll = 1, length = 1;
  std::vector<Partial> partials;
  DenseMap<std::pair<unsigned, unsigned>, Value> preloaded;
  // Values of this piece that later members read from a buffer.
  SmallVector<std::pair<Access *, Value>> forwards;
};
} // namespace

int64_t cleave::kernels::weight(const Nest &nest) {
  int64_t sum = 0;
  for (Operation &op : nest.body().without_terminator())
    sum += isa<math::SqrtOp, math::AbsFOp, math::FmaOp>(op) ? 1
           : op.getName().getDialectNamespace() == "math"   ? 12
           : isa<arith::ConstantOp>(op)                     ? 0
                                                            : 1;
  return sum;
}

void SegmentEmitter::choosePlan() {
  int64_t bytes = 1, work = 0;
  bool reduces = false;
  for (unsigned i = 0; i < size(); ++i) {
    Member &member = at(i);
    for (Access &access : member.nest.accesses)
      bytes = std::max(bytes, registerBytes(access.element));
    for (Operation &op : member.nest.body().without_terminator())
      if (!isa<linalg::IndexOp>(op) && op.getNumResults() &&
          !op.getResult(0).getType().isIndex())
        bytes = std::max(bytes, registerBytes(op.getResult(0).getType()));
    work += weight(member.nest);
    reduces |= member.reducesAll();
  }
  lanes = cpu.vectorBytes() / bytes;
  int vector = at(0).vectorLoop();
  for (unsigned i = 0; i < size(); ++i)
    if (!at(i).isPointwise() && !at(i).reducesAll() &&
        !at(i).nest.parallel[at(i).vectorLoop()])
      lanes = 1;
  length = vector < 0 ? 1 : at(0).nest.sizes[vector];
  // Light loops need several vectors in flight to hide latency; heavy ones
  // would spill.
  unroll = reduces ? (work <= 4 ? 8 : 4) : (work <= 8 ? 4 : 2);
  if (work > 24)
    unroll = cpu.numVectors() == 32 ? 4 : 2;
  while (unroll > 1 && unroll * lanes > length)
    unroll /= 2;
}

SmallVector<Value> SegmentEmitter::ivsOf(const Member &member,
                                         ArrayRef<Value> innerIvs,
                                         Value position) {
  // Loops of one iteration, and merged ones, stand at 0.
  SmallVector<Value> ivs(member.nest.sizes.size());
  for (auto [r, d] : llvm::enumerate(member.rows))
    ivs[d] = rowIvs[r];
  for (auto [k, d] : llvm::enumerate(member.extra))
    ivs[d] = extraIvs[k];
  for (unsigned k = 0; k + 1 < member.inner.size(); ++k)
    ivs[member.inner[k]] = innerIvs[k];
  if (member.vectorLoop() >= 0)
    ivs[member.vectorLoop()] = position;
  for (Value &iv : ivs)
    if (!iv)
      iv = e.index(0);
  return ivs;
}

/// Loads what stays the same for the whole row before its loops.
void SegmentEmitter::preload() {
  for (unsigned i = 0; i < size(); ++i) {
    Member &member = at(i);
    for (auto [k, access] : llvm::enumerate(member.nest.accesses)) {
      if (access.isScalar() || k >= member.nest.numInputs() ||
          member.nest.body().getArgument(k).use_empty() ||
          llvm::any_of(member.inner,
                       [&](int d) { return access.strides[d] != 0; }))
        continue;
      bool written = false;
      for (unsigned j = 0; j < size(); ++j)
        for (unsigned o = at(j).nest.numInputs();
             o < at(j).nest.accesses.size(); ++o)
          written |= at(j).nest.accesses[o].root == access.root;
      if (written || member.inner.empty())
        continue;
      SmallVector<Value> zeros(member.inner.size(), e.index(0));
      preloaded[{i, unsigned(k)}] =
          e.load(access, ivsOf(member, zeros, e.index(0)), -1, 1);
    }
  }
}

static Type accumulationType(Operation *combiner, Type type, OpBuilder &b) {
  // Sums of narrow floats accumulate in f32 and round once.
  bool narrow = isa<FloatType>(type) && type.getIntOrFloatBitWidth() < 32;
  return narrow && isa<arith::AddFOp, arith::MulFOp>(combiner)
             ? Type(b.getF32Type())
             : type;
}

/// What a partial result starts with: the neutral element of sums, or the
/// initial value itself where joining it twice changes nothing.
static TypedAttr neutral(Operation *combiner, Type type, OpBuilder &b) {
  if (isa<arith::AddFOp>(combiner))
    return b.getFloatAttr(type, -0.0);
  if (isa<arith::MulFOp>(combiner))
    return b.getFloatAttr(type, 1.0);
  if (isa<arith::AddIOp, arith::XOrIOp>(combiner))
    return b.getIntegerAttr(type, 0);
  if (isa<arith::MulIOp>(combiner))
    return b.getIntegerAttr(type, 1);
  return nullptr;
}

static Value extend(NestEmitter &e, Value value, Type element) {
  Type from = getElementTypeOrSelf(value.getType());
  if (from == element)
    return value;
  Type to = element;
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    to = VectorType::get(vector.getShape(), element);
  return arith::ExtFOp::create(e.b, e.loc, to, value);
}

void SegmentEmitter::startPartials() {
  for (unsigned i = 0; i < size(); ++i) {
    Member &member = at(i);
    if (!member.reducesAll())
      continue;
    for (unsigned o = 0; o < member.nest.fills.size(); ++o) {
      Access &access = member.nest.accesses[member.nest.numInputs() + o];
      Partial partial{i, o, *member.nest.combiner(o), {}, {}, {}};
      partial.type = accumulationType(partial.combiner.op, access.element, e.b);
      Value start;
      if (TypedAttr attr = neutral(partial.combiner.op, partial.type, e.b)) {
        start = arith::ConstantOp::create(e.b, e.loc, attr);
      } else {
        SmallVector<Value> zeros(member.inner.size(), e.index(0));
        start = member.nest.fills[o]
                    ? member.nest.fills[o]
                    : e.load(access, ivsOf(member, zeros, e.index(0)), -1, 1);
      }
      if (length >= lanes && lanes > 1)
        partial.vectors.assign(unroll, e.broadcast(start, lanes));
      if (length % lanes != 0 || lanes == 1)
        partial.scalar = start;
      partials.push_back(partial);
    }
  }
}

SmallVector<Value> SegmentEmitter::carried() {
  SmallVector<Value> values;
  for (Partial &partial : partials) {
    values.append(partial.vectors);
    if (partial.scalar)
      values.push_back(partial.scalar);
  }
  return values;
}

void SegmentEmitter::setCarried(ValueRange values) {
  unsigned next = 0;
  for (Partial &partial : partials) {
    for (Value &v : partial.vectors)
      v = values[next++];
    if (partial.scalar)
      partial.scalar = values[next++];
  }
}

Value SegmentEmitter::argument(unsigned i, unsigned operand,
                               ArrayRef<Value> ivs, int64_t width) {
  Member &member = at(i);
  Access &access = member.nest.accesses[operand];
  if (member.nest.body().getArgument(operand).use_empty())
    return Value();
  if (Value known = preloaded.lookup({i, operand}))
    return known;
  if (operand >= member.nest.numInputs())
    if (Value fill = member.nest.fills[operand - member.nest.numInputs()];
        fill && !member.nest.hasReduction())
      return fill;
  for (auto &[stored, value] : llvm::reverse(forwards))
    if (stored->root == access.root)
      return value;
  return e.load(access, ivs, member.vectorLoop(), width);
}

/// Whether someone outside of this segment reads what is stored here.
bool SegmentEmitter::storedForLater(unsigned i, unsigned operand) {
  Value root = at(i).nest.accesses[operand].root;
  if (!root.getDefiningOp<memref::AllocOp>())
    return true;
  llvm::SmallPtrSet<Operation *, 8> inside;
  for (unsigned j = 0; j < size(); ++j)
    inside.insert(at(j).nest.op);
  for (unsigned s = 0; s < group.members.size(); ++s) {
    if (llvm::is_contained(segment.members, s))
      continue;
    for (Access &access : group.members[s].nest.accesses)
      if (access.root == root)
        return true;
  }
  // A temporary of one row has no users at all yet.
  return llvm::any_of(root.getUsers(),
                      [&](Operation *user) { return !inside.contains(user); });
}

void SegmentEmitter::reduce(Partial &partial, Value term, int64_t width,
                            unsigned slot) {
  term = extend(e, term, partial.type);
  Operation *op = partial.combiner.op;
  if (width == lanes && lanes > 1) {
    Value &acc = partial.vectors[slot];
    acc = e.combine(op, acc, e.broadcast(term, width));
    return;
  }
  if (width > 1)
    term = e.reduceLanes(op, e.broadcast(term, width));
  partial.scalar = e.combine(op, partial.scalar, term);
}

void SegmentEmitter::piece(ArrayRef<Value> innerIvs, Value position,
                           int64_t width, unsigned slot) {
  forwards.clear();
  for (unsigned i = 0; i < size(); ++i) {
    Member &member = at(i);
    SmallVector<Value> ivs = ivsOf(member, innerIvs, position);
    SmallVector<Value> arguments;
    bool reduces = member.reducesAll();
    for (unsigned k = 0; k < member.nest.accesses.size(); ++k)
      arguments.push_back(reduces && k >= member.nest.numInputs()
                              ? Value()
                              : argument(i, k, ivs, width));
    int loop = member.vectorLoop();
    if (reduces) {
      for (Partial &partial : partials)
        if (partial.member == i)
          reduce(partial,
                 e.bodyValue(member.nest, partial.combiner.term, arguments, ivs,
                             loop, width),
                 width, slot);
      continue;
    }
    SmallVector<Value> yields =
        e.body(member.nest, arguments, ivs, loop, width);
    for (auto [o, value] : llvm::enumerate(yields)) {
      unsigned operand = member.nest.numInputs() + o;
      Access &access = member.nest.accesses[operand];
      if (storedForLater(i, operand))
        e.store(value, access, ivs, loop, width,
                group.streams && bypassesCaches(group, access, width));
      forwards.push_back({&access, value});
    }
  }
}

/// Asks for what will be needed later, once per cache line. `step` is how far
/// `position` is from the first of its iteration.
void SegmentEmitter::readAhead(ArrayRef<Value> innerIvs, Value position,
                               int64_t step) {
  for (const ReadAhead &ahead : segment.readAheads) {
    Member &member = group.members[ahead.member];
    Access access = member.nest.accesses[ahead.operand];
    if (step * bytesOf(access.element) % kCacheLineBytes != 0)
      continue;
    access.offset += ahead.distance;
    Value at = e.address(access, ivsOf(member, innerIvs, position));
    memref::PrefetchOp::create(e.b, e.loc, e.flat(access), at,
                               /*isWrite=*/false, /*localityHint=*/3,
                               /*isDataCache=*/true);
  }
}

void SegmentEmitter::vectorLoop(ArrayRef<Value> innerIvs) {
  int64_t step = lanes * unroll;
  int64_t position = 0;
  if (lanes > 1 && length >= step) {
    int64_t end = length / step * step;
    SmallVector<Value> results =
        e.loop(0, end, step, carried(), [&](Value iv, ValueRange values) {
          setCarried(values);
          for (int64_t u = 0; u < unroll; ++u) {
            Value here = u == 0 ? iv
                                : arith::AddIOp::create(e.b, e.loc, iv,
                                                        e.index(u * lanes))
                                      .getResult();
            piece(innerIvs, here, lanes, u);
            readAhead(innerIvs, here, u * lanes);
          }
          return carried();
        });
    setCarried(results);
    position = end;
  }
  if (lanes == 1) {
    SmallVector<Value> results =
        e.loop(0, length, 1, carried(), [&](Value iv, ValueRange values) {
          setCarried(values);
          piece(innerIvs, iv, 1, 0);
          return carried();
        });
    setCarried(results);
    return;
  }
  unsigned slot = 0;
  for (; position + lanes <= length; position += lanes)
    piece(innerIvs, e.index(position), lanes, slot++);
  for (int64_t width = lanes / 2; width >= 1; width /= 2)
    if (position + width <= length) {
      piece(innerIvs, e.index(position), width, 0);
      position += width;
    }
}

void SegmentEmitter::outerLoops(unsigned depth, SmallVector<Value> &innerIvs) {
  Member &first = at(0);
  if (depth + 1 >= first.inner.size())
    return vectorLoop(innerIvs);
  int64_t size = first.nest.sizes[first.inner[depth]];
  SmallVector<Value> results =
      e.loop(0, size, 1, carried(), [&](Value iv, ValueRange values) {
        setCarried(values);
        innerIvs.push_back(iv);
        outerLoops(depth + 1, innerIvs);
        innerIvs.pop_back();
        return carried();
      });
  setCarried(results);
}

void SegmentEmitter::finishPartials() {
  for (Partial &partial : partials) {
    Member &member = at(partial.member);
    Operation *op = partial.combiner.op;
    SmallVector<Value> level = partial.vectors;
    while (level.size() > 1) {
      SmallVector<Value> next;
      for (unsigned i = 0; i + 1 < level.size(); i += 2)
        next.push_back(e.combine(op, level[i], level[i + 1]));
      if (level.size() % 2)
        next.push_back(level.back());
      level = next;
    }
    Value total;
    if (!level.empty())
      total = e.reduceLanes(op, level.front());
    if (partial.scalar)
      total = total ? e.combine(op, total, partial.scalar) : partial.scalar;
    Access &access =
        member.nest.accesses[member.nest.numInputs() + partial.output];
    SmallVector<Value> zeros(member.inner.size(), e.index(0));
    SmallVector<Value> ivs = ivsOf(member, zeros, e.index(0));
    Value init = member.nest.fills[partial.output]
                     ? member.nest.fills[partial.output]
                     : e.load(access, ivs, -1, 1);
    total = e.combine(op, extend(e, init, partial.type), total);
    if (partial.type != access.element)
      total = arith::TruncFOp::create(e.b, e.loc, access.element, total);
    e.store(total, access, ivs, -1, 1);
  }
}

void SegmentEmitter::emit() {
  choosePlan();
  preload();
  startPartials();
  SmallVector<Value> innerIvs;
  outerLoops(0, innerIvs);
  finishPartials();
}

void cleave::kernels::emitSegment(Group &group, Segment &segment,
                                  ArrayRef<Value> rowIvs,
                                  ArrayRef<Value> extraIvs, NestEmitter &e,
                                  const CpuIsa &isa) {
  SegmentEmitter(group, segment, isa, e, rowIvs, extraIvs).emit();
}

//===- CommOps.cpp - Communication between the ranks in lock-step ---------===//
// As dialects/comm/CommOps.td defines it. The group of a rank is found anew for
// each op from coordinates: members have the same digits but for the op's axes.
//===----------------------------------------------------------------------===//
#include "dialects/comm/Comm.h"
#include "test/oracle/InterpreterImpl.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>
#include <numeric>

using namespace mlir;

namespace cleave::oracle {

const Mesh &Interpreter::meshOf(Operation *op, FlatSymbolRefAttr name) {
  MeshOp meshOp = lookupMesh(op, name);
  std::unique_ptr<Mesh> &mesh = meshes[meshOp];
  if (!mesh)
    mesh = std::make_unique<Mesh>(toMesh(meshOp));
  return *mesh;
}

int64_t Interpreter::coordinate(Operation *op, int rank) {
  auto coordinate = cast<comm::CoordinateOp>(op);
  const Mesh &mesh = meshOf(op, coordinate.getMeshAttr());
  return mesh.linearIndex(toAxes(mesh, coordinate.getAxes()),
                          mesh.coordinates(rank));
}

/// The coordinates with the digits of `axes` cleared: equal within a group.
static Shape groupOf(const Mesh &mesh, ArrayRef<AxisRef> axes, int64_t rank) {
  auto coordinates = mesh.coordinates(rank);
  Shape key(coordinates.begin(), coordinates.end());
  for (AxisRef ref : axes) {
    int64_t right = mesh.axes[ref.axis].size / ref.next();
    int64_t c = key[ref.axis];
    key[ref.axis] = c - (c / right) % ref.size * right;
  }
  return key;
}

/// Ranks of the group of `rank`, each with its index over `axes`.
static SmallVector<std::pair<int64_t, int>>
membersOf(const Mesh &mesh, ArrayRef<AxisRef> groupAxes, ArrayRef<AxisRef> axes,
          int64_t rank) {
  SmallVector<std::pair<int64_t, int>> result;
  Shape key = groupOf(mesh, groupAxes, rank);
  for (int64_t other = 0; other < mesh.numRanks(); ++other)
    if (groupOf(mesh, groupAxes, other) == key)
      result.push_back(
          {mesh.linearIndex(axes, mesh.coordinates(other)), other});
  llvm::sort(result);
  return result;
}

//===----------------------------------------------------------------------===//
// What one rank gets
//===----------------------------------------------------------------------===//

static Scalar combineFloats(ReductionKind kind, double x, double y) {
  bool maximum = kind == ReductionKind::Max || kind == ReductionKind::MaxNum;
  switch (kind) {
  case ReductionKind::Sum:
    return Scalar::ofFloat(x + y);
  case ReductionKind::Prod:
    return Scalar::ofFloat(x * y);
  default:
    break;
  }
  bool number = kind == ReductionKind::MaxNum || kind == ReductionKind::MinNum;
  if (std::isnan(x) || std::isnan(y))
    return Scalar::ofFloat(std::isnan(x) == number ? y : x);
  if (x == y)
    return Scalar::ofFloat(std::signbit(x) == maximum ? y : x);
  return Scalar::ofFloat((x > y) == maximum ? x : y);
}

static Scalar combineInts(ReductionKind kind, Kind type, int64_t x, int64_t y) {
  uint64_t ux = zeroExtend(x, type.bits), uy = zeroExtend(y, type.bits);
  switch (kind) {
  case ReductionKind::Sum:
    return Scalar::ofInt(static_cast<uint64_t>(x) + y);
  case ReductionKind::Prod:
    return Scalar::ofInt(static_cast<uint64_t>(x) * y);
  case ReductionKind::Max:
    return Scalar::ofInt(std::max(x, y));
  case ReductionKind::Min:
    return Scalar::ofInt(std::min(x, y));
  case ReductionKind::UMax:
    return Scalar::ofInt(ux > uy ? x : y);
  case ReductionKind::UMin:
    return Scalar::ofInt(ux < uy ? x : y);
  case ReductionKind::And:
    return Scalar::ofInt(x & y);
  case ReductionKind::Or:
    return Scalar::ofInt(x | y);
  default:
    return Scalar::ofInt(x ^ y);
  }
}

static void combine(ReductionKind kind, Tensor &into, const Tensor &other) {
  Kind type = into.kind;
  for (auto [x, y] : llvm::zip_equal(into.data, other.data)) {
    if (type.isFloat())
      x.f = roundTo(type, combineFloats(kind, x.f, y.f).f);
    else
      x.i = wrap(combineInts(kind, type, x.i, y.i).i, type.bits);
  }
}

/// Copies `count` indices of a dim from one tensor to another; the other dims
/// are equal.
static void copyAlong(int64_t dim, const Tensor &from, int64_t fromAt,
                      Tensor &to, int64_t toAt, int64_t count) {
  int64_t inner = 1, outer = 1;
  for (int64_t d = 0; d < from.rank(); ++d)
    (d < dim ? outer : inner) *= d == dim ? 1 : from.dim(d);
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < count * inner; ++i)
      to.data[(o * to.dim(dim) + toAt) * inner + i] =
          from.data[(o * from.dim(dim) + fromAt) * inner + i];
}

/// Part `index` of n along `dim`.
static Tensor partOf(const Tensor &whole, int64_t dim, int64_t index,
                     int64_t n) {
  Shape shape = whole.shape;
  shape[dim] /= n;
  Tensor result(whole.kind, shape);
  copyAlong(dim, whole, index * shape[dim], result, 0, shape[dim]);
  return result;
}

static Tensor joined(int64_t dim, ArrayRef<Tensor> parts) {
  Shape shape = parts.front().shape;
  shape[dim] *= parts.size();
  Tensor result(parts.front().kind, shape);
  for (auto [i, part] : llvm::enumerate(parts))
    copyAlong(dim, part, 0, result, i * part.dim(dim), part.dim(dim));
  return result;
}

static bool alignable(AxisRef a, AxisRef b) {
  int64_t cuts[] = {a.pre, a.next(), b.pre, b.next()};
  llvm::sort(cuts);
  return cuts[1] % cuts[0] == 0 && cuts[2] % cuts[1] == 0 &&
         cuts[3] % cuts[2] == 0;
}

namespace {
/// One collective seen from one rank.
struct Exchange {
  const Mesh &mesh;
  AxisList axes, source;
  int64_t rank = 0;
  /// Input of each rank of the mesh.
  SmallVector<const Tensor *> inputs;
  Random &random;

  AxisList groupAxes() const {
    // Two of one axis that no list of digits has both count as the digits from
    // the first to the last.
    AxisList all = axes;
    for (AxisRef ref : source) {
      for (AxisRef &other : all) {
        if (other.axis != ref.axis || alignable(other, ref))
          continue;
        int64_t first = std::gcd(other.pre, ref.pre);
        int64_t last = std::lcm(other.next(), ref.next());
        other = ref = {ref.axis, first, last / first};
      }
      all.push_back(ref);
    }
    return all;
  }
  int64_t indexOver(ArrayRef<AxisRef> refs) const {
    return mesh.linearIndex(refs, mesh.coordinates(rank));
  }
  /// Inputs of the members, in their order.
  SmallVector<const Tensor *> members() const {
    SmallVector<const Tensor *> result;
    for (auto [index, other] : membersOf(mesh, axes, axes, rank))
      result.push_back(inputs[other]);
    return result;
  }
  /// Input of a member with this index over `source`. If there are several,
  /// they are copies of each other, and any one is taken.
  const Tensor &from(int64_t index) const {
    SmallVector<const Tensor *> found;
    for (auto [k, other] : membersOf(mesh, groupAxes(), source, rank))
      if (k == index)
        found.push_back(inputs[other]);
    assert(!found.empty() && "every block of the source has a rank");
    return *random.pick(found);
  }

  Tensor reduced(ReductionKind kind) const {
    SmallVector<const Tensor *> all = members();
    Tensor result = *all.front();
    for (const Tensor *other : llvm::drop_begin(all))
      combine(kind, result, *other);
    return result;
  }
  Tensor gathered(int64_t dim) const {
    std::vector<Tensor> parts;
    for (const Tensor *member : members())
      parts.push_back(*member);
    return joined(dim, parts);
  }
  Tensor ownPart(const Tensor &whole, int64_t dim) const {
    return partOf(whole, dim, indexOver(axes), axesSize(axes));
  }
  Tensor allToAll(int64_t splitDim, int64_t concatDim) const {
    std::vector<Tensor> parts;
    for (const Tensor *member : members())
      parts.push_back(ownPart(*member, splitDim));
    return joined(concatDim, parts);
  }
  Tensor realigned(comm::RealignOp op, const Tensor &init) const {
    Tensor result = init;
    int64_t dim = op.getDim(), stride = op.getStride();
    int64_t offset = static_cast<int64_t>(op.getOffset());
    int64_t inSize = op.getInSize(), outSize = op.getOutSize();
    int64_t first = indexOver(axes) * init.dim(dim);
    for (int64_t i = 0; i < init.dim(dim) && first + i < outSize; ++i) {
      int64_t at = offset + (first + i) * stride;
      if (at < 0 || at >= inSize)
        continue;
      int64_t block = inputs[rank]->dim(dim);
      copyAlong(dim, from(at / block), at % block, result, i, 1);
    }
    return result;
  }
};
} // namespace

//===----------------------------------------------------------------------===//
// The ops
//===----------------------------------------------------------------------===//

llvm::Error Interpreter::runCollective(Operation *op, Frame &frame,
                                       const Mesh &mesh) {
  AxisList source;
  if (auto attr = op->getAttrOfType<AxesAttr>("source"))
    source = toAxes(mesh, attr);
  Exchange exchange{mesh,   toAxes(mesh, op->getAttrOfType<AxesAttr>("axes")),
                    source, 0,
                    {},     random};
  for (int rank = 0; rank < numRanks; ++rank)
    exchange.inputs.push_back(frame[op->getOperand(0)].size() >
                                      static_cast<size_t>(rank)
                                  ? frame[op->getOperand(0)][rank].tensor.get()
                                  : nullptr);
  bool isLocal = isa<comm::SliceOp>(op);
  std::vector<Tensor> results(numRanks);
  for (int rank : active) {
    exchange.rank = rank;
    for (auto [index, other] :
         membersOf(mesh, exchange.groupAxes(), exchange.axes, rank))
      if (!isLocal && !llvm::is_contained(active, other))
        return failAt(op, "rank " + Twine(rank) + " waits for rank " +
                              Twine(other) + ", which does not come here");
    results[rank] =
        llvm::TypeSwitch<Operation *, Tensor>(op)
            .Case([&](comm::AllReduceOp reduce) {
              return exchange.reduced(comm::toKind(reduce.getKind()));
            })
            .Case([&](comm::ReduceScatterOp reduce) {
              return exchange.ownPart(
                  exchange.reduced(comm::toKind(reduce.getKind())),
                  reduce.getDim());
            })
            .Case([&](comm::AllGatherOp all) {
              return exchange.gathered(all.getDim());
            })
            .Case([&](comm::AllToAllOp all) {
              return exchange.allToAll(all.getSplitDim(), all.getConcatDim());
            })
            .Case([&](comm::PermuteOp) {
              return exchange.from(exchange.indexOver(exchange.axes));
            })
            .Case([&](comm::RealignOp realign) {
              return exchange.realigned(
                  realign, tensorIn(realign.getInit(), rank, frame));
            })
            .Case([&](comm::SliceOp slice) {
              return exchange.ownPart(*exchange.inputs[rank], slice.getDim());
            });
    if (results[rank].shape != shapeOf(op->getResult(0).getType()))
      return failAt(op, "the result has not the type the op declares");
  }
  for (int rank : active)
    setTensor(op->getResult(0), rank, std::move(results[rank]), frame);
  return llvm::Error::success();
}

/// Rank `delta` further along the axis; -1 beyond its ends.
static int64_t peerOf(const Mesh &mesh, AxisRef axis, int64_t delta,
                      int64_t rank) {
  auto coordinates = mesh.coordinates(rank);
  int64_t at = coordinates[axis.axis] + delta;
  if (at < 0 || at >= mesh.axes[axis.axis].size)
    return -1;
  coordinates[axis.axis] = at;
  return mesh.rankAt(coordinates);
}

llvm::Error Interpreter::runTransfer(Operation *op, Frame &frame,
                                     const Mesh &mesh) {
  AxisRef axis = toAxes(mesh, op->getAttrOfType<AxesAttr>("axes")).front();
  int64_t delta = op->getAttrOfType<IntegerAttr>("delta").getInt();
  for (int rank : active) {
    int64_t peer = peerOf(mesh, axis, delta, rank);
    if (auto send = dyn_cast<comm::SendOp>(op)) {
      if (peer >= 0)
        inFlight[{rank, peer}].push_back(
            tensorIn(send.getInput(), rank, frame));
      continue;
    }
    Value result = op->getResult(0);
    if (peer < 0) {
      setTensor(result, rank, poisonTensor(result.getType()), frame);
      continue;
    }
    std::vector<Tensor> &sent = inFlight[{peer, rank}];
    if (sent.empty())
      return failAt(op, "rank " + Twine(rank) +
                            " waits for a block that rank " + Twine(peer) +
                            " has not sent");
    setTensor(result, rank, sent.front(), frame);
    sent.erase(sent.begin());
  }
  return llvm::Error::success();
}

llvm::Error Interpreter::runComm(Operation *op, Frame &frame, bool &known) {
  known = isa_and_nonnull<comm::CommDialect>(op->getDialect());
  if (!known)
    return llvm::Error::success();
  const Mesh &mesh = meshOf(op, op->getAttrOfType<FlatSymbolRefAttr>("mesh"));
  if (mesh.numRanks() != numRanks)
    return failAt(op, "runs on " + Twine(numRanks) +
                          " ranks, but its mesh has " + Twine(mesh.numRanks()));
  if (isa<comm::CoordinateOp>(op)) {
    for (int rank : active)
      define(op->getResult(0), frame)[rank].scalar.i = coordinate(op, rank);
    return llvm::Error::success();
  }
  if (isa<comm::SendOp, comm::RecvOp>(op))
    return runTransfer(op, frame, mesh);
  return runCollective(op, frame, mesh);
}

} // namespace cleave::oracle

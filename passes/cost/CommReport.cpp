//===- CommReport.cpp - The communication of a program --------------------===//
#include "passes/cost/CommReport.h"
#include "dialects/comm/Comm.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "passes/propagate/ProgramGraph.h"
#include <set>

using namespace mlir;

namespace cleave {

std::string locText(Location loc) {
  std::string text;
  loc->walk([&](Location inner) {
    auto file = dyn_cast<FileLineColLoc>(inner);
    if (!file)
      return WalkResult::advance();
    text = file.getFilename().str() + ":" + std::to_string(file.getLine()) +
           ":" + std::to_string(file.getColumn());
    return WalkResult::interrupt();
  });
  return text;
}

namespace {

/// The ranks of one group of a realign, by their coordinates on the axes that
/// it names; all other coordinates are 0.
std::vector<SmallVector<int64_t, 4>> groupMembers(const Mesh &mesh,
                                                  ArrayRef<AxisRef> axes) {
  std::vector<SmallVector<int64_t, 4>> members = {
      SmallVector<int64_t, 4>(mesh.axes.size(), 0)};
  std::set<unsigned> done;
  for (AxisRef ref : axes) {
    if (!done.insert(ref.axis).second)
      continue;
    std::vector<SmallVector<int64_t, 4>> next;
    for (const auto &member : members)
      for (int64_t c = 0; c < mesh.axes[ref.axis].size; ++c) {
        next.push_back(member);
        next.back()[ref.axis] = c;
      }
    members = std::move(next);
  }
  return members;
}

/// `coordinates` with the digits of `axes` set to those of block `index`.
SmallVector<int64_t, 4> withIndex(const Mesh &mesh, ArrayRef<AxisRef> axes,
                                  SmallVector<int64_t, 4> coordinates,
                                  int64_t index) {
  for (AxisRef ref : llvm::reverse(axes)) {
    int64_t right = mesh.axes[ref.axis].size / ref.next();
    int64_t change = index % ref.size - mesh.digit(ref, coordinates);
    coordinates[ref.axis] += change * right;
    index /= ref.size;
  }
  return coordinates;
}

} // namespace

RealignTraffic realignTraffic(const Mesh &mesh, ArrayRef<AxisRef> source,
                              ArrayRef<AxisRef> axes,
                              const RealignShape &shape) {
  AxisList all(source.begin(), source.end());
  llvm::append_range(all, axes);
  std::map<SmallVector<int64_t, 4>, RealignTraffic> sent;
  for (const auto &member : groupMembers(mesh, all)) {
    int64_t own = mesh.linearIndex(source, member);
    int64_t begin = mesh.linearIndex(axes, member) * shape.outBlock;
    int64_t end = std::min(shape.outSize, begin + shape.outBlock);
    for (int64_t at = begin; at < end;) {
      int64_t index = shape.offset + at * shape.stride;
      if (index < 0 || index >= shape.inSize) {
        ++at;
        continue;
      }
      // As many as the owner of this one has.
      int64_t block = index / shape.inBlock;
      int64_t left =
          std::min(shape.inSize, (block + 1) * shape.inBlock) - index;
      int64_t count = std::min(end - at, ceilDiv(left, shape.stride));
      if (block != own) {
        RealignTraffic &sender = sent[withIndex(mesh, source, member, block)];
        sender.elements += count;
        ++sender.peers;
      }
      at += count;
    }
  }
  RealignTraffic worst;
  for (auto &[member, traffic] : sent) {
    worst.elements = std::max(worst.elements, traffic.elements);
    worst.peers = std::max(worst.peers, traffic.peers);
  }
  return worst;
}

namespace {

class Reporter {
public:
  Reporter(ModuleOp module, const Machine &machine)
      : module(module), mesh(findMesh(module).value_or(Mesh())),
        topology(mesh, machine) {}
  std::vector<CommEntry> run();

private:
  void visit(Block &block, int64_t times);
  void add(Operation *op, int64_t times);
  void fill(CommEntry &to, Collective kind, Value whole, AxesAttr axes);

  ModuleOp module;
  Mesh mesh;
  Topology topology;
  std::string entryName;
  std::vector<CommEntry> entries;
  std::map<std::pair<std::string, Operation *>, size_t> seen;
};

int64_t bytesOf(Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getNumElements() * elementBytes(type.getElementType());
}

int64_t tripCount(scf::ForOp loop) {
  std::optional<int64_t> low = getConstantIntValue(loop.getLowerBound());
  std::optional<int64_t> high = getConstantIntValue(loop.getUpperBound());
  std::optional<int64_t> step = getConstantIntValue(loop.getStep());
  if (!low || !high || !step || *step <= 0)
    return 1;
  return std::max<int64_t>(0, ceilDiv(*high - *low, *step));
}

void Reporter::fill(CommEntry &to, Collective kind, Value whole,
                    AxesAttr axesAttr) {
  AxisList axes = toAxes(mesh, axesAttr);
  to.groupSize = axesSize(axes);
  to.bytes = bytesOf(whole);
  to.wireBytes = Topology::wireBytes(kind, to.groupSize, to.bytes);
  to.seconds = topology.seconds(kind, axes, to.wireBytes);
}

void Reporter::add(Operation *op, int64_t times) {
  auto key = std::make_pair(entryName, op);
  if (auto it = seen.find(key); it != seen.end()) {
    entries[it->second].count += times;
    return;
  }
  CommEntry to;
  auto axesAttr = op->getAttrOfType<AxesAttr>("axes");
  if (auto reduce = dyn_cast<comm::AllReduceOp>(op)) {
    fill(to, Collective::AllReduce, reduce.getInput(), axesAttr);
  } else if (auto gather = dyn_cast<comm::AllGatherOp>(op)) {
    fill(to, Collective::AllGather, gather.getResult(), axesAttr);
  } else if (auto scatter = dyn_cast<comm::ReduceScatterOp>(op)) {
    fill(to, Collective::ReduceScatter, scatter.getInput(), axesAttr);
  } else if (auto exchange = dyn_cast<comm::AllToAllOp>(op)) {
    fill(to, Collective::AllToAll, exchange.getInput(), axesAttr);
  } else if (auto permute = dyn_cast<comm::PermuteOp>(op)) {
    fill(to, Collective::Permute, permute.getInput(), axesAttr);
  } else if (auto realign = dyn_cast<comm::RealignOp>(op)) {
    AxisList source = toAxes(mesh, realign.getSource());
    AxisList axes = toAxes(mesh, realign.getAxes());
    AxisList all = source;
    for (AxisRef ref : axes)
      if (!overlaps(all, ref))
        all.push_back(ref);
    auto in = cast<RankedTensorType>(realign.getInput().getType());
    auto out = cast<RankedTensorType>(realign.getType());
    int64_t dim = realign.getDim();
    int64_t inBlock = in.getDimSize(dim);
    int64_t slab = inBlock ? in.getNumElements() / inBlock : 0;
    RealignTraffic traffic = realignTraffic(
        mesh, source, axes,
        {static_cast<int64_t>(realign.getInSize()),
         static_cast<int64_t>(realign.getOutSize()), inBlock,
         out.getDimSize(dim), static_cast<int64_t>(realign.getOffset()),
         static_cast<int64_t>(realign.getStride())});
    to.groupSize = axesSize(all);
    to.bytes = bytesOf(realign.getInput());
    to.wireBytes = traffic.elements * slab * elementBytes(in.getElementType());
    to.seconds = topology.exchangeSeconds(topology.tierOf(all), traffic.peers,
                                          to.wireBytes);
    axesAttr = toAxesAttr(op->getContext(), mesh, all);
  } else {
    // slice and coordinate move nothing.
    return;
  }
  to.entry = entryName;
  to.kind = op->getName().stripDialect().str();
  AxisList axes = toAxes(mesh, axesAttr);
  for (AxisRef ref : axes) {
    // "y", and of a sub-axis "y:(4)2".
    std::string &text = to.axes.emplace_back(mesh.axes[ref.axis].name);
    if (ref != mesh.whole(ref.axis))
      text += ":(" + std::to_string(ref.pre) + ")" + std::to_string(ref.size);
  }
  llvm::raw_string_ostream(to.dtype)
      << getElementTypeOrSelf(op->getResult(0).getType());
  to.count = times;
  to.tier = topology.machine().tiers[topology.tierOf(axes)].name;
  to.loc = locText(op->getLoc());
  if (auto cause = op->getAttrOfType<comm::CauseAttr>("cause")) {
    to.op = cause.getOp().str();
    to.value = cause.getValue().str();
    to.why = cause.getWhy().str();
    to.remedy = cause.getRemedy().str();
  }
  seen[key] = entries.size();
  entries.push_back(std::move(to));
}

void Reporter::visit(Block &block, int64_t times) {
  for (Operation &op : block) {
    if (auto loop = dyn_cast<scf::ForOp>(op))
      visit(*loop.getBody(), times * tripCount(loop));
    else if (auto call = dyn_cast<func::CallOp>(op)) {
      auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee());
      if (callee && !callee.isExternal())
        visit(callee.getBody().front(), times);
    } else if (isa<comm::CommDialect>(op.getDialect())) {
      add(&op, times);
    }
  }
}

std::vector<CommEntry> Reporter::run() {
  for (func::FuncOp function : module.getOps<func::FuncOp>())
    if (function.isPublic() && !function.isExternal()) {
      entryName = function.getName().str();
      visit(function.getBody().front(), 1);
    }
  return std::move(entries);
}

} // namespace

std::vector<CommEntry> reportCommunication(ModuleOp module,
                                           const Machine &machine) {
  return Reporter(module, machine).run();
}

} // namespace cleave

//===- ReshardEmit.cpp - From a path of states to steps -------------------===//
#include "passes/partition/ReshardState.h"
#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace cleave::reshard {

namespace {

class Emitter {
public:
  explicit Emitter(Problem &problem) : problem(problem) {}
  ReshardPlan run(const Path &path);

private:
  void emit(const State &from, const State &to, const Move &move);
  void resize(unsigned dim, int64_t block);
  void finish(ReshardStep step, SmallVector<int64_t, 4> after, Collective kind);
  void join(Collective kind);
  ReshardStep stepFor(const Move &move);
  void slice(const State &from, const State &to, const Move &move);
  void gather(const State &from, const State &to, const Move &move);
  void allToAll(const State &from, const State &to, const Move &move);
  void scatter(const State &from, const State &to, const Move &move);
  void permute(const State &from, const State &to, const Move &move);
  void realign(const State &from, const State &to, const Move &move);

  Problem &problem;
  ReshardPlan plan;
  /// Local shape of the whole tensor after the steps so far.
  SmallVector<int64_t, 4> local;
};

} // namespace

static int64_t bytesOf(ArrayRef<int64_t> shape, int64_t elementBytes) {
  for (int64_t size : shape)
    elementBytes *= size;
  return elementBytes;
}

ReshardStep Emitter::stepFor(const Move &move) {
  ReshardStep step;
  step.kind = move.step;
  step.localBefore = local;
  if (move.step == ReshardKind::AllReduce ||
      move.step == ReshardKind::Permute ||
      move.step == ReshardKind::MakePartial)
    return step;
  step.dim = problem.tensorDims[move.dim];
  step.concatDim = problem.tensorDims[move.concatDim];
  step.inBlock = step.outBlock = local[step.dim];
  step.dimSize = problem.shape[step.dim];
  return step;
}

void Emitter::finish(ReshardStep step, SmallVector<int64_t, 4> after,
                     Collective kind) {
  int64_t before = bytesOf(local, problem.elementBytes);
  int64_t bytes = kind == Collective::AllGather
                      ? bytesOf(after, problem.elementBytes)
                      : before;
  step.wireBytes = Topology::wireBytes(kind, axesSize(step.axes), bytes);
  step.tier = problem.topology.tierOf(step.axes);
  step.seconds = problem.topology.seconds(kind, step.axes, step.wireBytes);
  step.localAfter = after;
  if (step.dimSize > 0)
    step.outBlock = after[step.dim];
  local = std::move(after);
  plan.steps.push_back(std::move(step));
  if (plan.steps.size() > 1)
    join(kind);
}

/// Makes the last two steps one where one over both groups does the same and
/// is no slower (over two tiers, two steps can be faster).
void Emitter::join(Collective kind) {
  ReshardStep &first = plan.steps.end()[-2], &second = plan.steps.back();
  if (first.kind != second.kind || first.dim != second.dim ||
      first.concatDim != second.concatDim ||
      first.reduction != second.reduction || kind == Collective::Permute ||
      kind == Collective::AllToAll)
    return;
  ReshardStep both = first;
  // What is gathered first is the minor part of what is gathered.
  bool isGather = kind == Collective::AllGather;
  both.axes = isGather ? second.axes : first.axes;
  append_range(both.axes, isGather ? first.axes : second.axes);
  both.axes = kind == Collective::AllReduce ? normalizeAxisSet(both.axes)
                                            : mergeAxes(both.axes);
  both.localAfter = second.localAfter;
  both.outBlock = second.outBlock;
  int64_t bytes = bytesOf(isGather ? both.localAfter : both.localBefore,
                          problem.elementBytes);
  both.wireBytes = Topology::wireBytes(kind, axesSize(both.axes), bytes);
  both.tier = std::max(first.tier, second.tier);
  both.seconds = problem.topology.seconds(kind, both.axes, both.wireBytes);
  if (both.wireBytes > first.wireBytes + second.wireBytes ||
      both.seconds > first.seconds + second.seconds)
    return;
  plan.steps.pop_back();
  plan.steps.back() = std::move(both);
}

/// Pads or trims; undoes a resize just before it rather than adding one.
void Emitter::resize(unsigned dim, int64_t block) {
  unsigned tensorDim = problem.tensorDims[dim];
  if (!plan.steps.empty()) {
    ReshardStep &last = plan.steps.back();
    bool resized =
        last.kind == ReshardKind::Trim || last.kind == ReshardKind::Pad;
    if (resized && last.dim == tensorDim && last.outBlock != block) {
      local = last.localBefore;
      plan.steps.pop_back();
    }
  }
  if (local[tensorDim] == block)
    return;
  ReshardStep step = stepFor(
      {Move::Kind::Step, ReshardKind::Pad, static_cast<uint8_t>(dim), 0, 0});
  step.kind = local[tensorDim] < block ? ReshardKind::Pad : ReshardKind::Trim;
  step.outBlock = local[tensorDim] = block;
  step.localAfter = local;
  plan.steps.push_back(std::move(step));
}

void Emitter::slice(const State &from, const State &to, const Move &move) {
  resize(move.dim, move.extent);
  ArrayRef<Atom> run = to.axes(move.dim).drop_front(from.axes(move.dim).size());
  unsigned tensorDim = problem.tensorDims[move.dim];
  // Two cuts of one dim in a row are one.
  if (!plan.steps.empty() && plan.steps.back().kind == ReshardKind::Slice &&
      plan.steps.back().dim == tensorDim) {
    ReshardStep &last = plan.steps.back();
    append_range(last.axes, problem.refs(run));
    last.axes = mergeAxes(last.axes);
    last.outBlock = local[tensorDim] = to.block[move.dim];
    last.localAfter = local;
    return;
  }
  ReshardStep step = stepFor(move);
  step.axes = problem.refs(run);
  step.outBlock = local[tensorDim] = to.block[move.dim];
  step.localAfter = local;
  plan.steps.push_back(std::move(step));
}

void Emitter::gather(const State &from, const State &to, const Move &move) {
  ReshardStep step = stepFor(move);
  step.axes =
      problem.refs(from.axes(move.dim).drop_front(to.axes(move.dim).size()));
  SmallVector<int64_t, 4> after = local;
  after[step.dim] *= axesSize(step.axes);
  finish(step, after, Collective::AllGather);
  resize(move.dim, to.block[move.dim]);
}

void Emitter::allToAll(const State &from, const State &to, const Move &move) {
  resize(move.dim, move.extent);
  ReshardStep step = stepFor(move);
  step.axes =
      problem.refs(to.axes(move.dim).drop_front(from.axes(move.dim).size()));
  SmallVector<int64_t, 4> after = local;
  after[step.dim] = to.block[move.dim];
  after[step.concatDim] *= axesSize(step.axes);
  finish(step, after, Collective::AllToAll);
  resize(move.concatDim, to.block[move.concatDim]);
}

void Emitter::scatter(const State &from, const State &to, const Move &move) {
  resize(move.dim, move.extent);
  ReshardStep step = stepFor(move);
  step.axes =
      problem.refs(to.axes(move.dim).drop_front(from.axes(move.dim).size()));
  step.reduction = from.kind;
  SmallVector<int64_t, 4> after = local;
  after[step.dim] = to.block[move.dim];
  finish(step, after, Collective::ReduceScatter);
}

void Emitter::permute(const State &from, const State &to, const Move &move) {
  std::optional<PermuteAxes> axes = permuteBetween(problem, from, to);
  ReshardStep step = stepFor(move);
  step.source = problem.refs(axes->source);
  step.axes = problem.refs(axes->target);
  finish(step, local, Collective::Permute);
}

void Emitter::realign(const State &from, const State &to, const Move &move) {
  // A block that holds all data may have been padded by the step before.
  resize(move.dim, from.block[move.dim]);
  ReshardStep step = stepFor(move);
  ArrayRef<Atom> source = from.axes(move.dim), target = to.axes(move.dim);
  step.source = problem.refs(source);
  step.axes = problem.refs(target);
  step.inBlock = from.block[move.dim];
  step.outBlock = to.block[move.dim];
  Exchange worst =
      problem.exchange(move.dim, source, step.inBlock, target, step.outBlock);
  if (worst.local)
    return resize(move.dim, step.outBlock);
  int64_t rest = bytesOf(local, problem.elementBytes) / step.inBlock;
  step.wireBytes = worst.elements * rest;
  step.tier = std::max(problem.topology.tierOf(step.source),
                       problem.topology.tierOf(step.axes));
  step.seconds =
      problem.topology.exchangeSeconds(step.tier, worst.peers, step.wireBytes);
  local[step.dim] = step.outBlock;
  step.localAfter = local;
  plan.steps.push_back(std::move(step));
}

void Emitter::emit(const State &from, const State &to, const Move &move) {
  switch (move.step) {
  case ReshardKind::Slice:
    return slice(from, to, move);
  case ReshardKind::AllGather:
    return gather(from, to, move);
  case ReshardKind::AllToAll:
    return allToAll(from, to, move);
  case ReshardKind::ReduceScatter:
    return scatter(from, to, move);
  case ReshardKind::Permute:
    return permute(from, to, move);
  case ReshardKind::Realign:
    return realign(from, to, move);
  case ReshardKind::AllReduce: {
    ReshardStep step = stepFor(move);
    step.axes = problem.refs(from.partial & ~to.partial);
    step.reduction = from.kind;
    return finish(step, local, Collective::AllReduce);
  }
  case ReshardKind::MakePartial: {
    ReshardStep step = stepFor(move);
    step.axes = problem.refs(to.partial & ~from.partial);
    step.reduction = to.kind;
    step.localAfter = local;
    plan.steps.push_back(std::move(step));
    return;
  }
  case ReshardKind::Pad:
  case ReshardKind::Trim:
    llvm_unreachable("resizes are part of other moves");
  }
}

ReshardPlan Emitter::run(const Path &path) {
  local = problem.shape;
  for (auto [d, dim] : enumerate(problem.tensorDims))
    local[dim] = path.states.front().block[d];
  for (size_t i = 1; i < path.states.size(); ++i)
    if (path.moves[i].kind == Move::Kind::Step)
      emit(path.states[i - 1], path.states[i], path.moves[i]);
  for (const ReshardStep &step : plan.steps) {
    plan.seconds += step.seconds;
    plan.wireBytes += step.wireBytes;
  }
  plan.complete = path.complete;
  return std::move(plan);
}

ReshardPlan emit(Problem &problem, const Path &path) {
  return Emitter(problem).run(path);
}

} // namespace cleave::reshard

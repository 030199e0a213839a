//===- Propagation.cpp - How shardings spread over a program --------------===//
// Values of one group are one Class. A work list with one queue per phase
// holds the ops whose tensors changed; the lowest phase goes first, so a later
// phase only decides what all earlier ones left open. Axes are only ever
// appended, so each class changes at most once per digit of the mesh, and the
// work is linear in the program.
#include "passes/propagate/Propagation.h"
#include "passes/propagate/PropagationState.h"
#include "passes/propagate/Visit.h"
#include "llvm/ADT/STLExtras.h"
#include <queue>

namespace cleave {

llvm::StringRef phaseName(Phase phase) {
  static constexpr llvm::StringLiteral names[] = {
      "elementwise", "elementwise-shared", "pass-through",
      "reduction",   "broadcast",          "resolve"};
  return names[static_cast<unsigned>(phase)];
}

ShardingRule identityRule(llvm::ArrayRef<int64_t> shape, unsigned numOperands,
                          unsigned numResults) {
  ShardingRule rule;
  TensorFactors tensor;
  for (auto [i, size] : llvm::enumerate(shape)) {
    Factor factor;
    factor.size = size;
    rule.factors.push_back(factor);
    tensor.dims.push_back({static_cast<unsigned>(i)});
  }
  rule.operands.assign(numOperands, tensor);
  rule.results.assign(numResults, tensor);
  rule.elementwise = true;
  return rule;
}

namespace {

class Engine {
public:
  explicit Engine(const PropagationProblem &problem)
      : state(problem), visitor(state), pending(problem.ops.size(), 0) {}
  PropagationResult run();

private:
  void activate(unsigned priority);
  void enqueue(unsigned op);
  void enqueue(unsigned op, Phase phase);
  void drain();
  void visit(unsigned op, Phase phase);

  PropagationState state;
  Visitor visitor;
  /// In program order: what operands say of a value counts before what its
  /// users would like, as long as both are of one phase.
  std::priority_queue<unsigned, std::vector<unsigned>, std::greater<>>
      queues[kNumPhases];
  /// Per op, the phases in whose queue it stands.
  std::vector<uint8_t> pending;
};

} // namespace

void Engine::enqueue(unsigned op, Phase phase) {
  uint8_t bit = 1u << static_cast<unsigned>(phase);
  if (pending[op] & bit)
    return;
  pending[op] |= bit;
  queues[static_cast<unsigned>(phase)].push(op);
}

void Engine::enqueue(unsigned op) {
  for (unsigned phase = 0; phase < kNumPhases; ++phase)
    if (state.ops[op].phases & (1u << phase))
      enqueue(op, static_cast<Phase>(phase));
}

void Engine::visit(unsigned op, Phase phase) {
  llvm::SmallVector<unsigned, 4> changed;
  bool disagree = visitor.visit(op, phase, changed);
  if (disagree && phase != Phase::Resolve)
    enqueue(op, Phase::Resolve);
  for (unsigned changedClass : changed)
    for (unsigned user : state.users(changedClass))
      enqueue(user);
}

void Engine::drain() {
  for (unsigned phase = 0; phase < kNumPhases;) {
    auto &queue = queues[phase];
    if (queue.empty()) {
      ++phase;
      continue;
    }
    unsigned op = queue.top();
    queue.pop();
    pending[op] &= ~(1u << phase);
    visit(op, static_cast<Phase>(phase));
    phase = 0;
  }
}

/// Shows the dims of this priority; before, they were closed and empty.
void Engine::activate(unsigned priority) {
  state.priority = priority;
  for (auto [c, shared] : llvm::enumerate(state.classes))
    if (state.show(c))
      for (unsigned user : state.users(c))
        enqueue(user);
}

PropagationResult Engine::run() {
  for (unsigned priority : state.priorities()) {
    activate(priority);
    drain();
  }
  return state.finish();
}

PropagationResult propagate(const PropagationProblem &problem) {
  return Engine(problem).run();
}

//===----------------------------------------------------------------------===//
// Explanations
//===----------------------------------------------------------------------===//

DecisionIndex::DecisionIndex(const PropagationResult &result)
    : result(result), decisions(result.shardings.size()) {
  for (auto [i, decision] : llvm::enumerate(result.decisions))
    decisions[decision.value].push_back(i);
}

llvm::SmallVector<const Decision *, 4>
DecisionIndex::chain(unsigned value, unsigned dim, AxisRef axis) const {
  llvm::SmallVector<const Decision *, 4> steps;
  // Each step is older than the one before, so this ends.
  unsigned before = result.decisions.size();
  while (true) {
    const Decision *step = nullptr;
    for (unsigned i : decisions[value]) {
      const Decision &decision = result.decisions[i];
      if (i < before && decision.dim == dim && overlaps(decision.axes, axis))
        step = &decision;
    }
    if (!step)
      return steps;
    steps.push_back(step);
    before = step - result.decisions.data();
    value = step->source;
    dim = step->sourceDim;
  }
}

} // namespace cleave

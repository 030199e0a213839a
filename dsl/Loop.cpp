//===- Loop.cpp - Loops of the program ------------------------------------===//
// A loop carries one tensor and the states that its turns change. Weights and
// states of all turns lie in one tensor with the loop's dim in front; a turn
// takes its part.
//===----------------------------------------------------------------------===//
#include "dsl/Loop.h"
#include "cleave/model.h"

namespace cleave {
namespace dsl {

Region *openRegion(Entry &entry, const std::string &scope) {
  auto region = std::make_unique<Region>();
  region->parent = entry.current;
  region->scope = scope;
  Region *inner = region.get();
  entry.current->items.emplace_back(std::move(region));
  entry.current = inner;
  return inner;
}

std::vector<Region *> loopsOver(const Entry &entry, const std::string &path) {
  std::vector<Region *> loops;
  for (Region *region = entry.current; region; region = region->parent)
    if (region->isLoop() && path.rfind(region->scope + ".", 0) == 0)
      loops.insert(loops.begin(), region);
  return loops;
}

Dims stacked(const std::vector<Region *> &loops, const Dims &dims) {
  std::vector<Dim> all;
  for (const Region *loop : loops)
    all.push_back(Dim(loop->turns.name, loop->turns.size));
  all.insert(all.end(), dims.begin(), dims.end());
  return all;
}

/// A node that stands where its region begins or ends, not among the items.
static Node *addHidden(Maker &maker, Node node, const std::string &name,
                       Region *region) {
  Entry &entry = *maker.entry;
  node.name = uniqueName(entry, name);
  node.scope = entry.scopes.back();
  node.place = maker.place;
  node.entry = &entry;
  node.region = region;
  entry.nodes.push_back(std::move(node));
  return &entry.nodes.back();
}

/// A turn's part; one node for each loop, at its beginning.
static Node *atTurn(Maker &maker, Node *stack, Region &loop) {
  for (const auto &item : loop.items)
    if (Node *const *known = std::get_if<Node *>(&item);
        known && (*known)->kind == Kind::AtTurn &&
        (*known)->operands[0] == stack)
      return *known;
  Node node = maker.start(Kind::AtTurn, stack->type,
                          without(stack->shape, {loop.turns.name}));
  node.operands = {stack};
  Node *part = addHidden(maker, std::move(node), stack->name, &loop);
  loop.items.emplace(loop.items.begin(), part);
  return part;
}

Node *partOf(Maker &maker, Node *stack, const std::vector<Region *> &loops) {
  for (Region *loop : loops)
    stack = atTurn(maker, stack, *loop);
  return stack;
}

static Node *carry(Maker &maker, Node *init, Region &loop) {
  Node node = maker.start(Kind::Carried, init->type, init->shape);
  node.operands = {init};
  loop.carried.push_back(addHidden(maker, std::move(node), init->name, &loop));
  return loop.carried.back();
}

LoopState &stateOf(Maker &maker, const std::string &path, Region &loop) {
  auto [it, isNew] = loop.states.try_emplace(path);
  if (isNew) {
    Node *stack = carry(maker, maker.entry->states.at(path).current, loop);
    Node *part = atTurn(maker, stack, loop);
    it->second = {stack, part};
  }
  return it->second;
}

/// What the loop ends with, for each value that it carries.
static void finishLoop(Maker &maker, Region &loop, Node *result) {
  loop.yields = {result};
  for (size_t i = 1; i < loop.carried.size(); ++i)
    for (const auto &[path, state] : loop.states) {
      if (state.stack != loop.carried[i])
        continue;
      Node node =
          maker.start(Kind::PutTurn, state.stack->type, state.stack->shape);
      node.operands = {state.stack, state.current};
      loop.yields.push_back(maker.finish(std::move(node), "store"));
    }
  for (size_t i = 0; i < loop.carried.size(); ++i) {
    const Node *carried = loop.carried[i];
    Node node = maker.start(Kind::Loop, carried->type, carried->shape);
    node.operands = loop.yields;
    for (const Node *value : loop.carried)
      node.operands.push_back(value->operands[0]);
    node.index = i;
    loop.results.push_back(
        addHidden(maker, std::move(node), loop.scope, loop.parent));
  }
  for (const auto &[path, state] : loop.states)
    for (size_t i = 1; i < loop.carried.size(); ++i)
      if (loop.carried[i] == state.stack)
        maker.entry->states.at(path).current = loop.results[i];
}

} // namespace dsl

inline namespace lang {
using dsl::Maker;
using dsl::Node;

Scope::Inside::Inside(const Scope &scope, const Turns &turns, const Tensor &x)
    : Inside(scope) {
  where = turns.where;
  Maker maker("loop", {x}, where);
  dsl::Shape shape;
  bool isKnown = maker && maker.resolve(turns.dim, "loop", shape);
  // Without a beginning the body is built all the same, for its own mistakes.
  dsl::Region *region = dsl::openRegion(*entry, scope.scopePath);
  region->place = dsl::toPlace(where);
  if (!isKnown) {
    first = maker.failed();
    return;
  }
  region->turns = shape[0];
  first = Tensor(dsl::carry(maker, x.node, *region));
}

Tensor Scope::Inside::carried() const { return first; }

Tensor Scope::Inside::close(const Tensor &result) {
  Maker maker("loop", {first, result}, where);
  if (!maker)
    return maker.failed();
  const Node *begin = first.node;
  bool fits = result.node->type == begin->type &&
              result.node->shape.size() == begin->shape.size();
  for (const dsl::DimSize &dim : begin->shape)
    fits &= find(result.node->shape, dim.name) != nullptr;
  if (!fits) {
    maker.error("a turn of the loop makes " + dsl::describe(result.node) +
                " of " + dsl::nameOf(result.node->type) + " from " +
                dsl::describe(begin->operands[0]) + " of " +
                dsl::nameOf(begin->type) + "; both must have one type");
    return maker.failed();
  }
  const Node *ordered = maker.reordered(result.node, begin->shape);
  dsl::finishLoop(maker, *entry->current, const_cast<Node *>(ordered));
  return Tensor(entry->current->results[0]);
}

} // namespace lang
} // namespace cleave

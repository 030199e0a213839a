//===- Scope.cpp - Scopes, entries and models -----------------------------===//
#include "cleave/model.h"
#include "dsl/Loop.h"
#include "dsl/Names.h"

namespace cleave {
namespace dsl {
namespace {

/// What an entry takes from outside; it stands before all ops.
Node *addLeaf(Maker &maker, Kind kind, Element type, Shape shape,
              const std::string &name) {
  Node node = maker.start(kind, type, std::move(shape));
  node.name = name;
  size_t dot = name.rfind('.');
  node.scope = dot == std::string::npos ? "" : name.substr(0, dot);
  node.place = maker.place;
  node.entry = maker.entry;
  node.isNamed = true;
  maker.entry->names.insert(name);
  maker.entry->nodes.push_back(std::move(node));
  return &maker.entry->nodes.back();
}

bool isNameGiven(Maker &maker, const std::string &name) {
  return !name.empty() ||
         maker.error("the name of " +
                     std::string(maker.op[0] == 'w' || maker.op[0] == 's'
                                     ? "a "
                                     : "an ") +
                     maker.op + " is empty");
}

/// A weight or state has one type in all entries.
bool agrees(Maker &maker, const std::map<std::string, Node *> &known,
            const std::string &name, Element type, const Shape &shape) {
  auto it = known.find(name);
  if (it == known.end())
    return true;
  const Node *first = it->second;
  if (first->type == type && first->shape == shape)
    return true;
  return maker.error(maker.op + " '" + name + "' is " + nameOf(type) + " " +
                         toText(shape) + " here, and " + nameOf(first->type) +
                         " " + toText(first->shape) +
                         " before; it has one type",
                     {{first->place, "first used here"}});
}

/// Whether a weight, state or input has the name already.
bool isFree(Maker &maker, const std::string &name) {
  for (const Node &node : maker.entry->nodes)
    if (node.name == name)
      return maker.error("the name '" + name + "' of the " + maker.op +
                             " is taken in entry '" + maker.entry->name + "'",
                         {{node.place, "by this one"}});
  return true;
}

} // namespace
} // namespace dsl

using dsl::Graph;
using dsl::Kind;
using dsl::Maker;
using dsl::Node;
using dsl::Shape;

inline namespace lang {

//===----------------------------------------------------------------------===//
// Scope
//===----------------------------------------------------------------------===//

Scope Scope::operator[](const std::string &name) const {
  Scope inner(entry, dsl::join(scopePath, name));
  inner.turn = turn;
  return inner;
}

Tensor Scope::weight(const std::string &name, const Dims &dims, Element type,
                     Where where) {
  Maker maker("weight", entry, where);
  std::string path = dsl::join(scopePath, name);
  Shape shape;
  std::vector<dsl::Region *> loops = dsl::loopsOver(*entry, path);
  if (!dsl::isNameGiven(maker, name) ||
      !maker.resolve(dsl::stacked(loops, dims), "'" + path + "'", shape) ||
      !dsl::agrees(maker, entry->graph->weights, path, type, shape))
    return Tensor::failed();
  for (Node *known : entry->weights)
    if (known->name == path)
      return Tensor(dsl::partOf(maker, known, loops));
  if (!dsl::isFree(maker, path))
    return Tensor::failed();
  Node *node = dsl::addLeaf(maker, Kind::Weight, type, shape, path);
  entry->weights.push_back(node);
  entry->graph->weights.insert({path, node});
  return Tensor(dsl::partOf(maker, node, loops));
}

Tensor Scope::state(const std::string &name, const Dims &dims, Element type,
                    Where where) {
  Maker maker("state", entry, where);
  std::string path = dsl::join(scopePath, name);
  Shape shape;
  std::vector<dsl::Region *> loops = dsl::loopsOver(*entry, path);
  if (!dsl::isNameGiven(maker, name) ||
      !maker.resolve(dsl::stacked(loops, dims), "'" + path + "'", shape) ||
      !dsl::agrees(maker, entry->graph->states, path, type, shape))
    return Tensor::failed();
  if (loops.size() > 1) {
    maker.error("state '" + path +
                "' is made in a loop inside of another; "
                "keep the state of one loop, or repeat");
    return Tensor::failed();
  }
  auto known = entry->states.find(path);
  if (known == entry->states.end()) {
    if (!dsl::isFree(maker, path))
      return Tensor::failed();
    Node *node = dsl::addLeaf(maker, Kind::State, type, shape, path);
    known = entry->states.insert({path, {node, node, maker.place}}).first;
    entry->stateOrder.push_back(path);
    entry->graph->states.insert({path, node});
  }
  if (loops.empty())
    return Tensor(known->second.current);
  return Tensor(dsl::stateOf(maker, path, *loops[0]).current);
}

void Scope::store(const std::string &name, const Tensor &value, Where where) {
  Maker maker("store", {value}, where);
  std::string path = dsl::join(scopePath, name);
  if (!value.node) {
    maker.entry = entry;
    if (!value.hasFailed)
      maker.error("store of '" + path +
                  "' is given an empty Tensor: nothing was assigned to it");
    return;
  }
  auto slot = entry->states.find(path);
  if (maker && slot == entry->states.end())
    maker.error("store to '" + path + "', which is no state of entry '" +
                entry->name + "'" + dsl::suggestion(path, entry->stateOrder));
  if (!maker)
    return;
  std::vector<dsl::Region *> loops = dsl::loopsOver(*entry, path);
  Node *&current = loops.empty() ? slot->second.current
                                 : dsl::stateOf(maker, path, *loops[0]).current;
  const Node *argument = slot->second.argument;
  bool fits = value.node->type == current->type &&
              value.node->shape.size() == current->shape.size();
  for (const dsl::DimSize &dim : current->shape)
    fits &= find(value.node->shape, dim.name) != nullptr;
  if (!fits) {
    maker.error("store of " + dsl::describe(value.node) + " of " +
                    dsl::nameOf(value.node->type) + " to the state '" + path +
                    "' " + toText(current->shape) + " of " +
                    dsl::nameOf(current->type) + "; both have one type",
                {{argument->place, "the state is made here"}});
    return;
  }
  current = const_cast<Node *>(maker.reordered(value.node, current->shape));
}

Tensor Scope::iota(const Dim &dim, Element type, Where where) {
  Maker maker("iota", entry, where);
  Shape shape;
  if (!maker.resolve(dim, "iota", shape))
    return Tensor::failed();
  if (type == i1) {
    maker.error("iota counts in numbers, not in i1");
    return Tensor::failed();
  }
  dsl::BodyBuilder b;
  b.cast(b.index(shape[0].name), type);
  return Tensor(maker.map({}, std::move(b.body), shape));
}

Tensor Scope::constant(double value, Element type, Where where) {
  Maker maker("constant", entry, where);
  if (!maker.isOfType(value, type))
    return Tensor::failed();
  dsl::BodyBuilder b;
  b.constant(value, type);
  return Tensor(maker.map({}, std::move(b.body), Shape()));
}

Scope::Inside::Inside(const Scope &scope)
    : entry(scope.entry), outer(scope.entry->current) {
  entry->scopes.push_back(scope.scopePath);
}

Scope::Inside::Inside(const Scope &scope, const Name &repeated)
    : Inside(scope) {
  dsl::Region *region = dsl::openRegion(*entry, scope.scopePath);
  region->place = dsl::toPlace(repeated.where);
  // The scope without its number.
  region->repeated = scope.scopePath;
  size_t end = region->repeated.find_last_not_of("0123456789") + 1;
  region->repeated.resize(end);
}

Scope::Inside::~Inside() {
  entry->scopes.pop_back();
  entry->current = outer;
}

//===----------------------------------------------------------------------===//
// Parts with weights
//===----------------------------------------------------------------------===//

Tensor rms_norm(Scope scope, const Tensor &x, const Dims &over, double epsilon,
                Element weights, Where where) {
  Scope::Inside inside(scope);
  Tensor gain = scope.weight("weight", over, weights, where);
  return rms_norm(x, gain, over, epsilon, where);
}

Tensor layer_norm(Scope scope, const Tensor &x, const Dims &over,
                  double epsilon, Element weights, Where where) {
  Scope::Inside inside(scope);
  Tensor gain = scope.weight("weight", over, weights, where);
  Tensor bias = scope.weight("bias", over, weights, where);
  return layer_norm(x, gain, bias, over, epsilon, where);
}

Tensor linear(Scope scope, const Tensor &x, const Dims &over, const Dims &into,
              Element weights, Where where) {
  Scope::Inside inside(scope);
  std::vector<Dim> dims(over.begin(), over.end());
  dims.insert(dims.end(), into.begin(), into.end());
  Tensor matrix = scope.weight("weight", dims, weights, where);
  Tensor bias = scope.weight("bias", into, weights, where);
  return Operand(dot(x, matrix, over, where), where) + bias;
}

Tensor embedding(Scope scope, const Tensor &indices, const Dim &vocabulary,
                 const Dim &width, Element weights, Where where) {
  Scope::Inside inside(scope);
  Tensor table = scope.weight("weight", {vocabulary, width}, weights, where);
  return lookup(table, indices, vocabulary, where);
}

//===----------------------------------------------------------------------===//
// Entries and models
//===----------------------------------------------------------------------===//

Tensor Entry::input(const std::string &name, const Dims &dims, Element type,
                    Where where) {
  Maker maker("input", entry, where);
  Shape shape;
  if (!dsl::isNameGiven(maker, name) || !dsl::isFree(maker, name) ||
      !maker.resolve(dims, "'" + name + "'", shape))
    return Tensor::failed();
  Node *node = dsl::addLeaf(maker, Kind::Input, type, shape, name);
  entry->inputs.push_back(node);
  return Tensor(node);
}

void Entry::output(const std::string &name, const Tensor &value, Where where) {
  Maker maker("output", {value}, where);
  maker.entry = entry;
  if (value.hasFailed)
    return;
  if (!value.node) {
    maker.error("output '" + name +
                "' is an empty Tensor: nothing was assigned to it");
    return;
  }
  if (!maker)
    return;
  if (value.node->entry != entry) {
    maker.error("output '" + name + "' of entry '" + entry->name + "' is " +
                dsl::describe(value.node) + " of entry '" +
                value.node->entry->name + "'");
    return;
  }
  for (const dsl::Output &other : entry->outputs)
    if (other.name == name) {
      maker.error("entry '" + entry->name + "' has two outputs '" + name + "'",
                  {{other.place, "the first one"}});
      return;
    }
  if (dsl::isNameGiven(maker, name))
    entry->outputs.push_back({name, value.node, maker.place});
}

Model::Model(std::string name, Where where) : graph(std::make_shared<Graph>()) {
  graph->name = std::move(name);
  graph->place = dsl::toPlace(where);
}

Entry Model::entry(const std::string &name, const Dims &sizes, Where where) {
  dsl::Place place = dsl::toPlace(where);
  for (const dsl::Entry &other : graph->entries)
    if (other.name == name)
      graph->error(place, "the model has two entries '" + name + "'",
                   {{other.place, "the first one"}});
  if (name.empty())
    graph->error(place, "the name of an entry is empty");
  dsl::Entry &fresh = graph->entries.emplace_back();
  fresh.graph = graph.get();
  fresh.name = name;
  fresh.place = place;
  Maker maker("entry", &fresh, where);
  for (const Dim &dim : sizes) {
    Shape shape;
    maker.resolve(dim, "entry '" + name + "'", shape);
  }
  return Entry(&fresh);
}

std::string Model::errors() const { return toText(graph->diagnostics); }

} // namespace lang
} // namespace cleave

//===- Maker.cpp - One op while it is checked and made --------------------===//
#include "dsl/Maker.h"
#include "dsl/Names.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace cleave::dsl {

Place toPlace(const Where &where) {
  return {where.file_name(), where.line(), where.column()};
}

std::string describe(const Node *node) {
  return "'" + node->name + "' " + toText(node->shape);
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

int BodyBuilder::add(Step step) {
  body.steps.push_back(std::move(step));
  return static_cast<int>(body.steps.size()) - 1;
}

int BodyBuilder::argument(unsigned operand, Element type) {
  return add({Fn::Argument, type, static_cast<int>(operand)});
}

int BodyBuilder::index(const std::string &dim) {
  Step step{Fn::Index, i64};
  step.dim = dim;
  return add(std::move(step));
}

int BodyBuilder::constant(double value, Element type) {
  return add({Fn::Constant, type, -1, -1, -1, value});
}

int BodyBuilder::load(unsigned operand, Element type, std::vector<int> at) {
  Step step{Fn::Load, type, static_cast<int>(operand)};
  step.at = std::move(at);
  return add(std::move(step));
}

int BodyBuilder::op(Fn fn, int a, int b) { return add({fn, type(a), a, b}); }

int BodyBuilder::compare(Fn fn, int a, int b) { return add({fn, i1, a, b}); }

int BodyBuilder::select(int condition, int yes, int no) {
  return add({Fn::Select, type(yes), condition, yes, no});
}

int BodyBuilder::cast(int step, Element to) {
  return type(step) == to ? step : add({Fn::Cast, to, step});
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

/// The innermost loop around a region.
static const Region *loopOf(const Region *region) {
  while (region && !region->isLoop())
    region = region->parent;
  return region;
}

/// Values of a loop are there while the loop is built.
static bool isVisible(const Node *node, const Region *current) {
  const Region *loop = loopOf(node->region);
  return !loop || isWithin(current, loop);
}

Maker::Maker(std::string op, const std::vector<Tensor> &operands,
             const Where &where)
    : op(std::move(op)), place(toPlace(where)), usable(!operands.empty()) {
  const Node *first = nullptr;
  for (const Tensor &tensor : operands) {
    nodes.push_back(tensor.node);
    usable &= tensor.node != nullptr;
    isReported |= tensor.hasFailed;
    if (!tensor.node)
      continue;
    if (!first) {
      first = tensor.node;
      entry = first->entry;
    } else if (tensor.node->entry != entry) {
      error(this->op + " combines " + describe(first) + " of entry '" +
                entry->name + "' with " + describe(tensor.node) +
                " of entry '" + tensor.node->entry->name +
                "'; entries share weights and states, nothing else",
            {{first->place, "'" + first->name + "' is made here"},
             {tensor.node->place, "'" + tensor.node->name + "' is made here"}});
      return;
    }
  }
  for (const Node *node : nodes)
    if (node && !isVisible(node, entry->current)) {
      error("'" + node->name + "' " + toText(node->shape) +
                " is made in each turn of the loop '" +
                loopOf(node->region)->scope +
                "'; outside of it, use what loop() returns",
            {{node->place, "it is made here"}});
      return;
    }
  for (size_t i = 0; first && i < operands.size(); ++i)
    if (!operands[i].node && !operands[i].hasFailed)
      error("operand " + std::to_string(i) + " of " + this->op +
            " is an empty Tensor: nothing was assigned to it");
}

bool Maker::error(std::string text, std::vector<Note> notes) {
  entry->graph->error(place, std::move(text), std::move(notes));
  usable = false;
  isReported = true;
  return false;
}

Tensor Maker::failed() const {
  return isReported ? Tensor::failed() : Tensor();
}

bool Maker::resolve(const Dims &dims, const std::string &user, Shape &shape) {
  for (const Dim &dim : dims) {
    const std::string &name = dim.name();
    if (name.empty())
      return error("a dim of " + user + " has no name");
    if (dim.size() < 0)
      return error("dim '" + name + "' has size " + std::to_string(dim.size()) +
                   "; sizes are at least 1");
    if (find(shape, name))
      return error(user + " has dim '" + name +
                   "' twice; give one of them another name");
    auto known = entry->sizes.find(name);
    if (known == entry->sizes.end() && dim.size() == 0) {
      // Said once; whoever has it later is empty too.
      entry->sizes[name] = {0, place, user};
      return error("dim '" + name + "' has no size in entry '" + entry->name +
                   "'; give it one: Dim(\"" + name + "\", size), or entry(\"" +
                   entry->name + "\", {dim(size)})");
    }
    if (known == entry->sizes.end())
      known = entry->sizes.insert({name, {dim.size(), place, user}}).first;
    if (known->second.size == 0) {
      usable = false;
      isReported = true;
      return false;
    }
    if (dim.size() != 0 && dim.size() != known->second.size)
      return error(
          "dim '" + name + "' has size " + std::to_string(dim.size()) + " in " +
              user + ", and " + std::to_string(known->second.size) +
              " before; a dim has one size in an entry",
          {{known->second.place, "first used by " + known->second.by}});
    shape.push_back({name, known->second.size});
  }
  return true;
}

bool Maker::take(const Node *node, const Dims &dims,
                 std::vector<std::string> &names, const std::string &why) {
  for (const Dim &dim : dims) {
    const DimSize *found = find(node->shape, dim.name());
    if (!found)
      return error(op + " " + why + " '" + dim.name() + "', which " +
                       describe(node) + " does not have" +
                       suggestion(dim.name(), namesOf(node->shape)),
                   {{node->place, "'" + node->name + "' is made here"}});
    if (dim.size() != 0 && dim.size() != found->size)
      return error("dim '" + dim.name() + "' has size " +
                       std::to_string(dim.size()) + " here, and " +
                       std::to_string(found->size) + " in " + describe(node),
                   {{node->place, "'" + node->name + "' is made here"}});
    if (std::find(names.begin(), names.end(), dim.name()) != names.end())
      return error(op + " names dim '" + dim.name() + "' twice");
    names.push_back(dim.name());
  }
  return true;
}

bool Maker::isFloatHere(const Node *node) {
  return isFloat(node->type) ||
         error(op + " computes with floats, and " + describe(node) + " is " +
               nameOf(node->type) + "; cast it");
}

bool Maker::isIntegerHere(const Node *node, const std::string &what) {
  bool integer = !isFloat(node->type) && node->type != i1;
  return integer || error(what + " of " + op + " are integers, and " +
                          describe(node) + " is " + nameOf(node->type));
}

bool Maker::isPosition(const Node *node, const std::string &what) {
  if (!isFloat(node->type) && node->type != i1 && node->shape.empty())
    return true;
  return error(what + " of " + op + " is an integer without dims, and " +
               describe(node) + " is " + nameOf(node->type));
}

bool Maker::promote(const std::vector<Element> &types, Element &result) {
  auto width = [](Element type) {
    return type == f64 ? 3 : type == f32 ? 2 : 1;
  };
  result = types.front();
  for (Element type : types) {
    bool mixes = type == result || (isFloat(type) && isFloat(result) &&
                                    width(type) != width(result));
    if (!mixes)
      return error(op + " mixes " + nameOf(result) + " and " + nameOf(type) +
                   "; cast one of them");
    if (type != result && width(type) > width(result))
      result = type;
  }
  return true;
}

bool Maker::evaluate(const Scalar &scalar, double &value) {
  value = scalar.factor;
  if (!scalar.base)
    return true;
  Shape shape;
  if (!resolve(*scalar.base, op, shape))
    return false;
  value *= std::pow(static_cast<double>(shape[0].size), scalar.power);
  return true;
}

bool Maker::isOfType(double value, Element type) {
  if (isFloat(type))
    return true;
  int bits = type == i64 ? 63 : type == i32 ? 31 : type == i8 ? 7 : 0;
  double end = std::ldexp(1.0, bits), least = type == i1 ? 0 : -end;
  bool fits = value == std::floor(value) && value >= least &&
              (type == i1 ? value <= 1 : value < end);
  if (fits)
    return true;
  char text[32];
  std::snprintf(text, sizeof(text), "%.9g", value);
  return error(std::string(text) + " is not a number of type " + nameOf(type));
}

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

std::string uniqueName(Entry &entry, const std::string &wanted) {
  std::string name = wanted;
  for (unsigned i = 2; !entry.names.insert(name).second; ++i)
    name = wanted + std::to_string(i);
  return name;
}

Node Maker::start(Kind kind, Element type, Shape shape) const {
  Node node;
  node.kind = kind;
  node.type = type;
  node.shape = std::move(shape);
  return node;
}

Node *Maker::finish(Node node, const std::string &name) {
  node.scope = entry->scopes.back();
  node.name = uniqueName(*entry, join(node.scope, name.empty() ? op : name));
  node.place = place;
  node.region = entry->current;
  node.entry = entry;
  entry->nodes.push_back(std::move(node));
  entry->current->items.emplace_back(&entry->nodes.back());
  return &entry->nodes.back();
}

static std::vector<Node *>
mutableNodes(const std::vector<const Node *> &nodes) {
  std::vector<Node *> result;
  for (const Node *node : nodes)
    result.push_back(const_cast<Node *>(node));
  return result;
}

Node *Maker::map(std::vector<const Node *> operands, Body body,
                 std::optional<Shape> shape, const std::string &part) {
  Node node = start(Kind::Map, body.steps.back().type,
                    shape ? *shape : commonShape(operands));
  node.operands = mutableNodes(operands);
  node.body = std::move(body);
  return finish(std::move(node), part.empty() ? op : op + "_" + part);
}

Node *Maker::reduce(Reduction kind, std::vector<const Node *> operands,
                    Body body, Shape shape,
                    const std::vector<std::string> &over,
                    const std::string &part) {
  Node node = start(Kind::Reduce, body.steps.back().type, std::move(shape));
  node.operands = mutableNodes(operands);
  node.body = std::move(body);
  node.reduction = kind;
  node.over = over;
  return finish(std::move(node), part.empty() ? op : op + "_" + part);
}

const Node *Maker::reordered(const Node *node, const Shape &order) {
  if (node->shape == order)
    return node;
  BodyBuilder body;
  body.argument(0, node->type);
  return map({node}, std::move(body.body), order);
}

const Node *Maker::casted(const Node *node, Element type) {
  if (node->type == type)
    return node;
  BodyBuilder body;
  body.cast(body.argument(0, node->type), type);
  return map({node}, std::move(body.body));
}

Shape commonShape(const std::vector<const Node *> &operands) {
  auto hasAll = [&](const Node *node) {
    return std::all_of(operands.begin(), operands.end(), [&](const Node *o) {
      return std::all_of(o->shape.begin(), o->shape.end(),
                         [&](const DimSize &dim) {
                           return find(node->shape, dim.name) != nullptr;
                         });
    });
  };
  auto widest = std::find_if(operands.begin(), operands.end(), hasAll);
  if (widest != operands.end())
    return (*widest)->shape;
  Shape shape;
  for (const Node *operand : operands)
    for (const DimSize &dim : operand->shape)
      if (!find(shape, dim.name))
        shape.push_back(dim);
  return shape;
}

Shape without(const Shape &shape, const std::vector<std::string> &names) {
  Shape rest;
  for (const DimSize &dim : shape)
    if (std::find(names.begin(), names.end(), dim.name) == names.end())
      rest.push_back(dim);
  return rest;
}

std::vector<std::string> namesOf(const Shape &shape) {
  std::vector<std::string> names;
  for (const DimSize &dim : shape)
    names.push_back(dim.name);
  return names;
}

} // namespace cleave::dsl

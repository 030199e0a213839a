//===- Moves.cpp - Ops that move elements ---------------------------------===//
#include "dsl/Maker.h"

#include <algorithm>

namespace cleave {
namespace dsl {
namespace {

/// The shape with one dim replaced by others.
Shape replaced(const Shape &shape, const std::string &name,
               const Shape &others) {
  Shape result;
  for (const DimSize &dim : shape) {
    if (dim.name != name)
      result.push_back(dim);
    else
      result.insert(result.end(), others.begin(), others.end());
  }
  return result;
}

unsigned axisOf(const Shape &shape, const std::string &name) {
  return static_cast<unsigned>(find(shape, name) - shape.data());
}

/// A dim that an op puts into a tensor must not be there already.
bool isNew(Maker &maker, const Node *node, const std::string &from,
           const Shape &into) {
  for (const DimSize &dim : into)
    if (dim.name != from && find(node->shape, dim.name))
      return maker.error(maker.op + " would give " + describe(node) +
                         " a second dim '" + dim.name + "'");
  return true;
}

/// What slices and pads have in common: `from` becomes `into`.
bool takesDim(Maker &maker, const Node *node, const Dim &from, const Dim &into,
              DimSize &old, DimSize &fresh) {
  std::vector<std::string> names;
  Shape shape;
  if (!maker.take(node, from, names, "works along") ||
      !maker.resolve(into, maker.op, shape) ||
      !isNew(maker, node, names[0], shape))
    return false;
  old = *find(node->shape, names[0]);
  fresh = shape[0];
  return true;
}

/// The sizes that a dim is split into; the one that is not known follows.
bool splitSizes(Maker &maker, const Node *node, const DimSize &from,
                const Dims &into, Shape &shape) {
  int64_t product = 1;
  const Dim *open = nullptr;
  for (const Dim &dim : into) {
    auto known = maker.entry->sizes.find(dim.name());
    if (dim.size() == 0 && known == maker.entry->sizes.end()) {
      if (open)
        return maker.error("neither '" + open->name() + "' nor '" + dim.name() +
                           "' has a size; split finds one of them");
      open = &dim;
    } else {
      product *= dim.size() ? dim.size() : known->second.size;
    }
  }
  if (open && (product < 1 || from.size % product != 0))
    return maker.error("split of '" + from.name + "' (size " +
                       std::to_string(from.size) + ") leaves no size for '" +
                       open->name() + "': the others multiply to " +
                       std::to_string(product));
  std::vector<Dim> dims(into.begin(), into.end());
  if (open)
    for (Dim &dim : dims)
      if (dim.name() == open->name())
        dim = dim(from.size / product);
  if (!maker.resolve(dims, maker.op, shape) ||
      !isNew(maker, node, from.name, shape))
    return false;
  return numElements(shape) == from.size ||
         maker.error("split of '" + from.name + "' (size " +
                     std::to_string(from.size) + ") into " + toText(shape) +
                     ": the sizes multiply to " +
                     std::to_string(numElements(shape)));
}

/// A part of a concat along `dim`, with its others dims as they lie in the
/// first part, which is joined along `firstDim`.
Node *joinedPart(Maker &maker, const Node *node, const Dim &dim,
                 const Dim &firstDim) {
  std::vector<std::string> names;
  if (!maker.take(node, dim, names, "joins along"))
    return nullptr;
  const Node *first = maker[0];
  Shape wanted =
      replaced(first->shape, firstDim.name(), {*find(node->shape, names[0])});
  bool fits = wanted.size() == node->shape.size() && node->type == first->type;
  for (const DimSize &d : wanted)
    fits &= find(node->shape, d.name) != nullptr;
  if (fits)
    return const_cast<Node *>(maker.reordered(node, wanted));
  maker.error("concat joins " + describe(node) + " of " + nameOf(node->type) +
              " to " + describe(first) + " of " + nameOf(first->type) +
              "; their other dims and types must be equal");
  return nullptr;
}

Tensor reshaped(Maker &maker, const Node *node, Shape shape) {
  Node result = maker.start(Kind::Reshape, node->type, std::move(shape));
  result.operands = {const_cast<Node *>(node)};
  return Tensor(maker.finish(std::move(result)));
}

} // namespace
} // namespace dsl

using dsl::Kind;
using dsl::Maker;
using dsl::Node;
using dsl::Shape;

inline namespace lang {

std::vector<Dim> Tensor::dims() const {
  std::vector<Dim> dims;
  if (node)
    for (const dsl::DimSize &dim : node->shape)
      dims.push_back(Dim(dim.name, dim.size));
  return dims;
}

Element Tensor::type() const { return node ? node->type : f32; }

Tensor Tensor::rename(const Dim &from, const Dim &to, Where where) const {
  Maker maker("rename", {*this}, where);
  std::vector<std::string> names;
  if (!maker || !maker.take(node, from, names, "replaces"))
    return maker.failed();
  int64_t size = find(node->shape, names[0])->size;
  bool isOpen = to.size() == 0 && !maker.entry->sizes.count(to.name());
  Shape fresh;
  if (!maker.resolve(isOpen ? to(size) : to, "rename", fresh) ||
      !dsl::isNew(maker, node, names[0], fresh))
    return maker.failed();
  if (fresh[0].size != size) {
    maker.error("rename of '" + names[0] + "' (size " + std::to_string(size) +
                    ") to '" + fresh[0].name + "' (size " +
                    std::to_string(fresh[0].size) + "): a name has one size",
                {{maker.entry->sizes.at(fresh[0].name).place,
                  "'" + fresh[0].name + "' first used by " +
                      maker.entry->sizes.at(fresh[0].name).by}});
    return maker.failed();
  }
  Node result = maker.start(Kind::Rename, node->type,
                            dsl::replaced(node->shape, names[0], fresh));
  result.operands = {node};
  return Tensor(maker.finish(std::move(result)));
}

Tensor Tensor::named(const std::string &name, Where where) const {
  Maker maker("named", {*this}, where);
  if (!maker)
    return maker.failed();
  if (node->isNamed || node->isLeaf()) {
    maker.error("'" + node->name +
                "' has a name already; name the result of "
                "an op, and once");
    return maker.failed();
  }
  std::string full = dsl::join(node->scope, name);
  if (name.empty() || !maker.entry->names.insert(full).second) {
    maker.error(name.empty() ? "the name of a tensor is empty"
                             : "the name '" + full + "' is taken in entry '" +
                                   maker.entry->name + "'");
    return maker.failed();
  }
  node->name = full;
  node->isNamed = true;
  return *this;
}

Tensor split(const Tensor &x, const Dim &from, const Dims &into, Where where) {
  Maker maker("split", {x}, where);
  std::vector<std::string> names;
  Shape shape;
  if (!maker || !maker.take(x.node, from, names, "divides") ||
      !dsl::splitSizes(maker, x.node, *find(x.node->shape, names[0]), into,
                       shape))
    return maker.failed();
  return dsl::reshaped(maker, x.node,
                       dsl::replaced(x.node->shape, names[0], shape));
}

Tensor merge(const Tensor &x, const Dims &from, const Dim &into, Where where) {
  Maker maker("merge", {x}, where);
  std::vector<std::string> names;
  if (!maker || !maker.take(x.node, from, names, "joins"))
    return maker.failed();
  if (names.empty()) {
    maker.error("merge joins no dim; name at least one");
    return maker.failed();
  }
  Shape joined;
  for (const std::string &name : names)
    joined.push_back(*find(x.node->shape, name));
  int64_t size = numElements(joined);
  bool isOpen = into.size() == 0 && !maker.entry->sizes.count(into.name());
  Shape fresh;
  if (!maker.resolve(isOpen ? into(size) : into, "merge", fresh))
    return maker.failed();
  if (fresh[0].size != size) {
    maker.error("merge of " + toText(joined) + " into '" + fresh[0].name +
                "' (size " + std::to_string(fresh[0].size) +
                "): the sizes multiply to " + std::to_string(size));
    return maker.failed();
  }
  if (find(dsl::without(x.node->shape, names), fresh[0].name)) {
    maker.error("merge would give " + dsl::describe(x.node) +
                " a second dim '" + fresh[0].name + "'");
    return maker.failed();
  }
  // The dims side by side, where the first of them lies.
  std::vector<std::string> others(names.begin() + 1, names.end());
  Shape rest = dsl::without(x.node->shape, others);
  const Node *ordered =
      maker.reordered(x.node, dsl::replaced(rest, names[0], joined));
  return dsl::reshaped(maker, ordered, dsl::replaced(rest, names[0], fresh));
}

Tensor reorder(const Tensor &x, const Dims &order, Where where) {
  Maker maker("reorder", {x}, where);
  std::vector<std::string> names;
  if (!maker || !maker.take(x.node, order, names, "places"))
    return maker.failed();
  if (names.size() != x.node->shape.size()) {
    maker.error("reorder places " + std::to_string(names.size()) + " dims of " +
                dsl::describe(x.node) + "; name each of them");
    return maker.failed();
  }
  Shape shape;
  for (const std::string &name : names)
    shape.push_back(*find(x.node->shape, name));
  return Tensor(const_cast<Node *>(maker.reordered(x.node, shape)));
}

Tensor slice(const Tensor &x, const Dim &from, const Dim &into, int64_t begin,
             int64_t stride, Where where) {
  Maker maker("slice", {x}, where);
  dsl::DimSize old, fresh;
  if (!maker || !dsl::takesDim(maker, x.node, from, into, old, fresh))
    return maker.failed();
  int64_t last = begin + (fresh.size - 1) * stride;
  if (begin < 0 || stride < 1 || last >= old.size) {
    maker.error("slice takes indices " + std::to_string(begin) + " to " +
                std::to_string(last) + " by " + std::to_string(stride) +
                " of '" + old.name + "', which has 0 to " +
                std::to_string(old.size - 1));
    return maker.failed();
  }
  Node node = maker.start(Kind::Slice, x.node->type,
                          dsl::replaced(x.node->shape, old.name, {fresh}));
  node.operands = {x.node};
  node.axis = dsl::axisOf(x.node->shape, old.name);
  node.begin = begin;
  node.stride = stride;
  return Tensor(maker.finish(std::move(node)));
}

Tensor slice(const Tensor &x, const Dim &from, const Dim &into,
             const Tensor &begin, Where where) {
  Maker maker("slice", {x, begin}, where);
  dsl::DimSize old, fresh;
  if (!maker || !maker.isPosition(begin.node, "the beginning") ||
      !dsl::takesDim(maker, x.node, from, into, old, fresh))
    return maker.failed();
  if (fresh.size > old.size) {
    maker.error("slice takes " + std::to_string(fresh.size) + " of '" +
                old.name + "', which has " + std::to_string(old.size));
    return maker.failed();
  }
  Node node = maker.start(Kind::Slice, x.node->type,
                          dsl::replaced(x.node->shape, old.name, {fresh}));
  node.operands = {x.node, begin.node};
  node.axis = dsl::axisOf(x.node->shape, old.name);
  return Tensor(maker.finish(std::move(node)));
}

Tensor pad(const Tensor &x, const Dim &from, const Dim &into, int64_t low,
           double value, Where where) {
  Maker maker("pad", {x}, where);
  dsl::DimSize old, fresh;
  if (!maker || !dsl::takesDim(maker, x.node, from, into, old, fresh))
    return maker.failed();
  if (!maker.isOfType(value, x.node->type))
    return maker.failed();
  if (low < 0 || low + old.size > fresh.size) {
    maker.error("pad puts '" + old.name + "' (size " +
                std::to_string(old.size) + ") behind " + std::to_string(low) +
                " into '" + fresh.name + "' (size " +
                std::to_string(fresh.size) + "), where it has no room");
    return maker.failed();
  }
  Node node = maker.start(Kind::Pad, x.node->type,
                          dsl::replaced(x.node->shape, old.name, {fresh}));
  node.operands = {x.node};
  node.axis = dsl::axisOf(x.node->shape, old.name);
  node.begin = low;
  node.fill = value;
  return Tensor(maker.finish(std::move(node)));
}

Tensor concat(const std::vector<Tensor> &tensors, const Dims &along,
              const Dim &into, Where where) {
  Maker maker("concat", tensors, where);
  if (!maker)
    return maker.failed();
  if (along.size() != 1 && along.size() != tensors.size()) {
    maker.error("concat joins " + std::to_string(tensors.size()) +
                " tensors along " + std::to_string(along.size()) +
                " dims; name one for each, or one for all");
    return maker.failed();
  }
  std::vector<Node *> parts;
  int64_t total = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const Dim &dim = along.begin()[along.size() == 1 ? 0 : i];
    Node *part = dsl::joinedPart(maker, tensors[i].node, dim, *along.begin());
    if (!part)
      return maker.failed();
    parts.push_back(part);
    total += find(part->shape, dim.name())->size;
  }
  bool isOpen = into.size() == 0 && !maker.entry->sizes.count(into.name());
  Shape fresh;
  const Node *first = tensors[0].node;
  const std::string &old = along.begin()->name();
  if (!maker.resolve(isOpen ? into(total) : into, "concat", fresh) ||
      !dsl::isNew(maker, first, old, fresh))
    return maker.failed();
  if (fresh[0].size != total) {
    maker.error("concat joins " + std::to_string(total) + " into '" +
                fresh[0].name + "', which has size " +
                std::to_string(fresh[0].size));
    return maker.failed();
  }
  Node node = maker.start(Kind::Concat, first->type,
                          dsl::replaced(first->shape, old, fresh));
  node.operands = parts;
  node.axis = dsl::axisOf(first->shape, old);
  return Tensor(maker.finish(std::move(node)));
}

Tensor update(const Tensor &x, const Dim &dim, const Tensor &fresh,
              const Dim &freshDim, const Tensor &position, Where where) {
  Maker maker("update", {x, fresh, position}, where);
  std::vector<std::string> names, freshNames;
  if (!maker || !maker.take(x.node, dim, names, "writes along") ||
      !maker.take(fresh.node, freshDim, freshNames, "writes along") ||
      !maker.isPosition(position.node, "the position"))
    return maker.failed();
  dsl::DimSize part = *find(fresh.node->shape, freshNames[0]);
  Shape wanted = dsl::replaced(x.node->shape, names[0], {part});
  bool fits = wanted.size() == fresh.node->shape.size();
  for (const dsl::DimSize &d : wanted)
    fits &= find(fresh.node->shape, d.name) != nullptr;
  if (!fits || part.size > find(x.node->shape, names[0])->size) {
    maker.error("update writes " + dsl::describe(fresh.node) + " into " +
                dsl::describe(x.node) + "; it must have the dims " +
                toText(wanted) + ", at most as many of '" + part.name +
                "' as of '" + names[0] + "'");
    return maker.failed();
  }
  const Node *ordered =
      maker.reordered(maker.casted(fresh.node, x.node->type), wanted);
  Node node = maker.start(Kind::Update, x.node->type, x.node->shape);
  node.operands = {x.node, const_cast<Node *>(ordered), position.node};
  node.axis = dsl::axisOf(x.node->shape, names[0]);
  return Tensor(maker.finish(std::move(node)));
}

Tensor lookup(const Tensor &table, const Tensor &indices, const Dim &over,
              Where where) {
  Maker maker("lookup", {table, indices}, where);
  std::vector<std::string> names;
  if (!maker || !maker.take(table.node, over, names, "looks along") ||
      !maker.isIntegerHere(indices.node, "the indices"))
    return maker.failed();
  Shape shape = indices.node->shape;
  dsl::BodyBuilder body;
  int row = body.cast(body.argument(1, indices.node->type), i64);
  std::vector<int> at;
  for (const dsl::DimSize &dim : table.node->shape) {
    bool isRow = dim.name == names[0];
    at.push_back(isRow ? row : body.index(dim.name));
    if (!isRow && !find(shape, dim.name))
      shape.push_back(dim);
  }
  body.load(0, table.node->type, at);
  return Tensor(
      maker.map({table.node, indices.node}, std::move(body.body), shape));
}

} // namespace lang
} // namespace cleave

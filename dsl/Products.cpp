//===- Products.cpp - Products and reductions -----------------------------===//
#include "dsl/Maker.h"

#include <algorithm>

namespace cleave {
namespace dsl {
namespace {

/// Reduces with a combiner; the body first maps each element.
Tensor reduction(const char *op, const Tensor &x, const Dims &over,
                 const Where &where, Reduction kind) {
  Maker maker(op, {x}, where);
  std::vector<std::string> names;
  if (!maker || !maker.take(x.node, over, names, "reduces"))
    return maker.failed();
  if (x.node->type == i1) {
    maker.error(maker.op + " works on numbers, not on i1; cast it");
    return maker.failed();
  }
  if (names.empty())
    return x;
  BodyBuilder body;
  body.argument(0, x.node->type);
  return Tensor(maker.reduce(kind, {x.node}, std::move(body.body),
                             without(x.node->shape, names), names));
}

/// What both operands have and neither sums is a batch dim.
Shape productShape(const Node *a, const Node *b,
                   const std::vector<std::string> &over) {
  Shape shape = without(a->shape, over);
  for (const DimSize &dim : without(b->shape, over))
    if (!find(shape, dim.name))
      shape.push_back(dim);
  return shape;
}

} // namespace
} // namespace dsl

inline namespace lang {
using dsl::Kind;
using dsl::Maker;
using dsl::Reduction;

Tensor dot(const Tensor &a, const Tensor &b, const Dims &over, Where where) {
  Maker maker("dot", {a, b}, where);
  std::vector<std::string> names, again;
  Element type;
  if (!maker || !maker.take(a.node, over, names, "sums over") ||
      !maker.take(b.node, over, again, "sums over"))
    return maker.failed();
  if (names.empty()) {
    maker.error("dot sums over no dim; multiply with *");
    return maker.failed();
  }
  if (!maker.promote({a.node->type, b.node->type}, type))
    return maker.failed();
  if (type == i1 || type == i8) {
    maker.error(std::string("dot of ") + dsl::nameOf(type) +
                "; cast the operands to a wider type");
    return maker.failed();
  }
  dsl::Node node =
      maker.start(Kind::Dot, type, dsl::productShape(a.node, b.node, names));
  node.operands = {a.node, b.node};
  node.over = names;
  return Tensor(maker.finish(std::move(node)));
}

Tensor sum(const Tensor &x, const Dims &over, Where where) {
  return dsl::reduction("sum", x, over, where, Reduction::Sum);
}
Tensor prod(const Tensor &x, const Dims &over, Where where) {
  return dsl::reduction("prod", x, over, where, Reduction::Prod);
}
Tensor max(const Tensor &x, const Dims &over, Where where) {
  return dsl::reduction("max", x, over, where, Reduction::Max);
}
Tensor min(const Tensor &x, const Dims &over, Where where) {
  return dsl::reduction("min", x, over, where, Reduction::Min);
}

Tensor mean(const Tensor &x, const Dims &over, Where where) {
  Maker maker("mean", {x}, where);
  std::vector<std::string> names;
  if (!maker || !maker.isFloatHere(x.node) ||
      !maker.take(x.node, over, names, "reduces"))
    return maker.failed();
  int64_t count = 1;
  for (const std::string &name : names)
    count *= find(x.node->shape, name)->size;
  return Operand(sum(x, over, where), where) / static_cast<double>(count);
}

Tensor argmax(const Tensor &x, const Dim &over, Where where) {
  Maker maker("argmax", {x}, where);
  std::vector<std::string> names;
  if (!maker || !maker.take(x.node, over, names, "looks along"))
    return maker.failed();
  if (x.node->type == i1) {
    maker.error("argmax works on numbers, not on i1; cast it");
    return maker.failed();
  }
  dsl::Node node =
      maker.start(Kind::ArgMax, i32, dsl::without(x.node->shape, names));
  node.operands = {x.node};
  node.over = names;
  return Tensor(maker.finish(std::move(node)));
}

TopK top_k(const Tensor &x, const Dim &over, const Dim &k, Where where) {
  Maker maker("top_k", {x}, where);
  std::vector<std::string> names;
  dsl::Shape count;
  if (!maker || !maker.take(x.node, over, names, "looks along") ||
      !maker.isFloatHere(x.node) || !maker.resolve(k, "top_k", count))
    return {maker.failed(), maker.failed()};
  const dsl::DimSize &all = *find(x.node->shape, names[0]);
  if (count[0].size > all.size) {
    maker.error("top_k takes " + std::to_string(count[0].size) + " of '" +
                all.name + "', which has " + std::to_string(all.size));
    return {maker.failed(), maker.failed()};
  }
  dsl::Shape rows = dsl::without(x.node->shape, names), order = rows;
  order.push_back(all);
  rows.push_back(count[0]);
  const dsl::Node *last = maker.reordered(x.node, order);
  dsl::Node node = maker.start(Kind::TopK, x.node->type, rows);
  node.operands = {const_cast<dsl::Node *>(last)};
  node.over = names;
  dsl::Node *both = maker.finish(std::move(node));
  Tensor parts[2];
  for (unsigned i : {0u, 1u}) {
    dsl::Node part = maker.start(Kind::Pick, i == 0 ? both->type : i32, rows);
    part.operands = {both};
    part.index = i;
    parts[i] =
        Tensor(maker.finish(std::move(part), i == 0 ? "values" : "indices"));
  }
  return {parts[0], parts[1]};
}

} // namespace lang
} // namespace cleave

//===- Parts.cpp - What models are made of, from plainer ops --------------===//
// Written so that the compiler's row kernels take each as one: reductions over
// the same rows, and maps that read the reduced values back.
//===----------------------------------------------------------------------===//
#include "dsl/Maker.h"

#include <cmath>
#include <limits>

namespace cleave {
namespace dsl {
namespace {

/// Floats that sums are made in.
Element wide(Element type) { return type == f64 ? f64 : f32; }

int64_t countOf(const Node *node, const std::vector<std::string> &names) {
  int64_t count = 1;
  for (const std::string &name : names)
    count *= find(node->shape, name)->size;
  return count;
}

/// Sum over `over` of the squares of a node's elements, in f32.
const Node *sumOfSquares(Maker &maker, const Node *x,
                         const std::vector<std::string> &over) {
  BodyBuilder b;
  int value = b.cast(b.argument(0, x->type), wide(x->type));
  b.op(Fn::Mul, value, value);
  return maker.reduce(Reduction::Sum, {x}, std::move(b.body),
                      without(x->shape, over), over, "squares");
}

/// rsqrt(total / count + epsilon).
int inverseRoot(BodyBuilder &b, int total, int64_t count, double epsilon) {
  Element type = b.type(total);
  int mean = b.op(Fn::Div, total, b.constant(static_cast<double>(count), type));
  return b.op(Fn::Rsqrt, b.op(Fn::Add, mean, b.constant(epsilon, type)));
}

/// The gain or bias of a norm has dims of `x` only.
bool fitsNorm(Maker &maker, const Node *x, const Node *part) {
  if (!maker.isFloatHere(part))
    return false;
  for (const DimSize &dim : part->shape)
    if (!find(x->shape, dim.name))
      return maker.error(maker.op + " of " + describe(x) + " takes " +
                         describe(part) + ", whose dim '" + dim.name +
                         "' it does not have");
  return true;
}

const Node *centered(Maker &maker, const Node *x,
                     const std::vector<std::string> &over) {
  BodyBuilder sum;
  sum.cast(sum.argument(0, x->type), wide(x->type));
  const Node *total = maker.reduce(Reduction::Sum, {x}, std::move(sum.body),
                                   without(x->shape, over), over, "sum");
  BodyBuilder b;
  int value = b.cast(b.argument(0, x->type), total->type);
  int count = b.constant(static_cast<double>(countOf(x, over)), total->type);
  b.op(Fn::Sub, value, b.op(Fn::Div, b.argument(1, total->type), count));
  return maker.map({x, total}, std::move(b.body), std::nullopt, "centered");
}

//===----------------------------------------------------------------------===//
// Rope
//===----------------------------------------------------------------------===//

/// Where the elements of a head meet: pairs (i, i + half) or (2i, 2i + 1).
struct Pairs {
  BodyBuilder &b;
  std::string head;
  int64_t size;
  bool interleaved;

  /// The number of the pair that an element belongs to.
  int pair() {
    int e = b.index(head);
    return interleaved ? b.op(Fn::Div, e, b.constant(2, i64))
                       : b.op(Fn::Rem, e, b.constant(size / 2, i64));
  }
  int isFirst() {
    int e = b.index(head);
    if (!interleaved)
      return b.compare(Fn::Lt, e, b.constant(size / 2, i64));
    int odd = b.op(Fn::Rem, e, b.constant(2, i64));
    return b.compare(Fn::Eq, odd, b.constant(0, i64));
  }
  int partner() {
    int e = b.index(head);
    if (interleaved)
      return b.op(Fn::Xor, e, b.constant(1, i64));
    int moved = b.op(Fn::Add, e, b.constant(size / 2, i64));
    return b.op(Fn::Rem, moved, b.constant(size, i64));
  }
};

/// Radians that a pair turns a place, stretched.
int stretched(BodyBuilder &b, int rate, const RopeStretch &stretch) {
  double turns = stretch.context / (2 * M_PI); // in the context, per radian
  double slope = 1 / (stretch.high - stretch.low);
  int along = b.op(Fn::Mul, rate, b.constant(turns * slope, f32));
  along = b.op(Fn::Sub, along, b.constant(stretch.low * slope, f32));
  along = b.op(Fn::Max, along, b.constant(0, f32));
  along = b.op(Fn::Min, along, b.constant(1, f32));
  // 1 / factor where it is 0, 1 where it is 1.
  double slow = 1 / stretch.factor;
  int speed = b.op(Fn::Mul, along, b.constant(1 - slow, f32));
  return b.op(Fn::Mul, rate, b.op(Fn::Add, speed, b.constant(slow, f32)));
}

/// Cosines or signed sines of all places and pairs.
const Node *angles(Maker &maker, const Shape &shape,
                   const std::string &sequence, const Node *place,
                   const Rope &rope, Fn fn) {
  BodyBuilder b;
  const DimSize &head = shape.back();
  Pairs pairs{b, head.name, head.size, rope.interleaved};
  int position;
  if (place && !place->shape.empty())
    position = b.cast(b.argument(0, place->type), i64);
  else
    position = b.index(sequence);
  if (place && place->shape.empty())
    position = b.op(Fn::Add, position, b.cast(b.argument(0, place->type), i64));
  double rate = -2 * std::log(rope.base) / static_cast<double>(head.size);
  int turn = b.op(Fn::Mul, b.cast(pairs.pair(), f32), b.constant(rate, f32));
  int radians = b.op(Fn::Exp, turn);
  if (rope.stretch)
    radians = stretched(b, radians, *rope.stretch);
  int angle = b.op(Fn::Mul, b.cast(position, f32), radians);
  int value = b.op(fn, angle);
  if (fn == Fn::Sin)
    b.select(pairs.isFirst(), b.op(Fn::Neg, value), value);
  std::vector<const Node *> operands;
  if (place)
    operands.push_back(place);
  return maker.map(operands, std::move(b.body), shape,
                   fn == Fn::Cos ? "cosines" : "sines");
}

bool checkRope(Maker &maker, const Node *x, const Rope &rope,
               const std::vector<std::string> &names) {
  int64_t size = find(x->shape, names[1])->size;
  if (size % 2 != 0)
    return maker.error("rope turns pairs, and '" + names[1] +
                       "' has the odd size " + std::to_string(size));
  if (rope.base <= 0)
    return maker.error("the base of rope is a positive number");
  if (const auto &stretch = rope.stretch;
      stretch && (stretch->factor <= 0 || stretch->context <= 0 ||
                  stretch->low <= 0 || stretch->high <= stretch->low))
    return maker.error("the stretch of rope has positive numbers, and its "
                       "'high' is above its 'low'");
  if (rope.offset && rope.positions)
    return maker.error("rope takes an offset or positions, not both");
  if (rope.offset && !maker.isPosition(rope.offset.node, "the offset"))
    return false;
  if (!rope.positions)
    return true;
  const Node *positions = rope.positions.node;
  if (!maker.isIntegerHere(positions, "the positions"))
    return false;
  for (const DimSize &dim : positions->shape)
    if (dim.name == names[1] || !find(x->shape, dim.name))
      return maker.error("the positions of rope lie along dims of " +
                         describe(x) + " but '" + names[1] + "', and " +
                         describe(positions) + " does not");
  return find(positions->shape, names[0]) ||
         maker.error("the positions of rope have the dim '" + names[0] +
                     "', and " + describe(positions) + " does not");
}

/// x * cos + partner * sin.
const Node *turned(Maker &maker, const Node *x, const Node *cosines,
                   const Node *sines, const Rope &rope) {
  BodyBuilder b;
  const DimSize &head = cosines->shape.back();
  Pairs pairs{b, head.name, head.size, rope.interleaved};
  std::vector<int> at;
  for (const DimSize &dim : x->shape)
    at.push_back(dim.name == head.name ? pairs.partner() : b.index(dim.name));
  int own = b.cast(b.argument(0, x->type), f32);
  int other = b.cast(b.load(3, x->type, at), f32);
  int sum = b.op(Fn::Add, b.op(Fn::Mul, own, b.argument(1, f32)),
                 b.op(Fn::Mul, other, b.argument(2, f32)));
  b.cast(sum, x->type);
  return maker.map({x, cosines, sines, x}, std::move(b.body), x->shape);
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

constexpr double kLowest = -std::numeric_limits<double>::infinity();

const Node *masked(Maker &maker, const Node *scores,
                   const std::vector<std::string> &names, const Mask &mask) {
  BodyBuilder b;
  std::vector<const Node *> operands = {scores};
  int value = b.argument(0, scores->type);
  int query = b.index(names[0]), key = b.index(names[1]);
  if (mask.offset) {
    operands.push_back(mask.offset.node);
    int offset = b.cast(b.argument(1, mask.offset.node->type), i64);
    query = b.op(Fn::Add, query, offset);
  }
  int seen = b.compare(Fn::Le, key, query);
  if (mask.window > 0) {
    int width = b.constant(static_cast<double>(mask.window), i64);
    int isNear = b.compare(Fn::Lt, b.op(Fn::Sub, query, key), width);
    seen = b.op(Fn::And, seen, isNear);
  }
  b.select(seen, value, b.constant(kLowest, scores->type));
  return maker.map(operands, std::move(b.body));
}

/// Keys at and behind the length become -inf.
Tensor limited(const Tensor &scores, const Attention &options,
               const Where &where) {
  Maker maker("attend", {scores, options.length}, where);
  std::vector<std::string> names;
  if (!maker || !maker.isIntegerHere(options.length.node, "the lengths") ||
      !maker.take(scores.node, options.keys, names, "limits"))
    return maker.failed();
  for (const DimSize &dim : options.length.node->shape)
    if (!find(scores.node->shape, dim.name)) {
      maker.error("the lengths of attend, " + describe(options.length.node) +
                  ", have the dim '" + dim.name + "', which the scores " +
                  toText(scores.node->shape) + " do not have");
      return maker.failed();
    }
  BodyBuilder b;
  int value = b.argument(0, scores.node->type);
  int length = b.cast(b.argument(1, options.length.node->type), i64);
  int seen = b.compare(Fn::Lt, b.index(names[0]), length);
  b.select(seen, value, b.constant(kLowest, scores.node->type));
  return Tensor(
      maker.map({scores.node, options.length.node}, std::move(b.body)));
}

Tensor toTensor(const Node *node) { return Tensor(const_cast<Node *>(node)); }

} // namespace
} // namespace dsl

inline namespace lang {
using dsl::BodyBuilder;
using dsl::Fn;
using dsl::Maker;
using dsl::Node;

Tensor softmax(const Tensor &x, const Dims &over, Where where) {
  Maker maker("softmax", {x}, where);
  std::vector<std::string> names;
  if (!maker || !maker.isFloatHere(x.node) ||
      !maker.take(x.node, over, names, "works along"))
    return maker.failed();
  dsl::Shape rows = dsl::without(x.node->shape, names);
  Element type = x.node->type, wide = dsl::wide(type);
  BodyBuilder plain;
  plain.cast(plain.argument(0, type), wide);
  const Node *largest = maker.reduce(dsl::Reduction::Max, {x.node}, plain.body,
                                     rows, names, "largest");
  BodyBuilder b;
  int value = b.cast(b.argument(0, type), wide);
  b.op(Fn::Exp, b.op(Fn::Sub, value, b.argument(1, wide)));
  const Node *powers =
      maker.map({x.node, largest}, std::move(b.body), std::nullopt, "powers");
  BodyBuilder sum;
  sum.argument(0, wide);
  const Node *total = maker.reduce(dsl::Reduction::Sum, {powers},
                                   std::move(sum.body), rows, names, "total");
  BodyBuilder share;
  share.cast(
      share.op(Fn::Div, share.argument(0, wide), share.argument(1, wide)),
      type);
  return Tensor(maker.map({powers, total}, std::move(share.body)));
}

Tensor rms_norm(const Tensor &x, const Tensor &gain, const Dims &over,
                double epsilon, Where where) {
  Maker maker("rms_norm", {x, gain}, where);
  std::vector<std::string> names;
  if (!maker || !maker.isFloatHere(x.node) ||
      !maker.take(x.node, over, names, "works along") ||
      !dsl::fitsNorm(maker, x.node, gain.node))
    return maker.failed();
  const Node *squares = dsl::sumOfSquares(maker, x.node, names);
  BodyBuilder b;
  int factor = dsl::inverseRoot(b, b.argument(1, squares->type),
                                dsl::countOf(x.node, names), epsilon);
  int value = b.cast(b.argument(0, x.node->type), squares->type);
  int unit = b.op(Fn::Mul, value, factor);
  int gained = b.op(Fn::Mul, unit,
                    b.cast(b.argument(2, gain.node->type), squares->type));
  b.cast(gained, x.node->type);
  return Tensor(maker.map({x.node, squares, gain.node}, std::move(b.body)));
}

Tensor layer_norm(const Tensor &x, const Tensor &gain, const Tensor &bias,
                  const Dims &over, double epsilon, Where where) {
  Maker maker("layer_norm", {x, gain, bias}, where);
  std::vector<std::string> names;
  if (!maker || !maker.isFloatHere(x.node) ||
      !maker.take(x.node, over, names, "works along") ||
      !dsl::fitsNorm(maker, x.node, gain.node) ||
      !dsl::fitsNorm(maker, x.node, bias.node))
    return maker.failed();
  const Node *centered = dsl::centered(maker, x.node, names);
  const Node *squares = dsl::sumOfSquares(maker, centered, names);
  Element wide = squares->type;
  BodyBuilder b;
  int factor = dsl::inverseRoot(b, b.argument(1, wide),
                                dsl::countOf(x.node, names), epsilon);
  int unit = b.op(Fn::Mul, b.argument(0, wide), factor);
  int gained =
      b.op(Fn::Mul, unit, b.cast(b.argument(2, gain.node->type), wide));
  int shifted =
      b.op(Fn::Add, gained, b.cast(b.argument(3, bias.node->type), wide));
  b.cast(shifted, x.node->type);
  return Tensor(
      maker.map({centered, squares, gain.node, bias.node}, std::move(b.body)));
}

Tensor rope(const Tensor &x, const Dim &sequence, const Dim &head,
            const Rope &options, Where where) {
  std::vector<Tensor> operands = {x};
  for (const Tensor *tensor : {&options.offset, &options.positions})
    if (*tensor || tensor->hasFailed)
      operands.push_back(*tensor);
  Maker maker("rope", operands, where);
  std::vector<std::string> names;
  if (!maker || !maker.isFloatHere(x.node) ||
      !maker.take(x.node, {sequence, head}, names, "works along") ||
      !dsl::checkRope(maker, x.node, options, names))
    return maker.failed();
  const Node *place =
      options.positions ? options.positions.node : options.offset.node;
  dsl::Shape shape;
  if (place && !place->shape.empty())
    shape = place->shape;
  else
    shape = {*find(x.node->shape, names[0])};
  shape.push_back(*find(x.node->shape, names[1]));
  const Node *cosines =
      dsl::angles(maker, shape, names[0], place, options, Fn::Cos);
  const Node *sines =
      dsl::angles(maker, shape, names[0], place, options, Fn::Sin);
  return dsl::toTensor(dsl::turned(maker, x.node, cosines, sines, options));
}

Tensor causal(const Tensor &scores, const Dim &queries, const Dim &keys,
              const Mask &mask, Where where) {
  std::vector<Tensor> operands = {scores};
  if (mask.offset || mask.offset.hasFailed)
    operands.push_back(mask.offset);
  Maker maker("causal", operands, where);
  std::vector<std::string> names;
  if (!maker || !maker.isFloatHere(scores.node) ||
      !maker.take(scores.node, {queries, keys}, names, "compares") ||
      (mask.offset && !maker.isPosition(mask.offset.node, "the offset")))
    return maker.failed();
  if (mask.window < 0) {
    maker.error("the window of causal is " + std::to_string(mask.window) +
                "; it is at least 1, or 0 for all");
    return maker.failed();
  }
  return dsl::toTensor(dsl::masked(maker, scores.node, names, mask));
}

Tensor sliding_window(const Tensor &scores, const Dim &queries, const Dim &keys,
                      int64_t width, const Tensor &offset, Where where) {
  Maker maker("sliding_window", {scores}, where);
  if (maker && width < 1) {
    maker.error("the width of sliding_window is " + std::to_string(width) +
                "; it is at least 1");
    return maker.failed();
  }
  return causal(scores, queries, keys, {width, offset}, where);
}

Tensor attend(const Tensor &q, const Tensor &k, const Tensor &v,
              const Attention &options, Where where) {
  Maker maker("attend", {q, k, v}, where);
  if (!maker)
    return maker.failed();
  Scalar scale = options.scale ? Scalar(*options.scale) : rsqrt(options.head);
  Tensor scores = Operand(dot(q, k, options.head, where), where) * scale;
  if (options.mask.node && options.mask.type() == i1)
    scores =
        select(options.mask, {scores, where}, {dsl::kLowest, where}, where);
  else if (options.mask.node || options.mask.hasFailed)
    scores = Operand(scores, where) + options.mask;
  if (options.causal || options.window > 0)
    scores = causal(scores, options.queries, options.keys,
                    {options.window, options.offset}, where);
  if (options.length.node || options.length.hasFailed)
    scores = dsl::limited(scores, options, where);
  return dot(softmax(scores, options.keys, where), v, options.keys, where);
}

} // namespace lang
} // namespace cleave

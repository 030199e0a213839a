//===- Maker.h - One op while it is checked and made -----------*- C++ -*-===//
#ifndef CLEAVE_DSL_MAKER_H
#define CLEAVE_DSL_MAKER_H

#include "cleave/tensor.h"
#include "dsl/Graph.h"

namespace cleave::dsl {

Place toPlace(const Where &where);
/// "'layer0.attn.wq' [model=4096, kv=8]".
std::string describe(const Node *node);

/// Builds a scalar body step by step; each function returns the step's number.
class BodyBuilder {
public:
  int argument(unsigned operand, Element type);
  int index(const std::string &dim);
  int constant(double value, Element type);
  int load(unsigned operand, Element type, std::vector<int> at);
  int op(Fn fn, int a, int b = -1);
  int compare(Fn fn, int a, int b);
  int select(int condition, int yes, int no);
  /// The step itself if it has the type already.
  int cast(int step, Element type);
  Element type(int step) const { return body.steps[step].type; }

  Body body;

private:
  int add(Step step);
};

/// Checks the operands of one op and makes its nodes. Every check reports what
/// is wrong at the op's line and returns false.
class Maker {
public:
  Maker(std::string op, const std::vector<Tensor> &operands,
        const Where &where);
  /// Of an op without operands.
  Maker(std::string op, Entry *entry, const Where &where)
      : op(std::move(op)), place(toPlace(where)), entry(entry) {}

  /// Whether there is something to compute with.
  explicit operator bool() const { return usable; }
  const Node *operator[](unsigned i) const { return nodes[i]; }

  bool error(std::string text, std::vector<Note> notes = {});
  /// The result of an op that cannot be made. Operands to which nothing was
  /// ever assigned give an empty Tensor that nobody has reported yet.
  Tensor failed() const;
  /// The sizes of dims, from themselves or from the entry. `user` names what
  /// has them, for later messages.
  bool resolve(const Dims &dims, const std::string &user, Shape &shape);
  /// Whether the operand has the dims, each named once; their names.
  bool take(const Node *node, const Dims &dims, std::vector<std::string> &names,
            const std::string &why);
  /// Whether it has an element type of floats.
  bool isFloatHere(const Node *node);
  bool isIntegerHere(const Node *node, const std::string &what);
  /// Whether it is an integer without dims.
  bool isPosition(const Node *node, const std::string &what);
  /// The type that values of these types meet in.
  bool promote(const std::vector<Element> &types, Element &result);
  bool evaluate(const Scalar &scalar, double &value);
  /// Whether a type has the number; floats have all, rounded.
  bool isOfType(double value, Element type);

  Node start(Kind kind, Element type, Shape shape) const;
  /// Appends it to the current region. `name`, if it isn't the op's.
  Node *finish(Node node, const std::string &name = "");
  /// `part` names what only leads to the op's result: "softmax_largest".
  Node *map(std::vector<const Node *> operands, Body body,
            std::optional<Shape> shape = std::nullopt,
            const std::string &part = "");
  Node *reduce(Reduction kind, std::vector<const Node *> operands, Body body,
               Shape shape, const std::vector<std::string> &over,
               const std::string &part = "");
  /// The node in this order of dims; itself if it is so already.
  const Node *reordered(const Node *node, const Shape &order);
  const Node *casted(const Node *node, Element type);

  std::string op;
  Place place;
  Entry *entry = nullptr;

private:
  bool usable = true, isReported = false;
  std::vector<const Node *> nodes;
};

/// The dims of all operands: those of the one that has all, or those of the
/// first and then what the others add.
Shape commonShape(const std::vector<const Node *> &operands);
/// The shape without some dims.
Shape without(const Shape &shape, const std::vector<std::string> &names);
std::vector<std::string> namesOf(const Shape &shape);
/// A name that no other node of the entry has: "attn.dot", "attn.dot2".
std::string uniqueName(Entry &entry, const std::string &wanted);
inline std::string join(const std::string &scope, const std::string &name) {
  return scope.empty() ? name : scope + "." + name;
}

} // namespace cleave::dsl

#endif // CLEAVE_DSL_MAKER_H

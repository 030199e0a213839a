//===- Elementwise.cpp - Ops on each element ------------------------------===//
#include "dsl/Maker.h"

#include <cmath>

namespace cleave {
namespace dsl {
namespace {

enum class Accepts { Numbers, Bits };

/// The line of an operator is where its left tensor, or else its right one, was
/// written.
const Where &whereOf(const Operand &a, const Operand &b) {
  return a.scalar ? b.where : a.where;
}

/// An operator of two operands, of which one at least is a tensor.
class Binary {
public:
  Binary(const char *op, const Operand &a, const Operand &b)
      : maker(op, tensorsOf(a, b), whereOf(a, b)), a(a), b(b) {}

  Tensor make(Fn fn, Accepts accepts, bool compares = false);

private:
  static std::vector<Tensor> tensorsOf(const Operand &a, const Operand &b) {
    std::vector<Tensor> tensors;
    for (const Operand *operand : {&a, &b})
      if (!operand->scalar)
        tensors.push_back(operand->tensor);
    return tensors;
  }
  bool check(Accepts accepts, Element &type);
  /// The operand as a step of the body.
  bool step(const Operand &operand, Element type, int &result);

  Maker maker;
  const Operand &a, &b;
  BodyBuilder body;
  std::vector<const Node *> nodes;
};

bool Binary::check(Accepts accepts, Element &type) {
  std::vector<Element> types;
  for (const Operand *operand : {&a, &b})
    if (!operand->scalar)
      types.push_back(operand->tensor.node->type);
  if (!maker.promote(types, type))
    return false;
  if (accepts == Accepts::Bits && isFloat(type))
    return maker.error(maker.op + " works on i1 and integers, not on " +
                       nameOf(type));
  if (accepts == Accepts::Numbers && type == i1)
    return maker.error(maker.op +
                       " works on numbers, not on i1; cast it, or use & | ^ ~");
  return true;
}

bool Binary::step(const Operand &operand, Element type, int &result) {
  if (!operand.scalar) {
    nodes.push_back(operand.tensor.node);
    result = body.cast(
        body.argument(nodes.size() - 1, operand.tensor.node->type), type);
    return true;
  }
  double value;
  if (!maker.evaluate(*operand.scalar, value))
    return false;
  if (!maker.isOfType(value, type))
    return false;
  result = body.constant(value, type);
  return true;
}

Tensor Binary::make(Fn fn, Accepts accepts, bool compares) {
  Element type;
  int left, right;
  if (!maker || !check(accepts, type) || !step(a, type, left) ||
      !step(b, type, right))
    return maker.failed();
  if (compares)
    body.compare(fn, left, right);
  else
    body.op(fn, left, right);
  return Tensor(maker.map(nodes, std::move(body.body)));
}

Tensor number(const char *op, const Operand &a, const Operand &b, Fn fn) {
  return Binary(op, a, b).make(fn, Accepts::Numbers);
}
Tensor bits(const char *op, const Operand &a, const Operand &b, Fn fn) {
  return Binary(op, a, b).make(fn, Accepts::Bits);
}
Tensor comparison(const char *op, const Operand &a, const Operand &b, Fn fn) {
  return Binary(op, a, b).make(fn, Accepts::Numbers, true);
}

/// A function of one float; `write` continues the body behind its argument.
template <typename Write>
Tensor function(const char *op, const Tensor &x, const Where &where,
                Write write) {
  Maker maker(op, {x}, where);
  if (!maker || !maker.isFloatHere(x.node))
    return maker.failed();
  BodyBuilder body;
  write(body, body.argument(0, x.node->type));
  return Tensor(maker.map({x.node}, std::move(body.body)));
}

Tensor function(const char *op, const Tensor &x, const Where &where, Fn fn) {
  return function(op, x, where, [&](BodyBuilder &b, int a) { b.op(fn, a); });
}

/// 1 / (1 + exp(-x)).
int sigmoid(BodyBuilder &b, int x) {
  int one = b.constant(1, b.type(x));
  int power = b.op(Fn::Exp, b.op(Fn::Neg, x));
  return b.op(Fn::Div, one, b.op(Fn::Add, power, one));
}

/// x * 0.5 * (1 + inner).
int halfOf(BodyBuilder &b, int x, int inner) {
  int one = b.constant(1, b.type(x)), half = b.constant(0.5, b.type(x));
  return b.op(Fn::Mul, b.op(Fn::Mul, half, x), b.op(Fn::Add, inner, one));
}

} // namespace
} // namespace dsl

inline namespace lang {
using dsl::BodyBuilder;
using dsl::Fn;
using dsl::Maker;

Tensor operator+(const Operand &a, const Operand &b) {
  return dsl::number("add", a, b, Fn::Add);
}
Tensor operator-(const Operand &a, const Operand &b) {
  return dsl::number("subtract", a, b, Fn::Sub);
}
Tensor operator*(const Operand &a, const Operand &b) {
  return dsl::number("multiply", a, b, Fn::Mul);
}
Tensor operator/(const Operand &a, const Operand &b) {
  return dsl::number("divide", a, b, Fn::Div);
}
Tensor operator%(const Operand &a, const Operand &b) {
  return dsl::number("remainder", a, b, Fn::Rem);
}
Tensor max(const Operand &a, const Operand &b) {
  return dsl::number("max", a, b, Fn::Max);
}
Tensor min(const Operand &a, const Operand &b) {
  return dsl::number("min", a, b, Fn::Min);
}
Tensor operator==(const Operand &a, const Operand &b) {
  return dsl::comparison("equal", a, b, Fn::Eq);
}
Tensor operator!=(const Operand &a, const Operand &b) {
  return dsl::comparison("not_equal", a, b, Fn::Ne);
}
Tensor operator<(const Operand &a, const Operand &b) {
  return dsl::comparison("less", a, b, Fn::Lt);
}
Tensor operator<=(const Operand &a, const Operand &b) {
  return dsl::comparison("less_equal", a, b, Fn::Le);
}
Tensor operator>(const Operand &a, const Operand &b) {
  return dsl::comparison("greater", a, b, Fn::Gt);
}
Tensor operator>=(const Operand &a, const Operand &b) {
  return dsl::comparison("greater_equal", a, b, Fn::Ge);
}
Tensor operator&(const Operand &a, const Operand &b) {
  return dsl::bits("and", a, b, Fn::And);
}
Tensor operator|(const Operand &a, const Operand &b) {
  return dsl::bits("or", a, b, Fn::Or);
}
Tensor operator^(const Operand &a, const Operand &b) {
  return dsl::bits("xor", a, b, Fn::Xor);
}

Tensor pow(const Operand &a, const Operand &b) {
  std::vector<Tensor> tensors;
  for (const Operand *operand : {&a, &b})
    if (!operand->scalar)
      tensors.push_back(operand->tensor);
  Maker maker("pow", tensors, dsl::whereOf(a, b));
  for (const Tensor &tensor : tensors)
    if (!maker || !maker.isFloatHere(tensor.node))
      return maker.failed();
  return dsl::number("pow", a, b, Fn::Pow);
}

Tensor operator-(const Operand &a) {
  Maker maker("negate", {a.tensor}, a.where);
  if (!maker)
    return maker.failed();
  Element type = a.tensor.node->type;
  if (type == i1) {
    maker.error("negate works on numbers, not on i1; use ~");
    return maker.failed();
  }
  BodyBuilder b;
  int x = b.argument(0, type);
  if (dsl::isFloat(type))
    b.op(Fn::Neg, x);
  else
    b.op(Fn::Sub, b.constant(0, type), x);
  return Tensor(maker.map({a.tensor.node}, std::move(b.body)));
}

Tensor operator~(const Operand &a) {
  Maker maker("not", {a.tensor}, a.where);
  if (!maker)
    return maker.failed();
  Element type = a.tensor.node->type;
  if (dsl::isFloat(type)) {
    maker.error(std::string("not works on i1 and integers, not on ") +
                dsl::nameOf(type));
    return maker.failed();
  }
  BodyBuilder b;
  int x = b.argument(0, type);
  b.op(Fn::Xor, x, b.constant(type == i1 ? 1 : -1, type));
  return Tensor(maker.map({a.tensor.node}, std::move(b.body)));
}

Tensor select(const Tensor &condition, const Operand &yes, const Operand &no,
              Where where) {
  std::vector<Tensor> tensors = {condition};
  std::vector<Element> types;
  for (const Operand *operand : {&yes, &no})
    if (!operand->scalar) {
      tensors.push_back(operand->tensor);
      if (operand->tensor)
        types.push_back(operand->tensor.type());
    }
  Maker maker("select", tensors, where);
  Element type = f32;
  if (!maker || (!types.empty() && !maker.promote(types, type)))
    return maker.failed();
  if (condition.type() != i1) {
    maker.error("the condition of select is i1, as comparisons give, and " +
                dsl::describe(condition.node) + " is " +
                dsl::nameOf(condition.type()));
    return maker.failed();
  }
  BodyBuilder b;
  int values[2], test = b.argument(0, i1), next = 1;
  for (int i : {0, 1}) {
    const Operand &operand = i == 0 ? yes : no;
    double value = 0;
    if (operand.scalar && (!maker.evaluate(*operand.scalar, value) ||
                           !maker.isOfType(value, type)))
      return maker.failed();
    values[i] = operand.scalar
                    ? b.constant(value, type)
                    : b.cast(b.argument(next++, operand.tensor.type()), type);
  }
  b.select(test, values[0], values[1]);
  std::vector<const dsl::Node *> nodes;
  for (const Tensor &tensor : tensors)
    nodes.push_back(tensor.node);
  return Tensor(maker.map(nodes, std::move(b.body)));
}

Tensor exp(const Tensor &x, Where where) {
  return dsl::function("exp", x, where, Fn::Exp);
}
Tensor log(const Tensor &x, Where where) {
  return dsl::function("log", x, where, Fn::Log);
}
Tensor sqrt(const Tensor &x, Where where) {
  return dsl::function("sqrt", x, where, Fn::Sqrt);
}
Tensor rsqrt(const Tensor &x, Where where) {
  return dsl::function("rsqrt", x, where, Fn::Rsqrt);
}
Tensor tanh(const Tensor &x, Where where) {
  return dsl::function("tanh", x, where, Fn::Tanh);
}
Tensor erf(const Tensor &x, Where where) {
  return dsl::function("erf", x, where, Fn::Erf);
}
Tensor sin(const Tensor &x, Where where) {
  return dsl::function("sin", x, where, Fn::Sin);
}
Tensor cos(const Tensor &x, Where where) {
  return dsl::function("cos", x, where, Fn::Cos);
}
Tensor sigmoid(const Tensor &x, Where where) {
  return dsl::function("sigmoid", x, where,
                       [](BodyBuilder &b, int a) { dsl::sigmoid(b, a); });
}
Tensor silu(const Tensor &x, Where where) {
  return dsl::function("silu", x, where, [](BodyBuilder &b, int a) {
    b.op(Fn::Mul, a, dsl::sigmoid(b, a));
  });
}
Tensor gelu(const Tensor &x, Where where) {
  return dsl::function("gelu", x, where, [](BodyBuilder &b, int a) {
    int scaled = b.op(Fn::Mul, a, b.constant(M_SQRT1_2, b.type(a)));
    dsl::halfOf(b, a, b.op(Fn::Erf, scaled));
  });
}
Tensor gelu_tanh(const Tensor &x, Where where) {
  return dsl::function("gelu_tanh", x, where, [](BodyBuilder &b, int a) {
    int cube = b.op(Fn::Mul, b.op(Fn::Mul, a, a), a);
    int bent = b.op(Fn::Mul, cube, b.constant(0.044715, b.type(a)));
    int scaled = b.op(Fn::Mul, b.op(Fn::Add, a, bent),
                      b.constant(std::sqrt(2 / M_PI), b.type(a)));
    dsl::halfOf(b, a, b.op(Fn::Tanh, scaled));
  });
}

Tensor relu(const Tensor &x, Where where) {
  return dsl::number("relu", {x, where}, 0, Fn::Max);
}

Tensor abs(const Tensor &x, Where where) {
  Maker maker("abs", {x}, where);
  if (!maker)
    return maker.failed();
  if (x.type() == i1) {
    maker.error("abs works on numbers, not on i1");
    return maker.failed();
  }
  BodyBuilder b;
  b.op(Fn::Abs, b.argument(0, x.type()));
  return Tensor(maker.map({x.node}, std::move(b.body)));
}

Tensor cast(const Tensor &x, Element type, Where where) {
  Maker maker("cast", {x}, where);
  return maker ? Tensor(const_cast<dsl::Node *>(maker.casted(x.node, type)))
               : maker.failed();
}

} // namespace lang
} // namespace cleave

//===- model.h - Scopes, entries and models --------------------*- C++ -*-===//
#ifndef CLEAVE_MODEL_H
#define CLEAVE_MODEL_H

#include "cleave/tensor.h"

#include <functional>
#include <memory>

namespace cleave {

namespace dsl {
struct Entry;
struct Graph;
struct Region;
} // namespace dsl

inline namespace lang {

/// A name or a dim, and where it was written.
struct Name {
  Name(const char *text, Where where = Where::current())
      : text(text), where(where) {}
  Name(std::string text, Where where = Where::current())
      : text(std::move(text)), where(where) {}
  std::string text;
  Where where;
};
struct Turns {
  Turns(const Dim &dim, Where where = Where::current())
      : dim(dim), where(where) {}
  Dim dim;
  Where where;
};

/// A place in the model with a path, "layer0.attn": weights are named after it,
/// plans speak of it, and reports show it.
class Scope {
public:
  const std::string &path() const { return scopePath; }
  /// Which turn of `repeat` this is; 0 outside.
  int64_t index() const { return turn; }

  /// A weight "<path>.<name>", loaded once and shared by all entries.
  Tensor weight(const std::string &name, const Dims &dims, Element type = f32,
                Where where = Where::current());
  /// A state "<path>.<name>": zero at first, kept between calls, shared by all
  /// entries. After `store` it is what was stored.
  Tensor state(const std::string &name, const Dims &dims, Element type = f32,
               Where where = Where::current());
  /// The state's value for the next call.
  void store(const std::string &name, const Tensor &value,
             Where where = Where::current());

  /// 0, 1, 2, ... along a dim.
  Tensor iota(const Dim &dim, Element type = i32,
              Where where = Where::current());
  Tensor constant(double value, Element type = f32,
                  Where where = Where::current());

  /// The scope below. Its weights are named after it; ops are made in it
  /// through `call`.
  Scope operator[](const std::string &name) const;

  /// f(scope, args...) whose ops belong to the scope below.
  template <typename F, typename... Args>
  auto call(const std::string &name, F &&f, Args &&...args) {
    Scope inner = (*this)[name];
    Inside inside(inner);
    return std::invoke(std::forward<F>(f), inner, std::forward<Args>(args)...);
  }

  /// x = f(scope, x, args...), `times` times, in the scopes name0, name1, ...
  /// Turns that do the same become one function of the program, called with the
  /// weights of each.
  template <typename F, typename X, typename... Args>
  X repeat(const Name &name, int64_t times, F &&f, X x, const Args &...args) {
    for (int64_t i = 0; i < times; ++i) {
      Scope inner = (*this)[name.text + std::to_string(i)];
      inner.turn = i;
      Inside inside(inner, name);
      x = std::invoke(f, inner, std::move(x), args...);
    }
    return x;
  }

  /// The same as a loop of the program, in one scope with the dim's name. Its
  /// weights and states have the dim in front: those of all turns are one.
  template <typename F, typename... Args>
  Tensor loop(const Turns &turns, F &&f, const Tensor &x, const Args &...args) {
    Scope inner = (*this)[turns.dim.name()];
    Inside inside(inner, turns, x);
    return inside.close(std::invoke(f, inner, inside.carried(), args...));
  }

protected:
  friend class Inside;
  Scope(dsl::Entry *entry, std::string path)
      : entry(entry), scopePath(std::move(path)) {}

  /// While it lives, ops are made in the scope.
  class Inside {
  public:
    explicit Inside(const Scope &scope);
    /// Of one turn of a repeat.
    Inside(const Scope &scope, const Name &repeated);
    /// Of all turns of a loop.
    Inside(const Scope &scope, const Turns &turns, const Tensor &x);
    ~Inside();
    Inside(const Inside &) = delete;
    /// What a turn of the loop begins with, and what it ends with.
    Tensor carried() const;
    Tensor close(const Tensor &result);

  private:
    dsl::Entry *entry;
    dsl::Region *outer;
    Tensor first;
    Where where;
  };
  friend Tensor rms_norm(Scope, const Tensor &, const Dims &, double, Element,
                         Where);
  friend Tensor layer_norm(Scope, const Tensor &, const Dims &, double, Element,
                           Where);
  friend Tensor linear(Scope, const Tensor &, const Dims &, const Dims &,
                       Element, Where);
  friend Tensor embedding(Scope, const Tensor &, const Dim &, const Dim &,
                          Element, Where);

  dsl::Entry *entry;
  std::string scopePath;
  int64_t turn = 0;
};

// Parts with weights of their own, made in the scope that they are given. The
// type is that of the weights.

/// With the gain "weight".
Tensor rms_norm(Scope scope, const Tensor &x, const Dims &over,
                double epsilon = 1e-5, Element weights = f32,
                Where where = Where::current());
/// With the gain "weight" and the bias "bias".
Tensor layer_norm(Scope scope, const Tensor &x, const Dims &over,
                  double epsilon = 1e-5, Element weights = f32,
                  Where where = Where::current());
/// dot(x, "weight" [over, into], over) + "bias" [into].
Tensor linear(Scope scope, const Tensor &x, const Dims &over, const Dims &into,
              Element weights = f32, Where where = Where::current());
/// Rows of "weight" [vocabulary, width], in its type.
Tensor embedding(Scope scope, const Tensor &indices, const Dim &vocabulary,
                 const Dim &width, Element weights = f32,
                 Where where = Where::current());

/// A function that users of the program call: "forward", "prefill", "decode".
/// Also the outermost scope.
class Entry : public Scope {
public:
  Tensor input(const std::string &name, const Dims &dims, Element type = f32,
               Where where = Where::current());
  void output(const std::string &name, const Tensor &value,
              Where where = Where::current());

private:
  friend class Model;
  explicit Entry(dsl::Entry *entry) : Scope(entry, "") {}
};

/// What is computed. Entries share weights and states by name. A handle; copies
/// are the same model.
class Model {
public:
  explicit Model(std::string name = "model", Where where = Where::current());
  /// `sizes` gives dims their sizes in this entry: {B(1), S(256)}.
  Entry entry(const std::string &name, const Dims &sizes = {},
              Where where = Where::current());
  /// All mistakes so far, as they are shown: "file:line:column: error: ...".
  std::string errors() const;

  std::shared_ptr<dsl::Graph> graph;
};

} // namespace lang
} // namespace cleave

#endif // CLEAVE_MODEL_H

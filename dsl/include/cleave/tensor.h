//===- tensor.h - Dims, tensors, and what is computed with them -*- C++ -*-===//
// A dim is a name with a size, and operands meet by name: no axis numbers, no
// transposes. In one entry a name has one size, so an op that changes a size
// gives its result a new dim.
//
// An op with a bad operand reports it once, at the caller's line, and returns
// an empty Tensor that later ops ignore. All reports are shown together when
// the model is used.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_TENSOR_H
#define CLEAVE_TENSOR_H

#include "cleave/element.h"

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

namespace cleave {

namespace dsl {
struct Node;
} // namespace dsl

inline namespace lang {

/// Where the user called; every op has one as its last, defaulted argument.
using Where = std::source_location;

//===----------------------------------------------------------------------===//
// Dims and scalars
//===----------------------------------------------------------------------===//

/// A named dim. Without a size it takes the one that the entry gives it:
/// `m.entry("decode", {B(1), S(1)})`.
class Dim {
public:
  explicit Dim(std::string name, int64_t size = 0)
      : dimName(std::move(name)), dimSize(size) {}
  /// The same dim with a size.
  Dim operator()(int64_t size) const { return Dim(dimName, size); }
  const std::string &name() const { return dimName; }
  /// 0 if it has none.
  int64_t size() const { return dimSize; }

private:
  std::string dimName;
  int64_t dimSize;
};

/// One dim or several: `D`, `{K, G, E}`.
class Dims {
public:
  Dims() = default;
  Dims(Dim dim) : list{std::move(dim)} {}
  Dims(std::initializer_list<Dim> dims) : list(dims) {}
  Dims(std::vector<Dim> dims) : list(std::move(dims)) {}
  auto begin() const { return list.begin(); }
  auto end() const { return list.end(); }
  size_t size() const { return list.size(); }
  bool empty() const { return list.empty(); }

private:
  std::vector<Dim> list;
};

/// A number, or one that follows from the size of a dim: `rsqrt(E)`.
class Scalar {
public:
  template <typename T>
    requires std::integral<T> || std::floating_point<T>
  Scalar(T value) : factor(static_cast<double>(value)) {}
  /// factor * size(dim) ^ power.
  Scalar(Dim dim, double power, double factor = 1)
      : factor(factor), power(power), base(std::move(dim)) {}
  friend Scalar operator*(const Scalar &a, double b) {
    Scalar scaled = a;
    scaled.factor *= b;
    return scaled;
  }
  friend Scalar operator*(double a, const Scalar &b) { return b * a; }
  friend Scalar operator/(const Scalar &a, double b) { return a * (1 / b); }

  double factor = 0;
  double power = 0;
  std::optional<Dim> base;
};
inline Scalar size(const Dim &dim) { return Scalar(dim, 1); }
inline Scalar sqrt(const Dim &dim) { return Scalar(dim, 0.5); }
inline Scalar rsqrt(const Dim &dim) { return Scalar(dim, -0.5); }

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

/// A value of the model: what an entry takes, or what an op makes. A handle,
/// cheap to copy; it lives as long as its Model.
class Tensor {
public:
  Tensor() = default;
  explicit operator bool() const { return node != nullptr; }
  /// In the order in which they lie in memory.
  std::vector<Dim> dims() const;
  Element type() const;

  /// The same numbers with other names of dims.
  Tensor rename(const Dim &from, const Dim &to,
                Where where = Where::current()) const;
  /// The same tensor; reports, `explain` and plans call it `name`, after the
  /// scope it was made in: "layer0.attn.scores".
  Tensor named(const std::string &name, Where where = Where::current()) const;

  // What follows is for the implementation.
  explicit Tensor(dsl::Node *node) : node(node) {}
  static Tensor failed() {
    Tensor tensor;
    tensor.hasFailed = true;
    return tensor;
  }
  dsl::Node *node = nullptr;
  /// Empty because of a mistake that was reported.
  bool hasFailed = false;
};

/// A tensor or a number, and where it was written: operators take no further
/// argument, so their operands remember the line.
struct Operand {
  Operand(const Tensor &tensor, Where where = Where::current())
      : tensor(tensor), where(where) {}
  Operand(const Scalar &scalar, Where where = Where::current())
      : scalar(scalar), where(where) {}
  template <typename T>
    requires std::integral<T> || std::floating_point<T>
  Operand(T value, Where where = Where::current())
      : scalar(value), where(where) {}

  Tensor tensor;
  std::optional<Scalar> scalar;
  Where where;
};

//===----------------------------------------------------------------------===//
// Element by element
//===----------------------------------------------------------------------===//
// The result has the dims of both operands; each is repeated along those that
// it lacks. A narrower float becomes the wider one.

Tensor operator+(const Operand &a, const Operand &b);
Tensor operator-(const Operand &a, const Operand &b);
Tensor operator*(const Operand &a, const Operand &b);
/// Integers are divided towards zero.
Tensor operator/(const Operand &a, const Operand &b);
Tensor operator%(const Operand &a, const Operand &b);
Tensor operator-(const Operand &a);

// Comparisons give i1.
Tensor operator==(const Operand &a, const Operand &b);
Tensor operator!=(const Operand &a, const Operand &b);
Tensor operator<(const Operand &a, const Operand &b);
Tensor operator<=(const Operand &a, const Operand &b);
Tensor operator>(const Operand &a, const Operand &b);
Tensor operator>=(const Operand &a, const Operand &b);

// On i1, or bit by bit on integers.
Tensor operator&(const Operand &a, const Operand &b);
Tensor operator|(const Operand &a, const Operand &b);
Tensor operator^(const Operand &a, const Operand &b);
Tensor operator~(const Operand &a);

Tensor max(const Operand &a, const Operand &b);
Tensor min(const Operand &a, const Operand &b);
Tensor pow(const Operand &a, const Operand &b);
/// `yes` where `condition` (i1) holds, `no` elsewhere.
Tensor select(const Tensor &condition, const Operand &yes, const Operand &no,
              Where where = Where::current());

Tensor exp(const Tensor &x, Where where = Where::current());
Tensor log(const Tensor &x, Where where = Where::current());
Tensor sqrt(const Tensor &x, Where where = Where::current());
Tensor rsqrt(const Tensor &x, Where where = Where::current());
Tensor tanh(const Tensor &x, Where where = Where::current());
Tensor sigmoid(const Tensor &x, Where where = Where::current());
Tensor erf(const Tensor &x, Where where = Where::current());
Tensor sin(const Tensor &x, Where where = Where::current());
Tensor cos(const Tensor &x, Where where = Where::current());
Tensor abs(const Tensor &x, Where where = Where::current());
Tensor relu(const Tensor &x, Where where = Where::current());
/// x * sigmoid(x).
Tensor silu(const Tensor &x, Where where = Where::current());
/// x * Phi(x), exact.
Tensor gelu(const Tensor &x, Where where = Where::current());
/// The approximation by tanh.
Tensor gelu_tanh(const Tensor &x, Where where = Where::current());
/// Floats become integers towards zero; i1 becomes 0 or 1.
Tensor cast(const Tensor &x, Element type, Where where = Where::current());

//===----------------------------------------------------------------------===//
// Products and reductions
//===----------------------------------------------------------------------===//

/// Multiplies, and sums over `over`, which both have. Other dims that both have
/// are batch dims. The result's dims: those of `a`, then those of `b`.
Tensor dot(const Tensor &a, const Tensor &b, const Dims &over,
           Where where = Where::current());

Tensor sum(const Tensor &x, const Dims &over, Where where = Where::current());
Tensor prod(const Tensor &x, const Dims &over, Where where = Where::current());
Tensor max(const Tensor &x, const Dims &over, Where where = Where::current());
Tensor min(const Tensor &x, const Dims &over, Where where = Where::current());
Tensor mean(const Tensor &x, const Dims &over, Where where = Where::current());
/// The first index of the largest element along `over`, as i32.
Tensor argmax(const Tensor &x, const Dim &over, Where where = Where::current());

struct TopK {
  Tensor values;
  Tensor indices;
};
/// The `k` largest along `over`, which becomes the dim `k`, largest first; of
/// equal ones the first. Indices are i32.
TopK top_k(const Tensor &x, const Dim &over, const Dim &k,
           Where where = Where::current());

//===----------------------------------------------------------------------===//
// Moving elements
//===----------------------------------------------------------------------===//

/// The dim `from` becomes several, the first moving slowest. One may lack a
/// size.
Tensor split(const Tensor &x, const Dim &from, const Dims &into,
             Where where = Where::current());
/// The opposite.
Tensor merge(const Tensor &x, const Dims &from, const Dim &into,
             Where where = Where::current());
/// The same dims lying in this order, for outputs that others read.
Tensor reorder(const Tensor &x, const Dims &order,
               Where where = Where::current());
/// Every `stride`-th index of `from` beginning at `begin`; `into` says how
/// many.
Tensor slice(const Tensor &x, const Dim &from, const Dim &into, int64_t begin,
             int64_t stride = 1, Where where = Where::current());
/// As many as `into` says, beginning at an index that is known when the program
/// runs: a tensor without dims, kept within bounds.
Tensor slice(const Tensor &x, const Dim &from, const Dim &into,
             const Tensor &begin, Where where = Where::current());
/// `low` times `value` before `from`, and behind it until `into` is full.
Tensor pad(const Tensor &x, const Dim &from, const Dim &into, int64_t low,
           double value = 0, Where where = Where::current());
/// One behind the other. `along[i]`, or the only one, is the dim of tensor i.
Tensor concat(const std::vector<Tensor> &tensors, const Dims &along,
              const Dim &into, Where where = Where::current());
/// `x` with `fresh` written at `position`, an integer without dims that is kept
/// within bounds: what was there along `dim` becomes `fresh` along `freshDim`.
/// How a cache of keys grows.
Tensor update(const Tensor &x, const Dim &dim, const Tensor &fresh,
              const Dim &freshDim, const Tensor &position,
              Where where = Where::current());
/// table[indices, ...]: each index stands for its row of `over`.
Tensor lookup(const Tensor &table, const Tensor &indices, const Dim &over,
              Where where = Where::current());

//===----------------------------------------------------------------------===//
// Parts of models
//===----------------------------------------------------------------------===//

Tensor softmax(const Tensor &x, const Dims &over,
               Where where = Where::current());
/// x / sqrt(mean(x^2) + epsilon) * gain, in f32.
Tensor rms_norm(const Tensor &x, const Tensor &gain, const Dims &over,
                double epsilon = 1e-5, Where where = Where::current());
/// (x - mean) / sqrt(variance + epsilon) * gain + bias, in f32.
Tensor layer_norm(const Tensor &x, const Tensor &gain, const Tensor &bias,
                  const Dims &over, double epsilon = 1e-5,
                  Where where = Where::current());

/// Llama 3's way to longer contexts (Dubey et al. 2024): pairs that turn less
/// than `low` times in `context` places turn `factor` times slower, those that
/// turn more than `high` times as before, and between the two goes a line.
struct RopeStretch {
  double factor = 8;
  double low = 1, high = 4;
  double context = 8192;
};

struct Rope {
  double base = 10000;
  /// Pairs of neighbours (0, 1), (2, 3) instead of halves (0, n/2), ...
  bool interleaved = false;
  /// The place of the first one along the sequence: an integer without dims,
  /// known when the program runs.
  Tensor offset = {};
  /// Or the place of each: integers, with the sequence's dim.
  Tensor positions = {};
  std::optional<RopeStretch> stretch = {};
};
/// Turns pairs along `head` by angles that grow along `sequence`.
Tensor rope(const Tensor &x, const Dim &sequence, const Dim &head,
            const Rope &options = {}, Where where = Where::current());

struct Mask {
  /// A query sees this many keys, itself included; 0: all before it.
  int64_t window = 0;
  /// The place of the first query among the keys: an integer without dims.
  Tensor offset = {};
};
/// Scores of keys that come after their query become -inf.
Tensor causal(const Tensor &scores, const Dim &queries, const Dim &keys,
              const Mask &mask = {}, Where where = Where::current());
/// Scores of all keys but the last `width` ones, the query's own included,
/// become -inf.
Tensor sliding_window(const Tensor &scores, const Dim &queries, const Dim &keys,
                      int64_t width, const Tensor &offset = {},
                      Where where = Where::current());

struct Attention {
  Dim queries, keys, head;
  /// Of the scores; 1/sqrt(head) if not given.
  std::optional<double> scale = {};
  bool causal = false;
  /// As in Mask; a window makes it causal.
  int64_t window = 0;
  Tensor offset = {};
  /// How many keys count: an integer without dims, or one per batch.
  Tensor length = {};
  /// Added to the scores (a float), or true where a key is seen (i1).
  Tensor mask = {};
};
/// softmax(q k^T * scale) v. `q` has dims that `k` lacks (grouped queries) and
/// shares the others; keys lie along one dim of `k` and `v`.
Tensor attend(const Tensor &q, const Tensor &k, const Tensor &v,
              const Attention &options, Where where = Where::current());

} // namespace lang
} // namespace cleave

#endif // CLEAVE_TENSOR_H

//===- Graph.h - What a model of the DSL consists of -----------*- C++ -*-===//
// Plain data without MLIR. Ops are made in order; the nodes of an entry form a
// tree of regions, where each turn of a `repeat` is a region of its own, so
// that equal turns can become one function.
//
// Composite ops (softmax, rope, attention) are made of few kinds of nodes: maps
// and reductions with a scalar body, products, and moves of elements.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_DSL_GRAPH_H
#define CLEAVE_DSL_GRAPH_H

#include "cleave/element.h"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace cleave::dsl {

/// A line of the user's program.
struct Place {
  std::string file;
  unsigned line = 0, column = 0;
};

struct Note {
  Place place;
  std::string text;
};
struct Diagnostic {
  Place place;
  std::string text;
  std::vector<Note> notes;
};
/// "file:line:column: error: ..." and its notes, a line each.
std::string toText(const std::vector<Diagnostic> &diagnostics);

struct DimSize {
  std::string name;
  int64_t size = 0;
  bool operator==(const DimSize &) const = default;
};
using Shape = std::vector<DimSize>;

/// "[model=4096, kv=8]".
std::string toText(const Shape &shape);
const DimSize *find(const Shape &shape, const std::string &name);
int64_t numElements(const Shape &shape);

const char *nameOf(Element type);
bool isFloat(Element type);

//===----------------------------------------------------------------------===//
// Scalar bodies
//===----------------------------------------------------------------------===//

enum class Fn : uint8_t {
  Argument, // element of operand a
  Index,    // index along the dim `dim`, as i64
  Constant,
  Load, // element of operand a at the indices `at`, one per dim
  Cast,
  Add,
  Sub,
  Mul,
  Div,
  Rem,
  Max,
  Min,
  Pow,
  Eq,
  Ne,
  Lt,
  Le,
  Gt,
  Ge,
  And,
  Or,
  Xor,
  Select, // a ? b : c
  Neg,
  Exp,
  Log,
  Sqrt,
  Rsqrt,
  Tanh,
  Erf,
  Sin,
  Cos,
  Abs
};

/// One step of a body; a, b and c are earlier steps, or an operand.
struct Step {
  Fn fn;
  Element type;
  int a = -1, b = -1, c = -1;
  double number = 0;
  std::string dim = {};
  std::vector<int> at = {};
};

/// Scalar steps over the elements of a node's operands; the last one is the
/// result.
struct Body {
  std::vector<Step> steps;
};

//===----------------------------------------------------------------------===//
// Nodes
//===----------------------------------------------------------------------===//

enum class Kind : uint8_t {
  Input,
  Weight,
  State,
  Map,     // body over operands, which meet by name
  Reduce,  // the same, and then over the dims `over`
  Dot,     // sums the product of two operands over `over`
  Rename,  // other names, the same memory
  Reshape, // other dims, the same order of elements
  Slice,   // dim `over[0]` from `begin` by `stride`; or from operand 1
  Pad,     // `begin` times `fill` before dim `over[0]`
  Concat,  // along the position `axis`
  Update,  // operand 1 into operand 0 along `axis` at operand 2
  ArgMax,  // along `over[0]`
  TopK,    // along the last dim; two results
  Pick,    // result `index` of operand 0
  Carried, // what a turn of a loop takes from the one before; first operand 0
  AtTurn,  // a turn's part of operand 0, which has the loop's dim in front
  PutTurn, // operand 0 with operand 1 as the turn's part
  Loop     // value `index` of those that the loop ends with: the operands
};

enum class Reduction : uint8_t { Sum, Prod, Max, Min };

struct Region;
struct Entry;

struct Node {
  Kind kind = Kind::Input;
  Element type = f32;
  Shape shape;
  std::vector<Node *> operands;
  Body body;
  Reduction reduction = Reduction::Sum;
  std::vector<std::string> over;
  int64_t begin = 0, stride = 1;
  double fill = 0;
  unsigned axis = 0, index = 0;
  /// What it is called: with its scope, "layer0.attn.wq".
  std::string name;
  /// Whether the user gave it that name.
  bool isNamed = false;
  std::string scope;
  Place place;
  Region *region = nullptr;
  Entry *entry = nullptr;

  /// Whether it is an argument of the entry.
  bool isLeaf() const {
    return kind == Kind::Input || kind == Kind::Weight || kind == Kind::State;
  }
};

/// A state inside of a loop: all turns' part, and this turn's.
struct LoopState {
  Node *stack = nullptr;
  Node *current = nullptr;
};

/// A body of nodes in order. The root of an entry, one turn of a repeat, or all
/// turns of a loop.
struct Region {
  Region *parent = nullptr;
  /// "layer3" of a repeat "layer"; names of values lose the number where the
  /// turns are one function.
  std::string scope, repeated;
  Place place;
  /// Of a loop: its dim, and what goes from turn to turn.
  DimSize turns;
  std::vector<Node *> carried, yields, results;
  std::map<std::string, LoopState> states;
  bool isLoop() const { return turns.size > 0; }
  std::vector<std::variant<Node *, std::unique_ptr<Region>>> items;
};

/// Whether the region is `top` or lies in it.
bool isWithin(const Region *region, const Region *top);

struct Output {
  std::string name;
  Node *value;
  Place place;
};

struct StateSlot {
  Node *argument = nullptr;
  Node *current = nullptr;
  Place place;
};

struct Graph;

/// An entry function while it grows.
struct Entry {
  Graph *graph = nullptr;
  std::string name;
  Place place;
  Region root;
  /// Sizes by name, and where each was said first.
  struct Size {
    int64_t size;
    Place place;
    std::string by;
  };
  std::map<std::string, Size> sizes;
  std::vector<Node *> inputs, weights;
  std::map<std::string, StateSlot> states;
  std::vector<std::string> stateOrder;
  std::vector<Output> outputs;
  std::deque<Node> nodes;
  std::set<std::string> names;
  std::vector<std::string> scopes = {""};
  Region *current = &root;
};

struct Graph {
  std::string name;
  Place place;
  std::deque<Entry> entries;
  /// The first entry's node of each weight and state.
  std::map<std::string, Node *> weights, states;
  std::vector<Diagnostic> diagnostics;

  void error(Place place, std::string text, std::vector<Note> notes = {}) {
    diagnostics.push_back(
        {std::move(place), std::move(text), std::move(notes)});
  }
  /// Mistakes that only show when the model is complete.
  void finish(std::vector<Diagnostic> &found) const;
};

/// The dims in the order in which the loops of a map or reduction run.
Shape loopsOf(const Node &node);

} // namespace cleave::dsl

#endif // CLEAVE_DSL_GRAPH_H

//===- RandomKernel.cpp - Random kernels as text --------------------------===//
#include "test/passes/lower/kernels/RandomKernel.h"
#include <algorithm>
#include <numeric>
#include <random>
#include <sstream>
#include <vector>

using namespace cleave::kernels::test;

namespace {
using Shape = std::vector<int64_t>;

struct Tensor {
  std::string name, element;
  Shape shape;
};

class Generator {
public:
  explicit Generator(uint64_t seed) : rng(seed) {}
  std::string run();

private:
  int64_t pick(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(rng);
  }
  bool chance(double p) { return std::bernoulli_distribution(p)(rng); }
  std::string fresh() { return "%v" + std::to_string(next++); }
  std::string element();
  Shape shape(int64_t maxRank);
  /// A tensor of this type: one made before, or a new argument.
  Tensor operand(const std::string &element, const Shape &shape);
  Tensor anyTensor();
  Tensor empty(const std::string &element, const Shape &shape, bool filled,
               const std::string &value);
  std::string binary(const std::string &element);
  void elementwise();
  void reduction();
  void contraction();
  void window();
  void mask();
  void argMax();
  void reshape();
  void slice();
  void pad();
  void gather();
  void transpose();

  std::mt19937_64 rng;
  int next = 0, numArguments = 0;
  std::ostringstream body;
  std::vector<Tensor> arguments, values;
};
} // namespace

static std::string typeOf(const Tensor &t) {
  std::string text = "tensor<";
  for (int64_t size : t.shape)
    text += std::to_string(size) + "x";
  return text + t.element + ">";
}

static bool isFloat(const std::string &element) {
  return element.front() == 'f' || element == "bf16";
}

static std::string dims(int64_t n) {
  std::string text;
  for (int64_t i = 0; i < n; ++i)
    text += (i ? ", d" : "d") + std::to_string(i);
  return text;
}

static std::string mapOf(int64_t n, const std::vector<std::string> &results) {
  std::string text = "affine_map<(" + dims(n) + ") -> (";
  for (size_t i = 0; i < results.size(); ++i)
    text += (i ? ", " : "") + results[i];
  return text + ")>";
}

static std::string identity(int64_t n) {
  std::vector<std::string> results;
  for (int64_t i = 0; i < n; ++i)
    results.push_back("d" + std::to_string(i));
  return mapOf(n, results);
}

std::string Generator::element() {
  static const char *types[] = {"f32", "f32", "f32", "bf16", "f16", "f64",
                                "i32", "i64", "i8",  "i16",  "i1"};
  return types[pick(0, 10)];
}

Shape Generator::shape(int64_t maxRank) {
  static const int64_t sizes[] = {1, 2, 3, 4, 5, 7, 8, 11, 13, 16, 17};
  Shape result;
  int64_t rank = pick(0, maxRank), total = 1;
  for (int64_t i = 0; i < rank; ++i) {
    int64_t size = chance(0.01) ? 0 : sizes[pick(0, 10)];
    if (total * size > 3000)
      size = 1;
    total *= std::max<int64_t>(size, 1);
    result.push_back(size);
  }
  return result;
}

Tensor Generator::operand(const std::string &element, const Shape &shape) {
  for (const Tensor &t : values)
    if (t.element == element && t.shape == shape && chance(0.7))
      return t;
  Tensor t{"%a" + std::to_string(numArguments++), element, shape};
  arguments.push_back(t);
  return t;
}

Tensor Generator::anyTensor() {
  if (!values.empty() && chance(0.8))
    return values[pick(0, values.size() - 1)];
  return operand(element(), shape(4));
}

Tensor Generator::empty(const std::string &element, const Shape &shape,
                        bool filled, const std::string &value) {
  Tensor t{fresh(), element, shape};
  body << "  " << t.name << " = tensor.empty() : " << typeOf(t) << "\n";
  if (!filled)
    return t;
  std::string constant = fresh();
  body << "  " << constant << " = arith.constant " << value
       << (element == "i1" ? "" : " : " + element) << "\n";
  Tensor f{fresh(), element, shape};
  body << "  " << f.name << " = linalg.fill ins(" << constant << " : "
       << element << ") outs(" << t.name << " : " << typeOf(t) << ") -> "
       << typeOf(f) << "\n";
  return f;
}

std::string Generator::binary(const std::string &element) {
  static const char *floats[] = {"addf",     "subf",    "mulf",   "maximumf",
                                 "minimumf", "maxnumf", "minnumf"};
  static const char *ints[] = {"addi", "subi", "muli", "maxsi", "minsi",
                               "andi", "ori",  "xori", "maxui", "minui"};
  return std::string("arith.") +
         (isFloat(element) ? floats[pick(0, 6)] : ints[pick(0, 9)]);
}

void Generator::elementwise() {
  Tensor first = anyTensor();
  int64_t rank = first.shape.size();
  std::string e = first.element;
  // The second operand: some dims dropped, in another order, or constant 0.
  std::vector<int64_t> order(rank);
  std::iota(order.begin(), order.end(), 0);
  if (chance(0.3))
    std::shuffle(order.begin(), order.end(), rng);
  std::vector<std::string> results;
  Shape otherShape;
  for (int64_t d : order) {
    if (chance(0.3))
      continue;
    bool isConstant = chance(0.1);
    otherShape.push_back(isConstant ? 1 : first.shape[d]);
    results.push_back(isConstant ? "0" : "d" + std::to_string(d));
  }
  Tensor second = operand(e, otherShape);
  Tensor out = empty(e, first.shape, false, "");
  Tensor result{fresh(), e, first.shape};
  body << "  " << result.name << " = linalg.generic {indexing_maps = ["
       << identity(rank) << ", " << mapOf(rank, results) << ", "
       << identity(rank) << "], iterator_types = [";
  for (int64_t i = 0; i < rank; ++i)
    body << (i ? ", " : "") << "\"parallel\"";
  body << "]} ins(" << first.name << ", " << second.name << " : "
       << typeOf(first) << ", " << typeOf(second) << ") outs(" << out.name
       << " : " << typeOf(out) << ") {\n  ^bb0(%x: " << e << ", %y: " << e
       << ", %z: " << e << "):\n    %p = " << binary(e) << " %x, %y : " << e
       << "\n    %q = " << binary(e) << " %p, %x : " << e
       << "\n    linalg.yield %q : " << e << "\n  } -> " << typeOf(result)
       << "\n";
  values.push_back(result);
}

void Generator::reduction() {
  Tensor in = anyTensor();
  int64_t rank = in.shape.size();
  std::vector<std::string> results;
  Shape outShape;
  std::vector<bool> reduced(rank, false);
  for (int64_t d = 0; d < rank; ++d) {
    reduced[d] = chance(0.5);
    if (!reduced[d]) {
      outShape.push_back(in.shape[d]);
      results.push_back("d" + std::to_string(d));
    }
  }
  std::string e = in.element, op, init;
  if (isFloat(e)) {
    static const char *ops[] = {"addf", "maximumf", "minimumf", "maxnumf"};
    op = ops[pick(0, 3)];
    init = op == "addf" ? "0.0" : "-3.0";
  } else {
    static const char *ops[] = {"addi", "muli", "maxsi", "minui",
                                "andi", "ori",  "xori"};
    op = ops[pick(0, 6)];
    init = e == "i1" ? "true" : "1";
  }
  bool fromArgument = chance(0.2);
  Tensor out =
      fromArgument ? operand(e, outShape) : empty(e, outShape, true, init);
  Tensor result{fresh(), e, outShape};
  body << "  " << result.name << " = linalg.generic {indexing_maps = ["
       << identity(rank) << ", " << mapOf(rank, results)
       << "], iterator_types = [";
  for (int64_t d = 0; d < rank; ++d)
    body << (d ? ", " : "") << (reduced[d] ? "\"reduction\"" : "\"parallel\"");
  body << "]} ins(" << in.name << " : " << typeOf(in) << ") outs(" << out.name
       << " : " << typeOf(out) << ") {\n  ^bb0(%x: " << e << ", %acc: " << e
       << "):\n    %q = arith." << op
       << (chance(0.5) ? " %x, %acc : " : " %acc, %x : ") << e
       << "\n    linalg.yield %q : " << e << "\n  } -> " << typeOf(result)
       << "\n";
  values.push_back(result);
}

void Generator::contraction() {
  // Dims: b m n k, each present or not; operands in any dim order.
  static const char *types[] = {"f32", "f32", "f32", "bf16", "f64", "i32"};
  std::string e = types[pick(0, 5)];
  std::string out = e == "bf16" && chance(0.5) ? "f32" : e;
  int64_t limit = chance(0.3) ? 40 : 17;
  int64_t sizes[4] = {pick(1, 3), pick(1, limit), pick(1, limit),
                      pick(1, limit)};
  bool hasBatch = chance(0.4), hasM = chance(0.9), hasN = chance(0.9);
  std::vector<int> a, b, c;
  if (hasBatch) {
    a.push_back(0);
    b.push_back(0);
    c.push_back(0);
  }
  if (hasM) {
    a.push_back(1);
    c.push_back(1);
  }
  if (hasN) {
    b.push_back(2);
    c.push_back(2);
  }
  a.push_back(3);
  b.push_back(3);
  if (!chance(0.4)) {
    std::shuffle(a.begin(), a.end(), rng);
    std::shuffle(b.begin(), b.end(), rng);
    if (chance(0.3))
      std::shuffle(c.begin(), c.end(), rng);
  }
  int64_t loopOf[4];
  int64_t loops = 0;
  std::string iterators;
  for (int d = 0; d < 4; ++d) {
    bool present =
        d == 3 || (d == 0 && hasBatch) || (d == 1 && hasM) || (d == 2 && hasN);
    if (!present)
      continue;
    loopOf[d] = loops++;
    iterators += (iterators.empty() ? "" : ", ") +
                 std::string(d == 3 ? "\"reduction\"" : "\"parallel\"");
  }
  auto describe = [&](const std::vector<int> &order) {
    std::pair<Shape, std::vector<std::string>> r;
    for (int d : order) {
      r.first.push_back(sizes[d]);
      r.second.push_back("d" + std::to_string(loopOf[d]));
    }
    return r;
  };
  auto [shapeA, mapA] = describe(a);
  auto [shapeB, mapB] = describe(b);
  auto [shapeC, mapC] = describe(c);
  Tensor ta = operand(e, shapeA), tb = operand(e, shapeB);
  std::string zero = isFloat(out) ? "0.0" : "0";
  Tensor init =
      chance(0.2) ? operand(out, shapeC) : empty(out, shapeC, true, zero);
  Tensor result{fresh(), out, shapeC};
  body << "  " << result.name << " = linalg.generic {indexing_maps = ["
       << mapOf(loops, mapA) << ", " << mapOf(loops, mapB) << ", "
       << mapOf(loops, mapC) << "], iterator_types = [" << iterators
       << "]} ins(" << ta.name << ", " << tb.name << " : " << typeOf(ta) << ", "
       << typeOf(tb) << ") outs(" << init.name << " : " << typeOf(init)
       << ") {\n  ^bb0(%x: " << e << ", %y: " << e << ", %acc: " << out
       << "):\n";
  std::string x = "%x", y = "%y", f = isFloat(out) ? "f" : "i";
  if (out != e) {
    body << "    %xe = arith.extf %x : bf16 to f32\n"
         << "    %ye = arith.extf %y : bf16 to f32\n";
    x = "%xe";
    y = "%ye";
  }
  body << "    %p = arith.mul" << f << " " << x << ", " << y << " : " << out
       << "\n    %q = arith.add" << f << " %acc, %p : " << out
       << "\n    linalg.yield %q : " << out << "\n  } -> " << typeOf(result)
       << "\n";
  values.push_back(result);
}

void Generator::window() {
  int64_t n = pick(3, 17), k = pick(1, 3), c = pick(1, 9), f = pick(1, 9);
  std::string e = chance(0.7) ? "f32" : "i32", s = e == "f32" ? "f" : "i";
  Tensor in = operand(e, {n, c}), w = operand(e, {k, c, f});
  Tensor init = empty(e, {n - k + 1, f}, true, e == "f32" ? "0.0" : "0");
  Tensor result{fresh(), e, {n - k + 1, f}};
  body << "  " << result.name << " = linalg.generic {indexing_maps = ["
       << "affine_map<(d0, d1, d2, d3) -> (d0 + d2, d3)>, "
       << "affine_map<(d0, d1, d2, d3) -> (d2, d3, d1)>, "
       << "affine_map<(d0, d1, d2, d3) -> (d0, d1)>], iterator_types = "
       << "[\"parallel\", \"parallel\", \"reduction\", \"reduction\"]} ins("
       << in.name << ", " << w.name << " : " << typeOf(in) << ", " << typeOf(w)
       << ") outs(" << init.name << " : " << typeOf(init)
       << ") {\n  ^bb0(%x: " << e << ", %y: " << e << ", %acc: " << e
       << "):\n    %p = arith.mul" << s << " %x, %y : " << e
       << "\n    %q = arith.add" << s << " %acc, %p : " << e
       << "\n    linalg.yield %q : " << e << "\n  } -> " << typeOf(result)
       << "\n";
  values.push_back(result);
}

void Generator::mask() {
  Tensor in = anyTensor();
  int64_t rank = in.shape.size();
  if (rank == 0)
    return elementwise();
  std::string e = in.element;
  int64_t i = pick(0, rank - 1), j = pick(0, rank - 1);
  Tensor out = empty(e, in.shape, false, "");
  Tensor result{fresh(), e, in.shape};
  std::string zero = isFloat(e) ? "0.0" : e == "i1" ? "false" : "0";
  body << "  %zero" << next << " = arith.constant " << zero
       << (e == "i1" ? "" : " : " + e) << "\n";
  body << "  " << result.name << " = linalg.generic {indexing_maps = ["
       << identity(rank) << ", " << identity(rank) << "], iterator_types = [";
  for (int64_t d = 0; d < rank; ++d)
    body << (d ? ", " : "") << "\"parallel\"";
  body << "]} ins(" << in.name << " : " << typeOf(in) << ") outs(" << out.name
       << " : " << typeOf(out) << ") {\n  ^bb0(%x: " << e << ", %z: " << e
       << "):\n    %i = linalg.index " << i
       << " : index\n    %j = linalg.index " << j
       << " : index\n    %r = arith.addi %i, %row : index\n"
       << "    %c = arith.cmpi sle, %j, %r : index\n    %q = arith.select %c, "
       << "%x, %zero" << next << " : " << e << "\n    linalg.yield %q : " << e
       << "\n  } -> " << typeOf(result) << "\n";
  ++next;
  values.push_back(result);
}

void Generator::argMax() {
  int64_t m = pick(1, 9), n = pick(1, 17);
  Tensor in = operand("f32", {m, n});
  Tensor value = empty("f32", {m}, true, "-100.0");
  Tensor at = empty("i64", {m}, true, "0");
  std::string r = fresh();
  body << "  " << r << ":2 = linalg.generic {indexing_maps = [" << identity(2)
       << ", affine_map<(d0, d1) -> (d0)>, "
       << "affine_map<(d0, d1) -> (d0)>], iterator_types = [\"parallel\", "
       << "\"reduction\"]} ins(" << in.name << " : " << typeOf(in) << ") outs("
       << value.name << ", " << at.name << " : " << typeOf(value) << ", "
       << typeOf(at) << ") {\n  ^bb0(%x: f32, %v: f32, %i: i64):\n"
       << "    %d = linalg.index 1 : index\n"
       << "    %k = arith.index_cast %d : index to i64\n"
       << "    %c = arith.cmpf ogt, %x, %v : f32\n"
       << "    %nv = arith.select %c, %x, %v : f32\n"
       << "    %ni = arith.select %c, %k, %i : i64\n"
       << "    linalg.yield %nv, %ni : f32, i64\n  } -> (" << typeOf(value)
       << ", " << typeOf(at) << ")\n";
  values.push_back({r + "#0", "f32", {m}});
  values.push_back({r + "#1", "i64", {m}});
}

void Generator::reshape() {
  Tensor in = anyTensor();
  if (in.shape.size() < 2)
    return elementwise();
  Shape shape(in.shape.begin() + 1, in.shape.end());
  shape.front() *= in.shape.front();
  Tensor result{fresh(), in.element, shape};
  body << "  " << result.name << " = tensor.collapse_shape " << in.name
       << " [[0, 1]";
  for (size_t d = 2; d < in.shape.size(); ++d)
    body << ", [" << d << "]";
  body << "] : " << typeOf(in) << " into " << typeOf(result) << "\n";
  values.push_back(result);
}

void Generator::slice() {
  Tensor in = anyTensor();
  // No slice of an empty dim has an offset that the parser takes.
  if (in.shape.empty() ||
      std::find(in.shape.begin(), in.shape.end(), 0) != in.shape.end())
    return elementwise();
  std::string offsets, sizes, strides;
  Shape shape;
  for (int64_t size : in.shape) {
    int64_t offset = size ? pick(0, size - 1) : 0;
    int64_t stride = chance(0.2) ? 2 : 1;
    int64_t length = size ? (size - offset + stride - 1) / stride : 0;
    offsets += (offsets.empty() ? "" : ", ") + std::to_string(offset);
    sizes += (sizes.empty() ? "" : ", ") + std::to_string(length);
    strides += (strides.empty() ? "" : ", ") + std::to_string(stride);
    shape.push_back(length);
  }
  Tensor result{fresh(), in.element, shape};
  body << "  " << result.name << " = tensor.extract_slice " << in.name << "["
       << offsets << "] [" << sizes << "] [" << strides << "] : " << typeOf(in)
       << " to " << typeOf(result) << "\n";
  values.push_back(result);
  if (!chance(0.5))
    return;
  // And put it back, changed, into the whole.
  Tensor whole{fresh(), in.element, in.shape};
  Tensor part = operand(in.element, shape);
  body << "  " << whole.name << " = tensor.insert_slice " << part.name
       << " into " << in.name << "[" << offsets << "] [" << sizes << "] ["
       << strides << "] : " << typeOf(part) << " into " << typeOf(whole)
       << "\n";
  values.push_back(whole);
}

void Generator::pad() {
  Tensor in = anyTensor();
  int64_t rank = in.shape.size();
  std::string e = in.element;
  if (rank == 0)
    return elementwise();
  std::string low, high, indices;
  Shape shape;
  for (int64_t d = 0; d < rank; ++d) {
    int64_t l = pick(0, 2), h = pick(0, 2);
    low += (d ? ", " : "") + std::to_string(l);
    high += (d ? ", " : "") + std::to_string(h);
    indices += (d ? ", %i" : "%i") + std::to_string(d) + ": index";
    shape.push_back(in.shape[d] + l + h);
  }
  std::string zero = fresh();
  body << "  " << zero << " = arith.constant "
       << (isFloat(e)  ? "1.0 : " + e
           : e == "i1" ? "true"
                       : "1 : " + e)
       << "\n";
  Tensor result{fresh(), e, shape};
  body << "  " << result.name << " = tensor.pad " << in.name << " low[" << low
       << "] high[" << high << "] {\n  ^bb0(" << indices
       << "):\n    tensor.yield " << zero << " : " << e
       << "\n  } : " << typeOf(in) << " to " << typeOf(result) << "\n";
  values.push_back(result);
}

void Generator::gather() {
  int64_t vocabulary = 4, width = pick(1, 17), n = pick(1, 9);
  // Row ids come out of the index, so that they are always in range.
  Tensor table = operand("f32", {vocabulary, width});
  Tensor out = empty("f32", {n, width}, false, "");
  Tensor result{fresh(), "f32", {n, width}};
  body << "  %four" << next << " = arith.constant 4 : index\n"
       << "  " << result.name << " = linalg.generic {indexing_maps = ["
       << identity(2) << "], iterator_types = [\"parallel\", \"parallel\"]} "
       << "outs(" << out.name << " : " << typeOf(out)
       << ") {\n  ^bb0(%z: f32):\n    %i = linalg.index 0 : index\n"
       << "    %j = linalg.index 1 : index\n    %r = arith.remui %i, %four"
       << next << " : index\n    %x = tensor.extract " << table.name
       << "[%r, %j] : " << typeOf(table)
       << "\n    linalg.yield %x : f32\n  } -> " << typeOf(result) << "\n";
  ++next;
  values.push_back(result);
}

void Generator::transpose() {
  Tensor in = anyTensor();
  if (in.shape.empty())
    return elementwise();
  std::vector<int64_t> order(in.shape.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), rng);
  Shape shape;
  std::string text;
  for (int64_t d : order) {
    shape.push_back(in.shape[d]);
    text += (text.empty() ? "" : ", ") + std::to_string(d);
  }
  Tensor out = empty(in.element, shape, false, "");
  Tensor result{fresh(), in.element, shape};
  body << "  " << result.name << " = linalg.transpose ins(" << in.name << " : "
       << typeOf(in) << ") outs(" << out.name << " : " << typeOf(out)
       << ") permutation = [" << text << "]\n";
  values.push_back(result);
}

std::string Generator::run() {
  using Step = void (Generator::*)();
  static const Step steps[] = {
      &Generator::elementwise, &Generator::elementwise, &Generator::elementwise,
      &Generator::reduction,   &Generator::reduction,   &Generator::contraction,
      &Generator::contraction, &Generator::window,      &Generator::mask,
      &Generator::argMax,      &Generator::reshape,     &Generator::slice,
      &Generator::pad,         &Generator::gather,      &Generator::transpose};
  int64_t numOps = pick(1, 6);
  for (int64_t i = 0; i < numOps; ++i)
    (this->*steps[pick(0, std::size(steps) - 1)])();
  // The last value and some others are results.
  std::vector<Tensor> results = {values.back()};
  for (size_t i = 0; i + 1 < values.size() && results.size() < 3; ++i)
    if (chance(0.25))
      results.push_back(values[i]);
  std::string header, types, names;
  for (const Tensor &t : arguments)
    header += t.name + ": " + typeOf(t) + ", ";
  header += "%row: index";
  for (size_t i = 0; i < results.size(); ++i) {
    header += ", %o" + std::to_string(i) + ": " + typeOf(results[i]);
    types += (i ? ", " : "") + typeOf(results[i]);
    names += (i ? ", " : "") + results[i].name;
  }
  return "func.func private @k(" + header + ") -> (" + types + ") {\n" +
         body.str() + "  return " + names + " : " + types + "\n}\n";
}

std::string cleave::kernels::test::randomKernel(uint64_t seed) {
  return Generator(seed).run();
}

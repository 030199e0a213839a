//===- TestProgram.cpp - Small programs for tests of propagation ----------===//
#include "TestProgram.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <ctime>
#include <map>

namespace cleave::test {

double cpuSeconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static std::pair<std::string, int64_t> nameAndSize(llvm::StringRef text) {
  size_t digits = text.find_first_of("0123456789");
  return {text.take_front(digits).str(), std::stoll(text.substr(digits).str())};
}

Mesh parseMesh(llvm::StringRef text) {
  Mesh mesh;
  mesh.name = "m";
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, ',', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef part : parts) {
    auto [name, size] = nameAndSize(part);
    mesh.axes.push_back({name, size});
  }
  return mesh;
}

static AxisRef parseAxis(const Mesh &mesh, llvm::StringRef text) {
  auto [name, part] = text.split(":(");
  std::optional<unsigned> axis = mesh.findAxis(name);
  if (!axis)
    abort();
  AxisRef ref = mesh.whole(*axis);
  if (!part.empty()) {
    auto [pre, size] = part.split(')');
    ref.pre = std::stoll(pre.str());
    ref.size = std::stoll(size.str());
  }
  return ref;
}

/// Takes "{...}" off the front of `text`.
static llvm::SmallVector<llvm::StringRef> takeBraces(llvm::StringRef &text) {
  size_t begin = text.find('{'), end = text.find('}');
  llvm::SmallVector<llvm::StringRef> parts;
  text.slice(begin + 1, end).split(parts, ',', -1, /*KeepEmpty=*/false);
  text = text.substr(end + 1);
  return parts;
}

Sharding parseSharding(const Mesh &mesh, unsigned rank, llvm::StringRef text) {
  if (text.empty())
    return Sharding::whole(rank, /*open=*/true);
  Sharding result;
  while (text.starts_with("{")) {
    DimSharding dim;
    for (llvm::StringRef part : takeBraces(text)) {
      if (part == "?")
        dim.open = true;
      else
        dim.axes.push_back(parseAxis(mesh, part));
    }
    if (text.consume_front("p")) {
      dim.priority = text.front() - '0';
      text = text.drop_front();
    }
    result.dims.push_back(std::move(dim));
  }
  while (text.consume_front(" ")) {
    bool partial = text.starts_with("partial");
    if (partial)
      result.kind = *parseReduction(text.split('=').second.split('{').first);
    for (llvm::StringRef part : takeBraces(text))
      (partial ? result.partial : result.replicated)
          .push_back(parseAxis(mesh, part));
  }
  if (result.dims.size() != rank || !text.empty())
    abort();
  return result;
}

static void printAxes(llvm::raw_ostream &os, const Mesh &mesh,
                      llvm::ArrayRef<AxisRef> axes) {
  std::string text = toString(mesh, axes);
  llvm::erase(text, '"');
  llvm::erase(text, ' ');
  os << '{' << text << '}';
}

std::string print(const Mesh &mesh, const Sharding &sharding) {
  std::string text;
  llvm::raw_string_ostream os(text);
  for (const DimSharding &dim : sharding.dims)
    printAxes(os, mesh, dim.axes);
  if (!sharding.partial.empty()) {
    os << " partial=" << reductionName(sharding.kind);
    printAxes(os, mesh, sharding.partial);
  }
  return text;
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

static TensorFactors parseTensor(llvm::StringRef text, ShardingRule &rule,
                                 std::map<char, unsigned> &factors) {
  TensorFactors tensor;
  bool compound = false;
  for (char c : text) {
    if (c == '(') {
      compound = true;
      tensor.dims.emplace_back();
    } else if (c == ')') {
      compound = false;
    } else {
      if (!compound)
        tensor.dims.emplace_back();
      auto [it, isNew] = factors.try_emplace(c, rule.factors.size());
      if (isNew)
        rule.factors.emplace_back();
      tensor.dims.back().push_back(it->second);
    }
  }
  return tensor;
}

ShardingRule parseRule(llvm::StringRef text, llvm::ArrayRef<Shape> shapes) {
  ShardingRule rule;
  std::map<char, unsigned> factors;
  auto [in, out] = text.split("->");
  llvm::SmallVector<llvm::StringRef> parts;
  if (!in.empty())
    in.split(parts, ',');
  for (llvm::StringRef part : parts)
    rule.operands.push_back(parseTensor(part, rule, factors));
  parts.clear();
  out.split(parts, ',');
  for (llvm::StringRef part : parts)
    rule.results.push_back(parseTensor(part, rule, factors));
  llvm::SmallVector<bool> inResult(rule.factors.size(), false);
  for (unsigned t = 0; t < rule.numTensors(); ++t)
    for (auto [size, dim] : llvm::zip_equal(shapes[t], rule.tensor(t).dims)) {
      if (dim.size() == 1)
        rule.factors[dim[0]].size = size;
      if (t >= rule.operands.size())
        for (unsigned f : dim)
          inResult[f] = true;
    }
  for (auto [factor, has] : llvm::zip_equal(rule.factors, inResult))
    if (!has)
      factor.kind = FactorKind::Reduction;
  return rule;
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

Program::Program(llvm::StringRef mesh) { problem.mesh = parseMesh(mesh); }

unsigned Program::value(Shape shape, llvm::StringRef sharding,
                        llvm::StringRef name) {
  PropagationValue value;
  unsigned index = problem.values.size();
  value.name = name.empty() ? "v" + std::to_string(index) : name.str();
  value.initial = parseSharding(problem.mesh, shape.size(), sharding);
  value.shape = std::move(shape);
  problem.values.push_back(std::move(value));
  return index;
}

unsigned Program::op(llvm::StringRef rule, llvm::ArrayRef<unsigned> operands,
                     Shape resultShape, llvm::StringRef sharding) {
  llvm::SmallVector<Shape> shapes;
  for (unsigned operand : operands)
    shapes.push_back(problem.values[operand].shape);
  shapes.push_back(resultShape);
  PropagationOp op;
  op.rule = parseRule(rule, shapes);
  op.operands.assign(operands.begin(), operands.end());
  unsigned result = value(std::move(resultShape), sharding);
  op.results.push_back(result);
  problem.ops.push_back(std::move(op));
  return result;
}

unsigned Program::dot(unsigned lhs, unsigned rhs, llvm::StringRef sharding) {
  const Shape &a = problem.values[lhs].shape, &b = problem.values[rhs].shape;
  return op("ik,kj->ij", {lhs, rhs}, {a[0], b[1]}, sharding);
}

unsigned Program::add(unsigned lhs, unsigned rhs, llvm::StringRef sharding) {
  Shape shape = problem.values[lhs].shape;
  std::string dims = llvm::StringRef("abcd").take_front(shape.size()).str();
  return op(dims + "," + dims + "->" + dims, {lhs, rhs}, shape, sharding);
}

unsigned Program::identity(unsigned from, Direction direction,
                           llvm::StringRef sharding) {
  Shape shape = problem.values[from].shape;
  std::string dims = llvm::StringRef("abcd").take_front(shape.size()).str();
  unsigned result = op(dims + "->" + dims, {from}, shape, sharding);
  problem.ops.back().direction = direction;
  return result;
}

const PropagationResult &Program::run() {
  result = propagate(problem);
  return result;
}

std::string Program::operator[](unsigned value) const {
  return print(problem.mesh, result.shardings[value]);
}

} // namespace cleave::test

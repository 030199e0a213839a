//===- RandomTest.cpp - Random models under random plans ------------------===//
// A model of random ops computes on any mesh under any plan what it computes on
// one rank. Numbers are small and whole, so that sums are exact.
#include "cleave/cleave.h"

#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace cleave;

namespace {

const std::vector<Dim> kDims = {Dim("a", 5), Dim("b", 4), Dim("c", 6),
                                Dim("d", 3)};

/// Builds one model; the same seed gives the same one.
class Builder {
public:
  explicit Builder(unsigned seed) : random(seed), entry(model.entry("f")) {}

  Model build(int numOps) {
    // All dims are there, whatever the plan cuts.
    values.push_back(entry.input("x0", {kDims[0], kDims[1]}));
    values.push_back(entry.input("x1", {kDims[2], kDims[3]}));
    for (int i = 2; i < 4; ++i)
      values.push_back(entry.input("x" + std::to_string(i), someDims(1)));
    for (int i = 0; i < numOps; ++i)
      if (Tensor made = makeOp(); made && made.dims().size() <= 4)
        values.push_back(bounded(made));
    for (size_t i = values.size() - 3; i < values.size(); ++i)
      entry.output("y" + std::to_string(i), values[i]);
    return model;
  }

  /// The sizes of inputs and outputs, for calls.
  std::vector<Array> arrays(std::vector<std::vector<float>> &storage,
                            bool outputs) {
    size_t begin = outputs ? values.size() - 3 : 0;
    size_t count = outputs ? 3 : 4;
    storage.resize(count);
    std::vector<Array> result;
    for (size_t i = 0; i < count; ++i) {
      std::vector<int64_t> shape;
      int64_t size = 1;
      for (const Dim &dim : values[begin + i].dims()) {
        shape.push_back(dim.size());
        size *= dim.size();
      }
      for (int64_t j = 0; j < size; ++j)
        storage[i].push_back(outputs ? 0 : float(int(random() % 9) - 4));
      result.push_back(
          Array::of((outputs ? "y" : "x") + std::to_string(begin + i), shape,
                    storage[i].data()));
    }
    return result;
  }

private:
  unsigned below(size_t n) { return static_cast<unsigned>(random() % n); }
  const Tensor &some() { return values[below(values.size())]; }
  /// Each dim in half of the cases, but at least some.
  std::vector<Dim> someDims(size_t least) {
    std::vector<Dim> dims;
    while (dims.size() < least || dims.size() > 3) {
      dims.clear();
      for (const Dim &dim : kDims)
        if (below(2))
          dims.push_back(dim);
    }
    std::shuffle(dims.begin(), dims.end(), random);
    return dims;
  }
  /// The remainder by 8: numbers stay small and exact.
  Tensor bounded(const Tensor &x) { return x % 8; }
  Tensor makeOp();
  Tensor moved(const Tensor &x, const Dim &dim);
  Tensor repeated(const Tensor &x, const Tensor &y);

  std::mt19937 random;
  Model model;
  Entry entry;
  std::vector<Tensor> values;
  int numDims = 0;
};

/// Slices, pads and joins lead to a dim of another size and back.
Tensor Builder::moved(const Tensor &x, const Dim &dim) {
  int64_t size = dim.size();
  Dim other("n" + std::to_string(numDims++), size == 3 ? 2 : size - 2);
  Tensor part = slice(x, dim, other, below(2), 1);
  switch (below(4)) {
  case 0:
    return pad(part, other, dim, below(2), -1);
  case 1: {
    Dim rest("n" + std::to_string(numDims++), size - other.size());
    return concat({slice(x, dim, rest, 0), part}, {rest, other}, dim);
  }
  case 2:
    return update(x, dim, part, other, entry.constant(double(below(3)), i32));
  default:
    return sum(part, other) + x;
  }
}

/// Two turns that read `y` from outside, as calls of a function or as a loop.
Tensor Builder::repeated(const Tensor &x, const Tensor &y) {
  std::vector<Dim> others;
  for (const Dim &dim : y.dims()) {
    bool isShared = false;
    for (const Dim &own : x.dims())
      isShared |= own.name() == dim.name();
    if (!isShared)
      others.push_back(dim);
  }
  Tensor fitted = sum(y, others);
  auto turn = [&](Scope m, Tensor v) { return bounded(v * 3 - fitted); };
  std::string name = "turn" + std::to_string(numDims++);
  return below(2) ? entry.repeat(name, 2, turn, x)
                  : entry.loop(Dim(name, 2), turn, x);
}

Tensor Builder::makeOp() {
  const Tensor &x = some(), &y = some();
  std::vector<Dim> dims = x.dims();
  if (dims.empty())
    return x + y;
  const Dim &dim = dims[below(dims.size())];
  bool isShared = false;
  for (const Dim &other : y.dims())
    isShared |= other.name() == dim.name();
  switch (below(12)) {
  case 0:
    return x * y;
  case 1:
    return select(x > y, x, y + 1);
  case 2:
    return sum(x, dim);
  case 3:
    return max(x, dim) - y;
  case 4:
  case 5:
    return isShared ? dot(x, y, dim) : x - y;
  case 6:
    return moved(x, dim);
  case 7:
    std::shuffle(dims.begin(), dims.end(), random);
    return reorder(x, dims);
  case 8: {
    Dim all("n" + std::to_string(numDims++));
    return dims.size() < 2 ? relu(x)
                           : split(merge(x, {dims[0], dims[1]}, all) + 1, all,
                                   {dims[0], dims[1]});
  }
  case 9:
  case 10:
    return repeated(x, y);
  default:
    return cast(argmax(x, dim), f32) + min(x, dim);
  }
}

Plan randomPlan(std::mt19937 &random) {
  Plan plan(Mesh("m", {{"p", 2}, {"q", 3}}));
  std::vector<const char *> axes = {"p", "q"};
  std::shuffle(axes.begin(), axes.end(), random);
  int priority = 0;
  for (const char *axis : axes)
    plan.shard(kDims[random() % 4], axis, {.priority = priority++});
  if (random() % 2)
    plan.tensor("x0").replicate("p");
  return plan;
}

/// What the model gives under a plan.
std::vector<std::vector<float>> outputsOf(unsigned seed, const Plan &plan) {
  Builder builder(seed);
  Model model = builder.build(14);
  EXPECT_EQ(errors(model, plan), "");
  std::vector<std::vector<float>> in, out;
  std::vector<Array> inputs = builder.arrays(in, false);
  std::vector<Array> outputs = builder.arrays(out, true);
  Expected<Program> program = compile(model, plan);
  EXPECT_TRUE(program) << program.error();
  if (program) {
    EXPECT_EQ(program->load(std::vector<Array>()), "");
    EXPECT_EQ(program->run("f", inputs, outputs), "");
  }
  return out;
}

struct DslRandom : testing::TestWithParam<unsigned> {};

TEST_P(DslRandom, CutsLikeOneRank) {
  std::mt19937 random(GetParam());
  Plan plan = randomPlan(random);
  auto whole = outputsOf(GetParam(), Plan(Mesh("one", {{"p", 1}})));
  auto cut = outputsOf(GetParam(), plan);
  ASSERT_EQ(whole.size(), cut.size());
  for (size_t i = 0; i < whole.size(); ++i)
    EXPECT_EQ(whole[i], cut[i]) << "output " << i;
}

unsigned firstSeed() {
  const char *text = std::getenv("CLEAVE_DSL_SEED");
  return text ? unsigned(std::stoul(text)) : 1;
}

INSTANTIATE_TEST_SUITE_P(Seeds, DslRandom,
                         testing::Range(firstSeed(), firstSeed() + 4));

} // namespace

//===- ProgramTest.cpp - Compiled models that are called ------------------===//
#include "test/dsl/Case.h"

#include <cmath>
#include <cstdio>

using namespace cleave;

namespace {

const Dim B("batch", 2), S("seq"), T("past", 6), D("model", 8), K("kv", 2);
const Dim G("group", 2), E("head", 4), V("vocab", 10);

/// One layer of attention over a cache.
Tensor attention(Scope m, Tensor x, Tensor position) {
  Tensor q =
      rope(dot(x, m.weight("wq", {D, K, G, E}), D), S, E, {.offset = position});
  Tensor k =
      rope(dot(x, m.weight("wk", {D, K, E}), D), S, E, {.offset = position});
  Tensor v = dot(x, m.weight("wv", {D, K, E}), D);
  Tensor keys = update(m.state("keys", {B, T, K, E}), T, k, S, position);
  Tensor values = update(m.state("values", {B, T, K, E}), T, v, S, position);
  m.store("keys", keys);
  m.store("values", values);
  Tensor mixed = attend(
      q, keys, values,
      {.queries = S, .keys = T, .head = E, .causal = true, .offset = position});
  return dot(mixed, m.weight("wo", {K, G, E, D}), {K, G, E});
}

Tensor layer(Scope m, Tensor x, Tensor position) {
  return x + m.call("attn", attention, x, position);
}

void addEntry(Model &m, const char *name, int64_t length) {
  Entry e = m.entry(name, {S(length)});
  Tensor tokens = e.input("tokens", {B, S}, i32);
  Tensor position = e.input("position", {}, i32);
  Tensor x = embedding(e["embed"], tokens, V, D);
  x = e.repeat("layer", 2, layer, x, position);
  e.output("logits", dot(x, e.weight("head", {D, V}), D));
}

Model model() {
  Model m("cached");
  addEntry(m, "prefill", 4);
  addEntry(m, "decode", 1);
  addEntry(m, "whole", 6);
  return m;
}

Plan plan(std::vector<Mesh::Axis> axes) {
  Plan p(Mesh("pod", std::move(axes)));
  p.shard(B, "dp").shard(K, "tp").shard(V, "tp");
  return p;
}

/// The weights of the model, the same on each call.
std::vector<Array> weights(std::vector<std::vector<float>> &storage) {
  const std::vector<std::pair<std::string, Index>> shapes = {
      {"embed.weight", {10, 8}},        {"head", {8, 10}},
      {"layer0.attn.wq", {8, 2, 2, 4}}, {"layer0.attn.wk", {8, 2, 4}},
      {"layer0.attn.wv", {8, 2, 4}},    {"layer0.attn.wo", {2, 2, 4, 8}},
      {"layer1.attn.wq", {8, 2, 2, 4}}, {"layer1.attn.wk", {8, 2, 4}},
      {"layer1.attn.wv", {8, 2, 4}},    {"layer1.attn.wo", {2, 2, 4, 8}}};
  std::vector<Array> arrays;
  unsigned seed = 7;
  storage.reserve(shapes.size());
  for (const auto &[name, shape] : shapes) {
    Numbers numbers{f32, shape, {}};
    std::vector<float> &data = storage.emplace_back();
    for (int64_t i = 0; i < numbers.size(); ++i) {
      seed = seed * 1103515245 + 12345;
      data.push_back((float((seed >> 16) % 17) - 8) / 8);
    }
    arrays.push_back(Array::of(name, shape, data.data()));
  }
  return arrays;
}

/// A cache that is filled by a prompt and then token by token gives the scores
/// that the whole sequence at once gives.
void decodesLikeWhole(const Model &model, const Plan &plan, int64_t ranks,
                      const std::vector<Array> &weights) {
  Expected<Program> program = compile(model, plan);
  ASSERT_TRUE(program) << program.error();
  EXPECT_EQ(program->ranks(), ranks);
  ASSERT_EQ(program->load(weights), "");
  std::vector<int32_t> tokens = {1, 5, 3, 9, 0, 2, 4, 4, 8, 7, 6, 1};
  std::vector<float> whole(2 * 6 * 10), prompt(2 * 4 * 10), step(2 * 10);
  int32_t position = 0;
  Array at = Array::of("position", {}, &position);
  ASSERT_EQ(program->run("whole",
                         {Array::of("tokens", {2, 6}, tokens.data()), at},
                         {Array::of("logits", {2, 6, 10}, whole.data())}),
            "");
  std::vector<int32_t> head = {1, 5, 3, 9, 4, 4, 8, 7};
  ASSERT_EQ(program->run("prefill",
                         {Array::of("tokens", {2, 4}, head.data()), at},
                         {Array::of("logits", {2, 4, 10}, prompt.data())}),
            "");
  for (int b : {0, 1})
    for (int i = 0; i < 40; ++i)
      EXPECT_NEAR(prompt[b * 40 + i], whole[b * 60 + i], 1e-4);
  for (position = 4; position < 6; ++position) {
    std::vector<int32_t> one = {tokens[position], tokens[6 + position]};
    ASSERT_EQ(program->run("decode",
                           {Array::of("tokens", {2, 1}, one.data()), at},
                           {Array::of("logits", {2, 1, 10}, step.data())}),
              "");
    for (int b : {0, 1})
      for (int i = 0; i < 10; ++i)
        EXPECT_NEAR(step[b * 10 + i], whole[b * 60 + position * 10 + i], 1e-4);
  }
}

TEST(DslProgram, EntriesShareWeightsAndCache) {
  std::vector<std::vector<float>> storage;
  std::vector<Array> all = weights(storage);
  decodesLikeWhole(model(), plan({{"dp", 1}, {"tp", 1}}), 1, all);
  decodesLikeWhole(model(), plan({{"dp", 2}, {"tp", 2}}), 4, all);
  decodesLikeWhole(model(), plan({{"dp", 1}, {"tp", 3}}), 3, all);
}

/// The model with its layers in a loop, whose weights and cache lie in stacks.
Model loopModel() {
  const Dim L("layer", 2);
  Model m("looped");
  for (auto [name, length] :
       {std::pair("prefill", 4), {"decode", 1}, {"whole", 6}}) {
    Entry e = m.entry(name, {S(length)});
    Tensor tokens = e.input("tokens", {B, S}, i32);
    Tensor position = e.input("position", {}, i32);
    Tensor x = embedding(e["embed"], tokens, V, D);
    x = e.loop(L, layer, x, position);
    e.output("logits", dot(x, e.weight("head", {D, V}), D));
  }
  return m;
}

TEST(DslProgram, LoopsCarryStacks) {
  std::vector<std::vector<float>> storage;
  std::vector<Array> single = weights(storage),
                     stacks(single.begin(), single.begin() + 2);
  std::vector<std::vector<float>> joined(4);
  for (int i : {0, 1, 2, 3}) {
    const Array &one = single[2 + i], &two = single[6 + i];
    size_t half = storage[2 + i].size();
    joined[i] = storage[2 + i];
    joined[i].insert(joined[i].end(), storage[6 + i].begin(),
                     storage[6 + i].end());
    ASSERT_EQ(joined[i].size(), 2 * half);
    Index shape = one.shape;
    EXPECT_EQ(shape, two.shape);
    shape.insert(shape.begin(), 2);
    std::string name = "layer" + one.name.substr(std::string("layer0").size());
    stacks.push_back(Array::of(name, shape, joined[i].data()));
  }
  decodesLikeWhole(loopModel(), plan({{"dp", 2}, {"tp", 2}}), 4, stacks);
  // The loop computes what the repeated layers compute.
  std::vector<float> looped(2 * 6 * 10), repeated = looped;
  std::vector<int32_t> tokens = {1, 5, 3, 9, 0, 2, 4, 4, 8, 7, 6, 1};
  int32_t position = 0;
  for (bool isLoop : {false, true}) {
    Expected<Program> program =
        compile(isLoop ? loopModel() : model(), plan({{"dp", 1}, {"tp", 1}}));
    ASSERT_TRUE(program) << program.error();
    ASSERT_EQ(program->load(isLoop ? stacks : single), "");
    ASSERT_EQ(program->run("whole",
                           {Array::of("tokens", {2, 6}, tokens.data()),
                            Array::of("position", {}, &position)},
                           {Array::of("logits", {2, 6, 10},
                                      (isLoop ? looped : repeated).data())}),
              "");
  }
  for (size_t i = 0; i < looped.size(); ++i)
    EXPECT_NEAR(looped[i], repeated[i], 1e-4);
}

TEST(DslProgram, TellsWhatIsWrong) {
  Model m;
  Entry e = m.entry("forward");
  e.output("y", e.input("x", D) * 2);
  Plan p(Mesh("pod", {{"tp", 2}}));
  Expected<Program> program =
      compile(m, p, {.mesh = {{"tq", 3}}, .target = "cpu:avx2"});
  ASSERT_FALSE(program);
  EXPECT_NE(program.error().find(
                "error: 'cleave.mesh' op 'pod' has no axis 'tq', which --mesh "
                "names; closest is 'tp'\n"),
            std::string::npos)
      << program.error();
  program = compile(m, p, {.target = "gpu"});
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error(),
            "error: unknown target 'gpu'; known is cpu[:ISA]\n");
  program = compile(m, p, {.library = "/nowhere/model.so"});
  ASSERT_FALSE(program);
  EXPECT_NE(program.error().find("error: cannot write '/nowhere/model.so': No "
                                 "such file or directory\n"),
            std::string::npos)
      << program.error();
  setenv("TMPDIR", "/nowhere", 1);
  program = compile(m, p);
  unsetenv("TMPDIR");
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error(),
            "cannot make a directory in '/nowhere': No such file or "
            "directory\n");
}

TEST(DslProgram, StatesAreSetAndTaken) {
  Model m;
  Entry e = m.entry("count");
  Tensor total = e["sum"].state("total", D);
  e["sum"].store("total", total + e.input("x", D));
  Plan p(Mesh("pod", {{"tp", 3}}));
  p.shard(D, "tp");
  Expected<Program> program = compile(m, p);
  ASSERT_TRUE(program) << program.error();
  ASSERT_EQ(program->load(std::vector<Array>()), "");
  std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8}, state(8, 100);
  std::vector<Array> in = {Array::of("x", {8}, x.data())};
  Array array = Array::of("sum.total", {8}, state.data());
  ASSERT_EQ(program->run("count", in, {}), "");
  ASSERT_EQ(program->setState(array), "");
  ASSERT_EQ(program->run("count", in, {}), "");
  ASSERT_EQ(program->run("count", in, {}), "");
  ASSERT_EQ(program->getState(array), "");
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(state[i], 100 + 2 * x[i]);
  array.name = "total";
  EXPECT_EQ(program->getState(array),
            "unknown state 'total'; known are 'sum.total'");
}

TEST(DslProgram, KeepsTheLibraryAndTakesMeshSizes) {
  Model m;
  Entry e = m.entry("forward");
  e.output("y", e.input("x", D) * 2);
  Plan p(Mesh("pod", {{"tp", 2}}));
  p.shard(D, "tp");
  std::string file = testing::TempDir() + "dsl-program.so";
  Expected<Program> program =
      compile(m, p, {.mesh = {{"tp", 3}}, .library = file});
  ASSERT_TRUE(program) << program.error();
  EXPECT_EQ(program->ranks(), 3);
  EXPECT_EQ(std::remove(file.c_str()), 0);
  std::remove((testing::TempDir() + "dsl-program.h").c_str());
  std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8}, y(8);
  std::vector<Array> in = {Array::of("x", {8}, x.data())};
  std::vector<Array> out = {Array::of("y", {8}, y.data())};
  EXPECT_EQ(program->run("forward", in, out), "the weights are not loaded yet");
  ASSERT_EQ(program->load(std::vector<Array>()), "");
  EXPECT_EQ(program->run("backward", in, out),
            "unknown entry 'backward'; known are 'forward'");
  ASSERT_EQ(program->run("forward", in, out), "");
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(y[i], 2 * x[i]);
}

} // namespace

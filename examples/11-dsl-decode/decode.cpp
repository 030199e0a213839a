// A model that a program embeds: a prompt fills a cache of keys and values, and
// steps of one token continue from it. Both entries share weights and cache;
// the program is compiled for one rank and for three, and says the same with
// both.
#include <cleave/cleave.h>

#include <cstdio>
#include <random>

using namespace cleave;

const Dim B("batch", 1), S("seq"), T("places", 16), D("model", 24);
const Dim K("kv", 3), G("group", 2), E("head", 4), V("vocab", 40);

// [cache]
Tensor attention(Scope m, Tensor x, Tensor position) {
  Rope turned{.offset = position};
  Tensor q = rope(dot(x, m.weight("wq", {D, K, G, E}), D), S, E, turned);
  Tensor k = rope(dot(x, m.weight("wk", {D, K, E}), D), S, E, turned);
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
// [/cache]

Tensor layer(Scope m, Tensor x, Tensor position) {
  Tensor normed = rms_norm(m["norm"], x, D);
  return x + m.call("attn", attention, normed, position);
}

// [entries]
void addEntry(Model &m, const char *name, int64_t length) {
  Entry e = m.entry(name, {S(length)});
  Tensor tokens = e.input("tokens", {B, S}, i32);
  Tensor position = e.input("position", {}, i32);
  Tensor x = embedding(e["embed"], tokens, V, D);
  x = e.repeat("layer", 2, layer, x, position);
  Tensor scores = dot(x, e.weight("head", {D, V}), D);
  Tensor last = slice(scores, S, Dim("last", 1), length - 1);
  e.output("token", argmax(last, V));
}

Model model() {
  Model m("decoder");
  addEntry(m, "prefill", 5);
  addEntry(m, "decode", 1);
  return m;
}
// [/entries]

/// Weights that are not trained, but the same each time.
std::vector<Array> weights(std::vector<std::vector<float>> &storage) {
  std::vector<std::pair<std::string, std::vector<int64_t>>> shapes = {
      {"embed.weight", {40, 24}}, {"head", {24, 40}}};
  for (std::string layer : {"layer0.", "layer1."}) {
    shapes.push_back({layer + "norm.weight", {24}});
    shapes.push_back({layer + "attn.wq", {24, 3, 2, 4}});
    shapes.push_back({layer + "attn.wk", {24, 3, 4}});
    shapes.push_back({layer + "attn.wv", {24, 3, 4}});
    shapes.push_back({layer + "attn.wo", {3, 2, 4, 24}});
  }
  std::mt19937 random(1);
  std::vector<Array> arrays;
  storage.resize(shapes.size());
  for (size_t i = 0; i < shapes.size(); ++i) {
    int64_t count = 1;
    for (int64_t size : shapes[i].second)
      count *= size;
    for (int64_t j = 0; j < count; ++j)
      storage[i].push_back(float(random() % 2001) / 1000 - 1);
    arrays.push_back(
        Array::of(shapes[i].first, shapes[i].second, storage[i].data()));
  }
  return arrays;
}

// [run]
/// Continues a prompt, or says what is wrong.
std::string generate(const Plan &plan) {
  Expected<Program> program = compile(model(), plan);
  if (!program)
    return program.error();
  std::vector<std::vector<float>> storage;
  std::string wrong = program->load(weights(storage));
  std::vector<int32_t> prompt = {3, 14, 15, 9, 26};
  int32_t position = 0, token = 0;
  std::vector<Array> out = {Array::of("token", {1, 1}, &token)};
  if (wrong.empty())
    wrong = program->run("prefill",
                         {Array::of("tokens", {1, 5}, prompt.data()),
                          Array::of("position", {}, &position)},
                         out);
  std::string text;
  for (position = 5; position < 15 && wrong.empty(); ++position) {
    text += std::to_string(token) + " ";
    wrong = program->run("decode",
                         {Array::of("tokens", {1, 1}, &token),
                          Array::of("position", {}, &position)},
                         out);
  }
  return wrong.empty() ? text : wrong;
}
// [/run]

int main(int argc, char **argv) {
  Plan alone(Mesh("one", {{"tp", 1}}));
  Plan cut(Mesh("three", {{"tp", 3}}));
  cut.shard(K, "tp").shard(V, "tp");
  if (argc > 1)
    return driver(argc, argv, model(), cut);
  std::string first = generate(alone), second = generate(cut);
  std::printf("1 rank:  %s\n3 ranks: %s\n", first.c_str(), second.c_str());
  return first == second ? 0 : 3;
}

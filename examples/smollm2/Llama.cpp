//===- Llama.cpp - The Llama architecture in the DSL ----------------------===//
// Touvron et al. 2023; grouped queries: Ainslie et al. 2023; rope: Su et al.
// 2021; SwiGLU: Shazeer 2020.
//===----------------------------------------------------------------------===//
#include "Llama.h"

using namespace cleave;

namespace {
/// The model's dims, and what its layers share.
struct Layers {
  Layers(const llama::Config &config, const llama::Sizes &sizes)
      : config(config), type(sizes.type), B("batch", sizes.samples),
        T("context", sizes.context), D("model", config.hidden),
        K("kv", config.kvHeads), G("group", config.group()),
        E("head", config.headDim), F("ffn", config.ffn),
        V("vocab", config.vocabulary) {}

  // [layer]
  Tensor attention(Scope m, Tensor x, Tensor position) const {
    Rope turned{.base = config.ropeTheta, .offset = position};
    if (const auto &scaling = config.ropeScaling)
      turned.stretch = {scaling->factor, scaling->lowFrequencyFactor,
                        scaling->highFrequencyFactor,
                        double(scaling->originalContext)};
    Tensor q = dot(x, m.weight("wq", {K, G, E, D}, type), D);
    Tensor k = dot(x, m.weight("wk", {K, E, D}, type), D);
    Tensor v = dot(x, m.weight("wv", {K, E, D}, type), D);
    q = rope(q, S, E, turned);
    k = rope(k, S, E, turned);
    Tensor keys = update(m.state("keys", {B, K, T, E}, type), T, cast(k, type),
                         S, position);
    Tensor values = update(m.state("values", {B, K, T, E}, type), T,
                           cast(v, type), S, position);
    m.store("keys", keys);
    m.store("values", values);
    Tensor mixed = attend(q, keys, values,
                          {.queries = S,
                           .keys = T,
                           .head = E,
                           .causal = true,
                           .offset = position});
    return dot(mixed, m.weight("wo", {D, K, G, E}, type), {K, G, E});
  }

  Tensor perceptron(Scope m, Tensor x) const {
    Tensor gate = silu(dot(x, m.weight("gate", {F, D}, type), D));
    Tensor up = dot(x, m.weight("up", {F, D}, type), D);
    return dot(gate * up, m.weight("down", {D, F}, type), F);
  }

  Tensor layer(Scope m, Tensor x, Tensor position) const {
    auto attend = [&](Scope s, Tensor y) { return attention(s, y, position); };
    auto think = [&](Scope s, Tensor y) { return perceptron(s, y); };
    x = x + m.call("attn", attend, norm(m["attn_norm"], x));
    return x + m.call("mlp", think, norm(m["mlp_norm"], x));
  }
  // [/layer]

  Tensor norm(Scope m, Tensor x) const {
    return rms_norm(m, x, D, config.epsilon);
  }

  /// All but what is special to an entry: hidden values [B, S, D].
  Tensor body(Entry &e, Tensor tokens, Tensor position) const {
    Tensor table = e.weight("embed.weight", {V, D}, type);
    Tensor x = cast(lookup(table, tokens, V), f32).named("embedded");
    auto turn = [&](Scope m, Tensor y, Tensor p) { return layer(m, y, p); };
    return e.repeat("layer", config.layers, turn, x, position);
  }
  Tensor head(Entry &e, Tensor x) const {
    x = norm(e["norm"], x);
    Tensor weight =
        e.weight(config.tied ? "embed.weight" : "lm_head.weight", {V, D}, type);
    return dot(x, weight, D);
  }

  const llama::Config &config;
  Element type;
  Dim B, T, D, K, G, E, F, V;
  Dim S = Dim("seq"), One = Dim("last", 1);
};
} // namespace

Model llama::makeModel(const Config &config, const Sizes &sizes) {
  Layers layers(config, sizes);
  const Dim &B = layers.B, &S = layers.S, &One = layers.One;
  Model m("llama");
  {
    Entry e = m.entry("prefill", {S(sizes.chunk)});
    Tensor tokens = e.input("tokens", {B, S}, i32);
    Tensor position = e.input("position", {}, i32);
    Tensor last = e.input("last", {}, i32);
    Tensor x = layers.body(e, tokens, position);
    e.output("logits", layers.head(e, slice(x, S, One, last)));
  }
  {
    Entry e = m.entry("decode", {S(1)});
    Tensor tokens = e.input("tokens", {B, S}, i32);
    Tensor position = e.input("position", {}, i32);
    Tensor x = layers.body(e, tokens, position);
    e.output("logits", layers.head(e, x.rename(S, One)));
  }
  return m;
}

Plan llama::makePlan(const Config &config, const Cut &cut) {
  // [plan]
  Plan p(Mesh("ranks", {{"dp", cut.dp}, {"tp", cut.tp}}));
  Dim B("batch"), K("kv"), G("group"), F("ffn"), V("vocab"), S("seq");
  p.shard(B, "dp");
  int64_t shared = cut.tp / config.kvHeads;
  if (cut.tp > config.kvHeads && cut.tp % config.kvHeads == 0) {
    // Each head of keys is on `shared` ranks, which divide its queries.
    p.shard(K, "tp:(1)" + std::to_string(config.kvHeads));
    p.shard(G, "tp:(" + std::to_string(config.kvHeads) + ")" +
                   std::to_string(shared));
  } else {
    p.shard(K, "tp");
  }
  p.shard(F, "tp");
  if (cut.wholeHead)
    p.replicate(V);
  else
    p.shard(V, "tp");
  if (cut.sequence)
    p.at("layer*.*_norm").shard(S, "tp");
  // [/plan]
  return p;
}

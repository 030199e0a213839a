// A small Llama: grouped queries, rope, causal attention, RMSNorm and SwiGLU.
// Three layers of one function, cut as in Megatron-LM: heads, the inner dim of
// the perceptrons and the vocabulary over 'tp'. With --sequence-parallel the
// values between the heavy parts are cut along the sequence as well.
#include <cleave/cleave.h>

#include <cstring>

using namespace cleave;

// [model]
const Dim B("batch", 2), S("seq", 8), T("key_seq"), D("model", 48);
const Dim K("kv", 3), G("group", 2), E("head", 8), F("ffn", 64), V("vocab", 60);

Tensor attention(Scope m, Tensor x) {
  Tensor q = rope(dot(x, m.weight("wq", {D, K, G, E}), D), S, E);
  Tensor k = rope(dot(x, m.weight("wk", {D, K, E}), D), S, E).rename(S, T);
  Tensor v = dot(x, m.weight("wv", {D, K, E}), D).rename(S, T);
  Tensor p = softmax(causal(dot(q, k, E) * rsqrt(E), S, T), T);
  return dot(dot(p, v, T), m.weight("wo", {K, G, E, D}), {K, G, E});
}

Tensor mlp(Scope m, Tensor x) {
  Tensor gate = silu(dot(x, m.weight("gate", {D, F}), D));
  return dot(gate * dot(x, m.weight("up", {D, F}), D), m.weight("down", {F, D}),
             F);
}

Tensor layer(Scope m, Tensor x) {
  x = x + m.call("attn", attention, rms_norm(m["attn_norm"], x, D));
  return x + m.call("mlp", mlp, rms_norm(m["mlp_norm"], x, D));
}

Model model() {
  Model m("llama");
  Entry e = m.entry("forward");
  Tensor tokens = e.input("tokens", {B, S}, i32);
  Tensor x = embedding(e["embed"], tokens, V, D);
  x = e.repeat("layer", 3, layer, x);
  x = rms_norm(e["norm"], x, D);
  e.output("logits", dot(x, e.weight("head", {D, V}), D));
  return m;
}

Plan plan() {
  Plan p(Mesh("pod", {{"dp", 1}, {"tp", 3}}));
  p.shard(B, "dp");                               // data parallel
  p.shard(K, "tp").shard(F, "tp").shard(V, "tp"); // heads, ffn, vocabulary
  return p;
}
// [/model]

int main(int argc, char **argv) {
  Plan p = plan();
  // [sequence]
  if (argc > 1 && !std::strcmp(argv[argc - 1], "--sequence-parallel")) {
    --argc;
    p.at("layer*.*_norm").shard(S, "tp");
  }
  // [/sequence]
  return driver(argc, argv, model(), p);
}

// An encoder: attention to both sides, layer norm, gelu, and learned positions,
// with padding that a mask of the input hides.
#include <cleave/cleave.h>

using namespace cleave;

const Dim B("batch", 3), S("seq", 6), T("key_seq"), D("model", 32);
const Dim H("heads", 4), E("head", 8), F("ffn", 64), V("vocab", 50);

Tensor attention(Scope m, Tensor x, Tensor lengths) {
  Tensor q = linear(m["query"], x, D, {H, E});
  Tensor k = linear(m["key"], x, D, {H, E}).rename(S, T);
  Tensor v = linear(m["value"], x, D, {H, E}).rename(S, T);
  Tensor mixed =
      attend(q, k, v, {.queries = S, .keys = T, .head = E, .length = lengths});
  return linear(m["output"], mixed, {H, E}, D);
}

Tensor layer(Scope m, Tensor x, Tensor lengths) {
  x = layer_norm(
      m["attn_norm"],
      x + m.call(
              "attn",
              [&](Scope a, Tensor y) { return attention(a, y, lengths); }, x),
      D);
  Tensor h = gelu(linear(m["up"], x, D, F));
  return layer_norm(m["mlp_norm"], x + linear(m["down"], h, F, D), D);
}

Model model() {
  Model m("encoder");
  Entry e = m.entry("forward");
  Tensor tokens = e.input("tokens", {B, S}, i32);
  Tensor lengths = e.input("lengths", B, i32);
  Tensor x = embedding(e["tokens_table"], tokens, V, D) +
             e.weight("positions", {S, D});
  x = e.repeat("layer", 2, layer, layer_norm(e["norm"], x, D), lengths + 1);
  e.output("hidden", x);
  return m;
}

Plan plan() {
  Plan p(Mesh("pod", {{"dp", 1}, {"tp", 2}}));
  p.shard(B, "dp").shard(H, "tp").shard(F, "tp");
  return p;
}

int main(int argc, char **argv) { return driver(argc, argv, model(), plan()); }

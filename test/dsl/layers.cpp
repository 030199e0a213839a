// Three layers with names as in files of weights, "model.layers.0.up". The plan
// leaves the one in the middle whole.
#include <cleave/cleave.h>

using namespace cleave;

const Dim B("batch", 4), D("model", 8), F("ffn", 12);

static Tensor layer(Scope m, Tensor x) {
  Tensor h = relu(dot(x, m.weight("up", {D, F}), D));
  return dot(h, m.weight("down", {F, D}), F);
}

int main(int argc, char **argv) {
  Model m("layers");
  Entry e = m.entry("forward");
  Tensor x = e.input("x", {B, D});
  e.output("y", e["model"].repeat("layers.", 3, layer, x));
  Plan p(Mesh("pod", {{"tp", 2}}));
  p.shard(F, "tp");
  p.at("model.layers.1").replicate(F);
  return driver(argc, argv, m, p);
}

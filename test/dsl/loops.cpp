// A loop over layers whose weights, and a state that each layer adds to, lie in
// stacks.
#include <cleave/cleave.h>

using namespace cleave;

const Dim L("layer", 3), B("batch", 4), D("model", 8), F("ffn", 12);

static Tensor layer(Scope m, Tensor x) {
  Tensor h = relu(dot(x, m.weight("up", {D, F}), D));
  Tensor seen = m.state("seen", F);
  m.store("seen", seen + sum(h, B));
  return x + dot(h, m.weight("down", {F, D}), F);
}

int main(int argc, char **argv) {
  Model m("loops");
  Entry e = m.entry("forward");
  e.output("y", e.loop(L, layer, e.input("x", {B, D})));
  Plan p(Mesh("pod", {{"dp", 2}, {"tp", 2}}));
  p.shard(F, "tp").shard(B, "dp");
  return driver(argc, argv, m, p);
}

// A two-layer perceptron, written with named dims. The plan cuts the dim
// between the layers over 'tp': each rank has some of the first layer's columns
// and the same of the second's rows, and one all-reduce adds what the ranks
// computed.
#include <cleave/cleave.h>

using namespace cleave;

const Dim B("batch", 8), D("model", 32), F("ffn", 64);

Tensor mlp(Scope m, Tensor x) {
  Tensor h = gelu(dot(x, m.weight("up", {D, F}), D) + m.weight("up_bias", F));
  return dot(h, m.weight("down", {F, D}), F);
}

Model model() {
  Model m("mlp");
  Entry e = m.entry("forward");
  Tensor x = e.input("x", {B, D});
  e.output("y", x + e.call("mlp", mlp, x));
  return m;
}

Plan plan() {
  Plan p(Mesh("pod", {{"dp", 1}, {"tp", 4}}));
  p.shard(B, "dp").shard(F, "tp");
  return p;
}

int main(int argc, char **argv) { return driver(argc, argv, model(), plan()); }

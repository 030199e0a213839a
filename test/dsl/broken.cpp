// A model and a plan with mistakes: what its command line says is in
// driver.test.
#include <cleave/cleave.h>

using namespace cleave;

const Dim B("batch", 4), D("model", 8), F("ffn", 12);

int main(int argc, char **argv) {
  Model m("broken");
  Entry e = m.entry("forward");
  Tensor x = e.input("x", {B, D});
  Tensor h = dot(x, e.weight("up", {D, F}), F);
  e.output("y", relu(h));
  Plan p(Mesh("pod", {{"tp", 2}}));
  p.shard(F, "tpp");
  return driver(argc, argv, m, p);
}

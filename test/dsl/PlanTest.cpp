//===- PlanTest.cpp - How plans cut the tensors of a model ----------------===//
#include "dsl/Plan.h"
#include "cleave/program.h"
#include "dsl/Names.h"

#include <gtest/gtest.h>

using namespace cleave;

namespace {

const Dim B("batch", 4), D("model", 8), F("ffn", 12);

Tensor layer(Scope m, Tensor x) {
  Tensor n = rms_norm(m["norm"], x, D);
  Tensor h = dot(n, m.weight("up", {D, F}), D).named("hidden");
  return x + dot(relu(h), m.weight("down", {F, D}), F);
}

Model model() {
  Model m("test");
  Entry e = m.entry("forward");
  e.output("y", e.repeat("layer", 2, layer, e.input("x", {B, D})));
  return m;
}

Plan pod() { return Plan(Mesh("pod", {{"dp", 2}, {"tp", 12}})); }

/// The sharding of a tensor, without the mesh; "" if no rule speaks of it.
std::string cutOf(const std::string &name, const Plan &plan) {
  Model m = model();
  std::vector<dsl::Diagnostic> diagnostics;
  dsl::Shardings cuts = dsl::resolvePlan(*m.graph, *plan.data, diagnostics);
  EXPECT_EQ(toText(diagnostics), "");
  for (const auto &[node, cut] : cuts)
    if (node->name == name)
      return cut.text;
  return "";
}

TEST(DslPlan, OneRuleForAll) {
  Plan p = pod().shard(F, "tp").shard(B, "dp");
  EXPECT_EQ(cutOf("x", p), "[{\"dp\"}, {?}]");
  EXPECT_EQ(cutOf("layer0.up", p), "[{?}, {\"tp\"}]");
  EXPECT_EQ(cutOf("layer1.hidden", p), "[{\"dp\"}, {\"tp\"}]");
  EXPECT_EQ(cutOf("layer0.norm.weight", p), "");
}

TEST(DslPlan, AxesPartsAndOptions) {
  EXPECT_EQ(cutOf("layer0.up", pod().shard(F, {"dp", "tp:(2)3"})),
            "[{?}, {\"dp\", \"tp\":(2)3}]");
  EXPECT_EQ(
      cutOf("layer0.up", pod().shard(F, "tp", {.priority = 2, .open = true})),
      "[{?}, {\"tp\", ?}p2]");
  EXPECT_EQ(cutOf("layer0.up", pod().replicate(F)), "[{?}, {}]");
  EXPECT_EQ(cutOf("layer0.up", pod().replicate({"tp", "dp"})),
            "[{?}, {?}], replicated={\"tp\", \"dp\"}");
}

TEST(DslPlan, ImportantRulesTakeAxes) {
  Plan p = pod().shard(D, "tp", {.priority = 1}).shard(F, "tp");
  EXPECT_EQ(cutOf("layer0.up", p), "[{?}, {\"tp\"}]");
  EXPECT_EQ(cutOf("x", p), "[{?}, {\"tp\"}p1]");
}

TEST(DslPlan, SpecialRulesGoFirst) {
  Plan p = pod().shard(F, "tp").shard(B, "dp");
  p.at("layer*.norm").shard(B, "tp");
  p.at("layer1").replicate(F);
  p.tensor("layer?.down").shard(D, "tp");
  EXPECT_EQ(cutOf("layer0.norm.rms_norm", p), "[{\"tp\"}, {?}]");
  EXPECT_EQ(cutOf("layer0.up", p), "[{?}, {\"tp\"}]");
  EXPECT_EQ(cutOf("layer1.up", p), "[{?}, {}]");
  // The rule for the tensor has the axis; that for all does not get it again.
  EXPECT_EQ(cutOf("layer0.down", p), "[{?}, {\"tp\"}]");
}

TEST(DslPlan, Patterns) {
  EXPECT_TRUE(dsl::matches("layer*.up", "layer12.up"));
  EXPECT_FALSE(dsl::matches("layer*", "layer1.up"));
  EXPECT_TRUE(dsl::matches("**.up", "layer1.mlp.up"));
  EXPECT_FALSE(dsl::matches("*.up", "layer1.mlp.up"));
  EXPECT_TRUE(dsl::matches("layer?.up", "layer1.up"));
  EXPECT_FALSE(dsl::matches("layer?up", "layer.up"));
  EXPECT_TRUE(dsl::covers("layer*", "layer1.mlp.up"));
  EXPECT_TRUE(dsl::covers("layer*.mlp", "layer1.mlp"));
  EXPECT_FALSE(dsl::covers("layer*.mlp", "layer1.mlp2"));
}

} // namespace

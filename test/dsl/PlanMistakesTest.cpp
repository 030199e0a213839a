//===- PlanMistakesTest.cpp - Mistakes in plans ---------------------------===//
// Lines count from the beginning of the case. The model has two layers, each
// with a norm and a perceptron: see Mistakes.cpp.
#include "test/dsl/Mistakes.h"

using namespace cleave;

namespace {

const Dim B("batch"), D("model"), F("ffn");

Plan pod() { return Plan(Mesh("pod", {{"dp", 2}, {"tp", 12}})); }

TEST(DslPlanMistakes, Meshes) {
  expectPlanMistake([] { return Plan(Mesh("", {{"tp", 2}})); },
                    "+0: error: the name of the mesh is empty\n");
  expectPlanMistake([] { return Plan(Mesh("pod", {{"tp", 0}, {"", 2}})); },
                    "+0: error: axis 'tp' has size 0; sizes are at least 1\n"
                    "+0: error: axis 1 of the mesh has no name\n");
  expectPlanMistake([] { return Plan(Mesh("pod", {{"tp", 2}, {"tp", 3}})); },
                    "+0: error: mesh 'pod' has two axes 'tp'\n");
  expectPlanMistake([] { return Plan(Mesh("pod", {{"t:p", 2}})); },
                    "+0: error: the name of axis 't:p' contains ':' or '\"'\n");
  expectPlanMistake(
      [] { return Plan(Mesh("pod", {{"a", 1 << 20}, {"b", 1 << 20}})); },
      "+1: error: mesh 'pod' has more than 2147483647 ranks\n");
  expectPlanMistake(
      [] { return Plan(Mesh("pod", {{"tp", 3}}, {0, 2, 2})); },
      "+1: error: the ranks of mesh 'pod' are not 0 to 2 in some order\n");
}

TEST(DslPlanMistakes, Axes) {
  expectPlanMistake(
      [] { return pod().shard(F, "tq"); },
      "+1: error: mesh 'pod' has no axis 'tq'; closest is 'tp'\n");
  expectPlanMistake([] { return pod().shard(F, {"tp", "tp"}); },
                    "+0: error: the rule names axis 'tp' twice\n");
  expectPlanMistake([] { return pod().shard(F, Axes({})); },
                    "+0: error: the rule names no axis; to leave a dim whole, "
                    "use replicate(dim)\n");
  expectPlanMistake([] { return pod().shard(F, "tp:2"); },
                    "+0: error: a part of an axis is written \"tp:(2)4\", the "
                    "digit of size 4 after the first 2 shards; got \"tp:2\"\n");
  expectPlanMistake([] { return pod().shard(F, "tp:(5)2"); },
                    "+0: error: \"tp:(5)2\" is no part of axis 'tp': 5 * 2 "
                    "does not divide its size 12\n");
  expectPlanMistake(
      [] { return pod().replicate("pp"); },
      "+1: error: mesh 'pod' has no axis 'pp'; closest is 'dp'\n");
  expectPlanMistake(
      [] { return pod().shard(F, "tp", {.priority = -1}); },
      "+1: error: the priority is -1; the most important one is 0\n");
}

TEST(DslPlanMistakes, Dims) {
  expectPlanMistake([] { return pod().shard(Dim("fnn"), "tp"); },
                    "+0: error: no tensor of the model has the dim 'fnn'; "
                    "closest is 'ffn'\n");
  expectPlanMistake([] { return pod().replicate(Dim("heads")); },
                    "+0: error: no tensor of the model has the dim 'heads'; "
                    "known are 'batch', 'ffn', 'model'\n");
  expectPlanMistake(
      [] { return pod().shard(F(16), "tp"); },
      "+1: error: dim 'ffn' has size 16 in the plan, and 12 in the model\n"
      "  model: note: first used by 'layer0.mlp.up' [model=8, ffn=12]\n");
}

TEST(DslPlanMistakes, Selections) {
  expectPlanMistake(
      [] {
        Plan p = pod();
        p.at("layer*.nrm").shard(B, "dp");
        return p;
      },
      "+3: error: at(\"layer*.nrm\") matches no scope\n"
      "  +3: note: closest is 'layer0.norm'\n");
  expectPlanMistake(
      [] {
        Plan p = pod();
        p.at("*.norm").shard(F, "tp");
        return p;
      },
      "+3: error: no tensor in the scopes \"*.norm\" has the dim 'ffn'; known "
      "are 'batch', 'model'\n");
  expectPlanMistake(
      [] {
        Plan p = pod();
        p.tensor("layer0.mlp.upp").shard(F, "tp");
        return p;
      },
      "+3: error: tensor(\"layer0.mlp.upp\") matches no tensor\n"
      "  +3: note: closest is 'layer0.mlp.up'\n");
  expectPlanMistake(
      [] {
        Plan p = pod();
        p.tensor("layer0.norm.normed").shard(F, "tp");
        return p;
      },
      "+3: error: tensor \"layer0.norm.normed\" does not have the dim 'ffn'; "
      "known are 'batch', 'model'\n");
}

TEST(DslPlanMistakes, Contradictions) {
  expectPlanMistake(
      [] { return pod().shard(D, "tp").shard(F, "tp"); },
      "+1: error: 'layer0.mlp.up' [model=8, ffn=12] is cut over axis 'tp' "
      "along 'ffn' and along 'model'; an axis cuts one dim of a tensor: give "
      "one rule a priority, or say for this tensor which\n"
      "  +1: note: the other rule\n"
      "  model: note: 'layer0.mlp.up' is made here\n");
  expectPlanMistake(
      [] { return pod().shard(F, "tp").shard(F, "dp"); },
      "+1: error: two rules say how 'ffn' of 'layer0.mlp.up' [model=8, ffn=12] "
      "is cut; keep one, or give one of them a priority\n"
      "  +1: note: the other rule\n");
  expectPlanMistake([] { return pod().replicate("tp").shard(F, "tp"); },
                    "+0: error: 'layer0.mlp.up' [model=8, ffn=12] is cut over "
                    "axis 'tp' here and left whole over it there\n"
                    "  +0: note: the other rule\n"
                    "  model: note: 'layer0.mlp.up' is made here\n");
  expectPlanMistake(
      [] { return pod().shard(D, "tp:(1)6").shard(F, "tp:(3)2"); },
      "+1: error: 'layer0.mlp.up' [model=8, ffn=12] is cut over axis 'tp' "
      "along 'ffn' and along 'model'; an axis cuts one dim of a tensor: give "
      "one rule a priority, or say for this tensor which\n"
      "  +1: note: the other rule\n"
      "  model: note: 'layer0.mlp.up' is made here\n");
}

TEST(DslPlanMistakes, Pipelines) {
  expectPlanMistake(
      [] { return pod().pipeline("dp", {.stages = 2, .microbatches = 8}); },
      "+1: error: the plan cuts the layers into 2 stages along 'dp'; stages "
      "are not built in this version: remove pipeline(), and shard a dim over "
      "'dp' instead\n");
  expectPlanMistake(
      [] { return pod().pipeline("pp", {.stages = 2}); },
      "+1: error: mesh 'pod' has no axis 'pp'; closest is 'dp'\n");
}

/// What looks like a contradiction, and is none: special rules and important
/// ones go first.
TEST(DslPlanMistakes, NoMistakes) {
  expectPlanMistake(
      [] { return pod().shard(D, "tp", {.priority = 1}).shard(F, "tp"); }, "");
  expectPlanMistake(
      [] {
        Plan p = pod().shard(F, "tp");
        p.tensor("layer0.mlp.up").shard(D, "tp");
        p.at("layer*.norm").shard(D, "tp").replicate(B);
        return p;
      },
      "");
  expectPlanMistake(
      [] { return pod().shard(D, "tp:(1)3").shard(F, "tp:(3)4"); }, "");
}

} // namespace

//===- reshard-cases.cpp - Expected steps and bytes -----------------------===//
#include "passes/partition/Reshard.h"
#include "test/passes/partition/ReshardSimulation.h"
#include "llvm/ADT/STLExtras.h"
#include <chrono>
#include <gtest/gtest.h>

using namespace cleave;
using namespace cleave::test;

namespace {

/// A mesh from "x=2 y=4".
Mesh parseMesh(llvm::StringRef text) {
  Mesh mesh;
  mesh.name = "mesh";
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, ' ');
  for (llvm::StringRef part : parts) {
    auto [name, size] = part.split('=');
    mesh.axes.push_back({name.str(), std::stoll(size.str())});
  }
  return mesh;
}

AxisRef parseRef(const Mesh &mesh, llvm::StringRef text) {
  auto [name, digit] = text.split(":(");
  AxisRef ref = mesh.whole(*mesh.findAxis(name));
  if (!digit.empty()) {
    auto [pre, size] = digit.split(')');
    ref.pre = std::stoll(pre.str());
    ref.size = std::stoll(size.str());
  }
  return ref;
}

AxisList parseAxes(const Mesh &mesh, llvm::StringRef text) {
  AxisList axes;
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, ',', -1, false);
  for (llvm::StringRef part : parts)
    axes.push_back(parseRef(mesh, part));
  return axes;
}

/// A sharding from "{x,y}{}", with "+sum{z}" for partial axes.
Sharding parse(const Mesh &mesh, llvm::StringRef text) {
  auto [dims, partial] = text.split('+');
  Sharding sharding;
  while (dims.consume_front("{")) {
    auto [axes, rest] = dims.split('}');
    sharding.dims.push_back({parseAxes(mesh, axes), false, std::nullopt});
    dims = rest;
  }
  if (!partial.empty()) {
    auto [kind, axes] = partial.split('{');
    sharding.kind = *parseReduction(kind);
    sharding.partial = parseAxes(mesh, axes.drop_back());
  }
  return sharding;
}

struct Case {
  const char *mesh;
  std::vector<int64_t> shape;
  const char *from, *to;
  /// Bytes of the plan that is the convention, of f32.
  int64_t bytes;
  const char *steps;
};

void check(const Case &c, const Machine &machine = cpuLocalMachine()) {
  SCOPED_TRACE(std::string(c.from) + " -> " + c.to);
  Mesh mesh = parseMesh(c.mesh);
  Resharder resharder(mesh, machine);
  Sharding from = parse(mesh, c.from), to = parse(mesh, c.to);
  const ReshardPlan &plan = resharder.plan(c.shape, 4, from, to);
  EXPECT_LE(plan.wireBytes, c.bytes);
  EXPECT_EQ(c.steps, toString(mesh, plan));
  // Small enough to run.
  if (c.bytes < 100000)
    EXPECT_EQ("", runReshard(resharder, c.shape, from, to));
}

// The convention of the field, step by step, or fewer bytes.
TEST(ReshardCases, Convention) {
  const Case cases[] = {
      {"x=2 y=2 z=2",
       {16, 8},
       "{x,y,z}{}",
       "{x}{}",
       192,
       "all_gather dim 0 over {\"y\", \"z\"}, 2x8 -> 8x8, 192 B\n"},
      {"x=2 y=2 z=2",
       {16, 8},
       "{}{}",
       "{x}{y,z}",
       0,
       "slice dim 1 over {\"y\", \"z\"}, 16x8 -> 16x2, 0 B\n"
       "slice dim 0 over {\"x\"}, 16x2 -> 8x2, 0 B\n"},
      {"x=2 y=2",
       {16, 8},
       "{y}{x}",
       "{y}{}",
       128,
       "all_gather dim 1 over {\"x\"}, 8x4 -> 8x8, 128 B\n"},
      {"y=8",
       {16, 8},
       "{y}{}",
       "{y:(1)4}{}",
       64,
       "all_gather dim 0 over {\"y\":(4)2}, 2x8 -> 4x8, 64 B\n"},
      {"x=2 y=2",
       {16, 8, 4},
       "{x}{y}{}",
       "{}{y}{x}",
       512,
       "all_to_all dim 0 -> 2 over {\"x\"}, 8x4x4 -> 16x4x2, 256 B\n"},
      {"x=2 y=2",
       {16, 8, 4},
       "{y}{x}{}",
       "{}{}{x,y}",
       512,
       "all_to_all dim 1 -> 2 over {\"x\"}, 8x4x4 -> 8x8x2, 256 B\n"
       "all_to_all dim 0 -> 2 over {\"y\"}, 8x8x2 -> 16x8x1, 256 B\n"},
      {"x=2 y=2 z=2",
       {16, 8, 8},
       "{y}{x,z}{}",
       "{}{}{x,y,z}",
       1184,
       "all_to_all dim 1 -> 0 over {\"z\"}, 8x2x8 -> 4x4x8, 256 B\n"
       "all_to_all dim 1 -> 2 over {\"x\"}, 4x4x8 -> 4x8x4, 256 B\n"
       "all_to_all dim 0 -> 2 over {\"y\", \"z\"}, 4x8x4 -> 16x8x1, 384 B\n"},
      {"x=2 y=2 z=2",
       {16, 8, 8},
       "{}{x}{}",
       "{}{}{x,y,z}",
       448,
       "slice dim 1 over {\"y\", \"z\"}, 16x4x8 -> 16x1x8, 0 B\n"
       "all_to_all dim 1 -> 2 over {\"x\", \"y\", \"z\"}, 16x1x8 -> 16x8x1, "
       "448 B\n"},
      {"x=4 y=2",
       {4, 10},
       "{}{x}",
       "{x,y}{}",
       60,
       "all_to_all dim 1 -> 0 over {\"x\":(2)2}, 4x3 -> 2x6, 24 B\n"
       "slice dim 0 over {\"y\"}, 2x6 -> 1x6, 0 B\n"
       "all_gather dim 1 over {\"x\":(1)2}, 1x6 -> 1x12, 24 B\n"
       "trim dim 1, 1x12 -> 1x10, 0 B\n"},
  };
  for (const Case &c : cases)
    check(c);
}

// Reductions and the bytes of the parallel layers that live on them.
TEST(ReshardCases, Reductions) {
  const Case cases[] = {
      {"x=2 y=2",
       {8, 16},
       "{}{}+sum{x}",
       "{}{}",
       512,
       "all_reduce sum over {\"x\"}, 8x16 -> 8x16, 512 B\n"},
      {"x=2 y=2",
       {8, 16},
       "{}{}+sum{x}",
       "{x}{}",
       256,
       "reduce_scatter dim 0 sum over {\"x\"}, 8x16 -> 4x16, 256 B\n"},
      {"x=2 y=2",
       {8, 16},
       "{x}{}+max{y}",
       "{x,y}{}",
       128,
       "reduce_scatter dim 0 max over {\"y\"}, 4x16 -> 2x16, 128 B\n"},
      {"x=2 y=2", {8, 16}, "{x}{}+sum{y}", "{x}{}+sum{y}", 0, ""},
      {"x=2 y=2",
       {8, 16},
       "{}{}+sum{x,y}",
       "{}{}+sum{y}",
       512,
       "all_reduce sum over {\"x\"}, 8x16 -> 8x16, 512 B\n"},
      {"x=2 y=2",
       {8, 16},
       "{}{}",
       "{}{}+sum{x}",
       0,
       "make_partial sum over {\"x\"}, 8x16 -> 8x16, 0 B\n"},
      {"x=2 y=2",
       {8, 16},
       "{}{}+sum{x}",
       "{}{}+max{y}",
       512,
       "all_reduce sum over {\"x\"}, 8x16 -> 8x16, 512 B\n"
       "make_partial max over {\"y\"}, 8x16 -> 8x16, 0 B\n"},
      {"x=2 y=2",
       {8, 16},
       "{}{}+sum{x}",
       "{}{}+sum{y}",
       512,
       "permute {\"x\", \"y\"} -> {\"y\", \"x\"}, 8x16 -> 8x16, 512 B\n"},
      {"x=4",
       {10, 3},
       "{}{}+sum{x}",
       "{x}{}",
       108,
       "pad dim 0, 10x3 -> 12x3, 0 B\n"
       "reduce_scatter dim 0 sum over {\"x\"}, 12x3 -> 3x3, 108 B\n"},
  };
  for (const Case &c : cases)
    check(c);
}

// d=10 over a=2, b=3: {a,b} has blocks of 2, {a} of 5, {b} of 4.
TEST(ReshardCases, UnevenBlocks) {
  const Case cases[] = {
      {"a=2 b=3",
       {10},
       "{a,b}",
       "{}",
       40,
       "all_gather dim 0 over {\"a\", \"b\"}, 2 -> 12, 40 B\n"
       "trim dim 0, 12 -> 10, 0 B\n"},
      {"a=2 b=3",
       {10},
       "{}",
       "{a,b}",
       0,
       "pad dim 0, 10 -> 12, 0 B\n"
       "slice dim 0 over {\"a\", \"b\"}, 12 -> 2, 0 B\n"},
      {"a=2 b=3",
       {10},
       "{a}",
       "{a,b}",
       16,
       "realign dim 0 {\"a\"} -> {\"a\", \"b\"}, 5 -> 2, 4 B\n"},
      {"a=2 b=3",
       {10},
       "{a,b}",
       "{a}",
       32,
       "realign dim 0 {\"a\", \"b\"} -> {\"a\"}, 2 -> 5, 20 B\n"},
      {"a=2 b=3",
       {10},
       "{a}",
       "{b}",
       16,
       "realign dim 0 {\"a\"} -> {\"b\"}, 5 -> 4, 16 B\n"},
      {"a=2 b=3",
       {10},
       "{a,b}",
       "{b,a}",
       8,
       "realign dim 0 {\"a\", \"b\"} -> {\"b\", \"a\"}, 2 -> 2, 8 B\n"},
      {"a=2 b=3",
       {1},
       "{a,b}",
       "{a}",
       8,
       "all_gather dim 0 over {\"b\"}, 1 -> 3, 8 B\n"
       "trim dim 0, 3 -> 1, 0 B\n"},
      {"a=2 b=3",
       {0, 7},
       "{}{a,b}",
       "{b}{}",
       0,
       "pad dim 1, 0x2 -> 0x7, 0 B\n"},
  };
  for (const Case &c : cases)
    check(c);
}

TEST(ReshardCases, SubAxes) {
  const Case cases[] = {
      {"a=4",
       {8},
       "{a}",
       "{a:(1)2}",
       16,
       "all_gather dim 0 over {\"a\":(2)2}, 2 -> 4, 8 B\n"},
      {"a=4",
       {8},
       "{a:(1)2}",
       "{a:(2)2}",
       16,
       "permute {\"a\"} -> {\"a\":(2)2, \"a\":(1)2}, 4 -> 4, 16 B\n"},
      {"a=4",
       {8},
       "{a:(2)2,a:(1)2}",
       "{a}",
       8,
       "permute {\"a\":(2)2, \"a\":(1)2} -> {\"a\"}, 2 -> 2, 8 B\n"},
      {"a=6",
       {12},
       "{a:(1)2}",
       "{a:(1)3}",
       48,
       "realign dim 0 {\"a\":(1)2} -> {\"a\":(1)3}, 6 -> 4, 8 B\n"},
      {"a=6",
       {12, 6},
       "{a:(1)2}{}",
       "{}{a:(1)3}",
       192,
       "slice dim 0 over {\"a\":(2)3}, 6x6 -> 2x6, 0 B\n"
       "all_to_all dim 0 -> 1 over {\"a\"}, 2x6 -> 12x1, 40 B\n"
       "all_gather dim 1 over {\"a\":(3)2}, 12x1 -> 12x2, 48 B\n"},
  };
  for (const Case &c : cases)
    check(c);
}

// Over two tiers, slow traffic is cut by work on the fast one.
TEST(ReshardCases, TwoNodes) {
  llvm::Expected<Machine> machine = findMachine("2x8xH100");
  ASSERT_TRUE(bool(machine));
  const Case cases[] = {
      {"dp=2 tp=8",
       {8192, 8192},
       "{}{}+sum{tp}",
       "{}{}",
       469762048,
       "all_reduce sum over {\"tp\"}, 8192x8192 -> 8192x8192, 469762048 B\n"},
      {"dp=2 tp=8",
       {8192, 8192},
       "{}{}+sum{dp}",
       "{}{}",
       600000000,
       "slice dim 0 over {\"tp\"}, 8192x8192 -> 1024x8192, 0 B\n"
       "all_reduce sum over {\"dp\"}, 1024x8192 -> 1024x8192, 33554432 B\n"
       "all_gather dim 0 over {\"tp\"}, 1024x8192 -> 8192x8192, 234881024 B\n"},
      {"dp=2 tp=8",
       {8, 8},
       "{}{}+sum{dp,tp}",
       "{}{}",
       480,
       "all_reduce sum over {\"dp\", \"tp\"}, 8x8 -> 8x8, 480 B\n"},
  };
  for (const Case &c : cases)
    check(c, *machine);
}

// Large meshes and many small axes end soon, by the limit of the search.
TEST(ReshardCases, LargeMeshesEndSoon) {
  Mesh mesh;
  mesh.name = "mesh";
  for (char name = 'a'; name < 'a' + 12; ++name)
    mesh.axes.push_back({std::string(1, name), 2});
  Sharding from = parse(mesh, "{a,b,c,d}{e,f,g,h}{i,j}");
  Sharding to = parse(mesh, "{h,j,a}{k,l,c,i}{b,d,e}+sum{g}");
  Resharder resharder(mesh, cpuLocalMachine());
  auto begin = std::chrono::steady_clock::now();
  const ReshardPlan &plan = resharder.plan({4096, 4096, 64}, 4, from, to);
  std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(time.count(), 5.0);
  // Better than to gather the tensor.
  EXPECT_LT(plan.wireBytes, int64_t(4096) * 4096 * 64 * 4 / 2);

  Mesh wide = parseMesh("a=64 b=64");
  Resharder other(wide, cpuLocalMachine());
  begin = std::chrono::steady_clock::now();
  other.plan({4099, 8192}, 2, parse(wide, "{a}{b}"), parse(wide, "{b}{a}"));
  other.plan({4099, 8192}, 2, parse(wide, "{a,b}{}"), parse(wide, "{b,a}{}"));
  time = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(time.count(), 5.0);
}

} // namespace

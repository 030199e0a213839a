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
  EXPECT_EQ("", runReshard(resharder, c.shape, from, to));
}

// The convention of the field, step by step, or fewer bytes.
TEST(ReshardCases, Convention) {
  const Case cases[] = {
      {"x=2 y=2 z=2", {16, 8}, "{x,y,z}{}", "{x}{}", 192, ""},
      {"x=2 y=2 z=2", {16, 8}, "{}{}", "{x}{y,z}", 0, ""},
      {"x=2 y=2", {16, 8}, "{y}{x}", "{y}{}", 128, ""},
      {"y=8", {16, 8}, "{y}{}", "{y:(1)4}{}", 64, ""},
      {"x=2 y=2", {16, 8, 4}, "{x}{y}{}", "{}{y}{x}", 512, ""},
      {"x=2 y=2", {16, 8, 4}, "{y}{x}{}", "{}{}{x,y}", 512, ""},
      {"x=2 y=2 z=2", {16, 8, 8}, "{y}{x,z}{}", "{}{}{x,y,z}", 1184, ""},
      {"x=2 y=2 z=2", {16, 8, 8}, "{}{x}{}", "{}{}{x,y,z}", 448, ""},
      {"x=4 y=2", {4, 10}, "{}{x}", "{x,y}{}", 60, ""},
  };
  for (const Case &c : cases)
    check(c);
}

// Reductions and the bytes of the parallel layers that live on them.
TEST(ReshardCases, Reductions) {
  const Case cases[] = {
      {"x=2 y=2", {8, 16}, "{}{}+sum{x}", "{}{}", 512, ""},
      {"x=2 y=2", {8, 16}, "{}{}+sum{x}", "{x}{}", 256, ""},
      {"x=2 y=2", {8, 16}, "{x}{}+max{y}", "{x,y}{}", 128, ""},
      {"x=2 y=2", {8, 16}, "{x}{}+sum{y}", "{x}{}+sum{y}", 0, ""},
      {"x=2 y=2", {8, 16}, "{}{}+sum{x,y}", "{}{}+sum{y}", 512, ""},
      {"x=2 y=2", {8, 16}, "{}{}", "{}{}+sum{x}", 0, ""},
      {"x=2 y=2", {8, 16}, "{}{}+sum{x}", "{}{}+max{y}", 512, ""},
      {"x=2 y=2", {8, 16}, "{}{}+sum{x}", "{}{}+sum{y}", 512, ""},
      {"x=4", {10, 3}, "{}{}+sum{x}", "{x}{}", 108, ""},
  };
  for (const Case &c : cases)
    check(c);
}

// d=10 over a=2, b=3: {a,b} has blocks of 2, {a} of 5, {b} of 4.
TEST(ReshardCases, UnevenBlocks) {
  const Case cases[] = {
      {"a=2 b=3", {10}, "{a,b}", "{}", 40, ""},
      {"a=2 b=3", {10}, "{}", "{a,b}", 0, ""},
      {"a=2 b=3", {10}, "{a}", "{a,b}", 16, ""},
      {"a=2 b=3", {10}, "{a,b}", "{a}", 32, ""},
      {"a=2 b=3", {10}, "{a}", "{b}", 16, ""},
      {"a=2 b=3", {10}, "{a,b}", "{b,a}", 8, ""},
      {"a=2 b=3", {1}, "{a,b}", "{a}", 8, ""},
      {"a=2 b=3", {0, 7}, "{}{a,b}", "{b}{}", 0, ""},
  };
  for (const Case &c : cases)
    check(c);
}

TEST(ReshardCases, SubAxes) {
  const Case cases[] = {
      {"a=4", {8}, "{a}", "{a:(1)2}", 16, ""},
      {"a=4", {8}, "{a:(1)2}", "{a:(2)2}", 16, ""},
      {"a=4", {8}, "{a:(2)2,a:(1)2}", "{a}", 8, ""},
      {"a=6", {12}, "{a:(1)2}", "{a:(1)3}", 48, ""},
      {"a=6", {12, 6}, "{a:(1)2}{}", "{}{a:(1)3}", 192, ""},
  };
  for (const Case &c : cases)
    check(c);
}

// Over two tiers, slow traffic is cut by work on the fast one.
TEST(ReshardCases, TwoNodes) {
  llvm::Expected<Machine> machine = findMachine("2x8xH100");
  ASSERT_TRUE(bool(machine));
  const Case cases[] = {
      {"dp=2 tp=8", {8192, 8192}, "{}{}+sum{tp}", "{}{}", 469762048, ""},
      {"dp=2 tp=8", {8192, 8192}, "{}{}+sum{dp}", "{}{}", 600000000, ""},
      {"dp=2 tp=8", {8, 8}, "{}{}+sum{dp,tp}", "{}{}", 480, ""},
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

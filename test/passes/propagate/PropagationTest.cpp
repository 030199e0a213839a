//===- PropagationTest.cpp - Each rule of propagation ---------------------===//
#include "TestProgram.h"
#include <gtest/gtest.h>

using namespace cleave;
using namespace cleave::test;

TEST(Propagation, ReplicatedAxesStayOut) {
  Program p("a2,b2");
  unsigned x = p.value({8, 8}, "{a}{b}");
  unsigned y = p.value({8, 8}, "{?}{?} replicated={a}");
  p.add(x, y);
  p.run();
  EXPECT_EQ(p[y], "{}{b}");
}

TEST(Propagation, PartialAxesStayOutOfDims) {
  Program p("a2,b2");
  unsigned x = p.value({8, 8}, "{a}{b}");
  unsigned y = p.value({8, 8}, "{?}{?} partial=max{b}");
  p.add(x, y);
  p.run();
  EXPECT_EQ(p[y], "{a}{} partial=max{b}");
}

TEST(Propagation, NothingSpreadsAlongNeedReplicationOrBlocked) {
  for (bool blocked : {false, true}) {
    Program p("a2,b2");
    unsigned x = p.value({8, 8}, "{a}{b}");
    unsigned y = p.op("ij->ij", {x}, {8, 8});
    Factor &factor = p.problem.ops[0].rule.factors[1];
    if (blocked)
      factor.blocked = true;
    else
      factor.kind = FactorKind::NeedReplication;
    p.run();
    EXPECT_EQ(p[y], "{a}{}");
  }
}

TEST(Propagation, PermutationSpreads) {
  Program p("a2");
  unsigned x = p.value({8, 8}, "{}{a}");
  unsigned y = p.op("ij->ij", {x}, {8, 8});
  p.problem.ops[0].rule.factors[1].kind = FactorKind::Permutation;
  p.run();
  EXPECT_EQ(p[y], "{}{a}");
}

TEST(Propagation, DiagonalDoesNotSpread) {
  Program p("a2");
  unsigned x = p.value({8, 8}, "{a}{?}");
  unsigned y = p.op("ii->i", {x}, {8});
  p.run();
  EXPECT_EQ(p[x], "{a}{}");
  EXPECT_EQ(p[y], "{}");
}

TEST(Propagation, UserPriorityComesFirst) {
  auto run = [](llvm::StringRef first, llvm::StringRef second) {
    Program p("a2");
    unsigned x = p.value({8, 8}, first), y = p.value({8, 8}, second);
    unsigned sum = p.add(x, y);
    p.run();
    return p[sum];
  };
  EXPECT_EQ(run("{a}{?}", "{?}{a}"), "{a}{}");
  EXPECT_EQ(run("{a}p1{?}", "{?}{a}"), "{}{a}");
  EXPECT_EQ(run("{a}p1{?}", "{?}{a}p2"), "{a}{}");
}

// An axis of a later dim is reserved in its tensor from the start.
TEST(Propagation, LaterDimsKeepTheirAxes) {
  Program p("a2");
  unsigned x = p.value({8, 8}, "{a}{?}"), y = p.value({8, 8}, "{?}{a}p1");
  p.add(x, y);
  p.run();
  EXPECT_EQ(p[y], "{}{a}");
}

TEST(Propagation, OpenDimOfLaterPriorityOpensLater) {
  Program p("a2,b2");
  unsigned x = p.value({8, 8}, "{?}p1{?}"), y = p.value({8, 8}, "{a}{b}");
  p.add(x, y);
  const PropagationResult &result = p.run();
  EXPECT_EQ(p[x], "{a}{b}");
  for (const Decision &decision : result.decisions)
    if (decision.value == x)
      EXPECT_EQ(decision.priority, decision.dim == 0 ? 1u : 0u);
}

TEST(Propagation, SubAxisOfAnAxisPartlyUsed) {
  Program p("a4,b2");
  unsigned x = p.value({8, 8}, "{a}{}"), y = p.value({8, 8}, "{?}{a:(2)2}");
  p.add(x, y);
  p.run();
  EXPECT_EQ(p[y], "{a:(1)2}{a:(2)2}");
}

TEST(Propagation, GroupSharesOneSharding) {
  Program p("a2,b2");
  unsigned x = p.value({8, 8}, "{a,?}{?}"), y = p.value({8, 8}, "{?}{b,?}");
  unsigned z = p.value({8, 8});
  p.problem.groups.push_back({x, y, z});
  p.run();
  EXPECT_EQ(p[x], "{a}{b}");
  EXPECT_EQ(p[y], "{a}{b}");
  EXPECT_EQ(p[z], "{a}{b}");
}

TEST(Propagation, GroupPassesOnWhatOneMemberGets) {
  Program p("a2");
  unsigned x = p.value({8, 8}, "{a}{}"), y = p.value({8, 8});
  p.add(x, y);
  unsigned z = p.value({8, 8});
  p.problem.groups.push_back({y, z});
  unsigned w = p.identity(z, Direction::Both);
  p.run();
  EXPECT_EQ(p[w], "{a}{}");
  bool found = false;
  for (const Decision &decision : p.result.decisions)
    found |= decision.value == z && !decision.op && decision.source == y;
  EXPECT_TRUE(found);
}

TEST(Propagation, ContradictingGroups) {
  Program p("a2,b2");
  unsigned x = p.value({8, 8}, "{a}{}", "x");
  unsigned y = p.value({8, 8}, "{b}{}", "y");
  unsigned z = p.value({8, 4}, "", "z");
  p.problem.groups.push_back({x, y});
  p.problem.groups.push_back({x, z});
  const PropagationResult &result = p.run();
  ASSERT_EQ(result.errors.size(), 2u);
  EXPECT_EQ(result.errors[0].message,
            "'x' [8, 8] and 'z' [8, 4] are in one group, whose members must "
            "have one shape and one mesh");
  EXPECT_EQ(result.errors[1].message,
            "'x' and 'y' are in one group, but their shardings [{\"a\"}, {}] "
            "and [{\"b\"}, {}] contradict each other; give both the same, or "
            "open a dim");
}

TEST(Propagation, BroadcastOperandWaitsForTheOthers) {
  // The bias says {a} for j, the activation {a} for i: the activation wins.
  Program p("a2");
  unsigned x = p.value({8, 8}, "{a}{?}"), bias = p.value({8}, "{a}");
  unsigned sum = p.op("ij,j->ij", {x, bias}, {8, 8});
  p.run();
  EXPECT_EQ(p[sum], "{a}{}");
  // Alone it is heard, in the last phase.
  Program q("a2");
  x = q.value({8, 8});
  bias = q.value({8}, "{a}");
  sum = q.op("ij,j->ij", {x, bias}, {8, 8});
  q.run();
  EXPECT_EQ(q[sum], "{}{a}");
  EXPECT_EQ(q[x], "{}{a}");
  EXPECT_EQ(q.result.decisions[0].phase, Phase::Broadcast);
}

TEST(Propagation, ClosedResultStopsSidewaysSpread) {
  Program p("a2");
  unsigned x = p.value({8, 8}, "{a}{}"), y = p.value({8, 8});
  p.add(x, y, "{}{}");
  p.run();
  EXPECT_EQ(p[y], "{}{}");
}

TEST(Propagation, CheapValueFollowsOneUserOnly) {
  Program p("a2,b2");
  unsigned zero = p.op("->ij", {}, {8, 8});
  p.problem.ops[0].cheap = true;
  unsigned x = p.value({8, 8}, "{a}{}"), y = p.value({8, 8});
  unsigned first = p.add(x, zero), second = p.add(y, zero);
  p.run();
  EXPECT_EQ(p[first], "{a}{}");
  EXPECT_EQ(p[zero], "{a}{}");
  EXPECT_EQ(p[second], "{}{}");
}

TEST(Propagation, DecisionsFormAChain) {
  Program p("a2");
  unsigned x = p.value({8, 8}, "{a}{}");
  unsigned last = x;
  for (int i = 0; i < 5; ++i)
    last = p.identity(last, Direction::Both);
  const PropagationResult &result = p.run();
  EXPECT_EQ(p[last], "{a}{}");
  AxisRef a = p.problem.mesh.whole(0);
  DecisionIndex index(result);
  auto steps = index.chain(last, 0, a);
  ASSERT_EQ(steps.size(), 5u);
  EXPECT_EQ(steps.front()->value, last);
  EXPECT_EQ(steps.front()->op, 4u);
  EXPECT_EQ(steps.back()->source, x);
  EXPECT_TRUE(index.chain(x, 0, a).empty());
}

TEST(Propagation, AxisOfSizeOneChangesNothing) {
  Program p("a1,b2");
  unsigned x = p.value({8, 8}, "{a,b}{}"), y = p.value({8, 8}, "{b,?}{a}");
  unsigned sum = p.add(x, y);
  p.run();
  EXPECT_EQ(p[x], "{a,b}{}");
  EXPECT_EQ(p[y], "{b}{a}");
  EXPECT_EQ(p[sum], "{b}{}");
}

// 20 operands that all disagree are decided at once, not by trying all sets.
TEST(Propagation, ManyConflicts) {
  std::string mesh;
  for (char c = 'a'; c < 'a' + 20; ++c)
    mesh += std::string(c == 'a' ? "" : ",") + c + "2";
  Program p(mesh);
  llvm::SmallVector<unsigned> operands;
  std::string rule;
  for (char c = 'a'; c < 'a' + 20; ++c) {
    operands.push_back(
        p.value({64, 64}, c % 2 ? "{" + std::string(1, c) + "}{}"
                                : "{}{" + std::string(1, c) + "}"));
    rule += std::string(c == 'a' ? "" : ",") + "ij";
  }
  unsigned sum = p.op(rule + "->ij", operands, {64, 64});
  double start = cpuSeconds();
  p.run();
  double seconds = cpuSeconds() - start;
  EXPECT_NE(p[sum], "{}{}");
  EXPECT_LT(seconds, 1.5);
}

// A loop: init and yield are tied to the iter-arg and the result.
TEST(Propagation, LoopCarriesBothWays) {
  Program p("a2,b2");
  unsigned init = p.value({8, 8}), arg = p.value({8, 8});
  unsigned w = p.value({8, 8}, "{?}{b}");
  unsigned yield = p.dot(arg, w);
  unsigned result = p.value({8, 8}, "{a,?}{?}");
  PropagationOp loop;
  loop.rule = identityRule({8, 8}, 2, 2);
  loop.operands = {init, yield};
  loop.results = {arg, result};
  p.problem.ops.push_back(loop);
  p.run();
  for (unsigned v : {init, arg, yield, result})
    EXPECT_EQ(p[v], "{a}{b}");
}

TEST(Propagation, OpsWithoutRuleCarryNothing) {
  for (bool empty : {false, true}) {
    Program p("a2");
    unsigned x = p.value({8, 8}, "{a}{}");
    unsigned y = p.op("ij->ij", {x}, {8, 8});
    ShardingRule &rule = p.problem.ops[0].rule;
    rule = {};
    TensorFactors bare;
    bare.dims.resize(2);
    if (!empty) {
      rule.operands.push_back(bare);
      rule.results.push_back(bare);
    }
    p.run();
    EXPECT_EQ(p[y], "{}{}");
  }
}

static double layersSeconds(unsigned layers, llvm::StringRef mesh) {
  Program p(mesh);
  unsigned x = p.value({64, 512}, "{dp}{}");
  for (unsigned i = 0; i < layers; ++i) {
    unsigned up = p.value({512, 2048}, "{}{tp}");
    unsigned down = p.value({2048, 512});
    unsigned hidden = p.dot(x, up);
    hidden = p.op("ij->ij", {hidden}, {64, 2048});
    hidden = p.add(hidden, hidden);
    x = p.add(x, p.dot(hidden, down));
  }
  double start = cpuSeconds();
  p.run();
  double seconds = cpuSeconds() - start;
  EXPECT_EQ(p[x], "{dp}{}");
  EXPECT_EQ(p[2], "{tp}{}");
  return seconds;
}

TEST(Propagation, LargeProgramsAreLinear) {
  double small = layersSeconds(200, "dp2,tp4");
  double large = layersSeconds(2000, "dp2,tp4");
  double wide = layersSeconds(2000, "dp64,tp1024");
  RecordProperty("ops10000_ms", std::to_string(large * 1e3));
  std::printf("1000 ops %.2f ms, 10000 ops %.2f ms, on 65536 ranks %.2f ms\n",
              small * 1e3, large * 1e3, wide * 1e3);
  EXPECT_LT(large, 1.5);
  EXPECT_LT(wide, 1.5);
}

// The only annotation is at the far end, one weight has all uses, one op has
// all operands, all values are one group.
TEST(Propagation, AwkwardProgramsAreLinearToo) {
  constexpr unsigned n = 10000;
  auto seconds = [](Program &p, unsigned last) {
    double start = cpuSeconds();
    p.run();
    EXPECT_EQ(p[last], "{a}{}");
    return cpuSeconds() - start;
  };
  Program chain("a2,b2"), fan("a2,b2"), wide("a2,b2"), group("a2,b2");
  unsigned first = chain.value({8, 8}), x = first;
  for (unsigned i = 0; i < n; ++i)
    x = chain.add(x, x);
  chain.identity(x, Direction::Both, "{a}{}");
  EXPECT_LT(seconds(chain, first), 1.5);

  unsigned shared = fan.value({8, 8}), y = 0;
  for (unsigned i = 0; i < n; ++i)
    y = fan.add(shared, fan.value({8, 8}));
  fan.identity(y, Direction::Both, "{a}{}");
  EXPECT_LT(seconds(fan, 1), 1.5);

  PropagationOp op;
  op.rule = identityRule({8, 8}, n);
  for (unsigned i = 0; i < n; ++i)
    op.operands.push_back(wide.value({8, 8}, i + 1 == n ? "{a}{}" : ""));
  op.results.push_back(wide.value({8, 8}));
  wide.problem.ops.push_back(op);
  EXPECT_LT(seconds(wide, 0), 1.5);

  group.problem.groups.emplace_back();
  for (unsigned i = 0; i < n; ++i)
    group.problem.groups[0].push_back(
        group.value({8, 8}, i + 1 == n ? "{a,?}{?}" : ""));
  EXPECT_LT(seconds(group, 0), 1.5);
}

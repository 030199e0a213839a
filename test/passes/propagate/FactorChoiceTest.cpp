//===- FactorChoiceTest.cpp - At which factor axes an op is computed ------===//
#include "TestProgram.h"
#include "passes/propagate/AxisLists.h"
#include "llvm/ADT/STLExtras.h"
#include <gtest/gtest.h>
#include <random>

using namespace cleave;
using namespace cleave::test;

namespace {

/// One op with the shardings around it; `x4,y2` unless another mesh is given.
struct Choice {
  Mesh mesh;
  ShardingRule rule;
  std::vector<PlacedTensor> tensors;
  FactorChoice choice;

  Choice(llvm::StringRef ruleText, llvm::ArrayRef<Shape> shapes,
         llvm::ArrayRef<llvm::StringRef> shardings,
         llvm::StringRef meshText = "x4,y2")
      : mesh(parseMesh(meshText)), rule(parseRule(ruleText, shapes)) {
    for (auto [shape, text] : llvm::zip_equal(shapes, shardings))
      tensors.push_back({parseSharding(mesh, shape.size(), text), shape, 1});
  }
  /// Where the op runs: "{x}{y} {y}{} -> {x}{}".
  std::string run() {
    choice = chooseFactorAxes(rule, tensors, mesh);
    std::string text;
    for (const Sharding &operand : choice.operands)
      text += print(mesh, operand) + " ";
    text += "->";
    for (const Sharding &result : choice.results)
      text += " " + print(mesh, result);
    return text;
  }
};

} // namespace

static std::string dot(llvm::StringRef lhs, llvm::StringRef rhs,
                       llvm::StringRef result, Shape a = {8, 32},
                       Shape b = {32, 16}) {
  Shape c{a[0], b[1]};
  return Choice("ik,kj->ij", {a, b, c}, {lhs, rhs, result}).run();
}

//===----------------------------------------------------------------------===//
// What users of the field expect
//===----------------------------------------------------------------------===//

TEST(FactorChoice, ContractionOverAnAxis) {
  std::string expected = "{x}{y} {y}{} -> {x}{} partial=sum{y}";
  EXPECT_EQ(dot("{x}{y}", "{y}{}", "{x}{}"), expected);
  // All-reduce and slice, which is a reduce-scatter: half the bytes.
  EXPECT_EQ(dot("{x}{y}", "{y}{}", "{x}{y}"), expected);
  EXPECT_EQ(dot("{x}{y}", "{y}{}", "{x,y}{}"), expected);
  EXPECT_EQ(dot("{x}{y}", "{y}{}", "{y,x}{}"), expected);
}

TEST(FactorChoice, ReduceScatterCostsHalf) {
  Choice whole("ik,kj->ij", {{8, 32}, {32, 16}, {8, 16}},
               {"{x}{y}", "{y}{}", "{x}{}"});
  Choice cut("ik,kj->ij", {{8, 32}, {32, 16}, {8, 16}},
             {"{x}{y}", "{y}{}", "{x,y}{}"});
  whole.run();
  cut.run();
  EXPECT_EQ(whole.choice.bytes, 32);
  EXPECT_EQ(cut.choice.bytes, 16);
}

TEST(FactorChoice, SquareProductGathersBoth) {
  EXPECT_EQ(dot("{x}{y}", "{x}{y}", "{x}{y}", {16, 16}, {16, 16}),
            "{x}{} {}{y} -> {x}{y}");
}

TEST(FactorChoice, CrossedResultMovesTheResult) {
  EXPECT_EQ(dot("{x}{}", "{}{y}", "{y}{x}"), "{x}{} {}{y} -> {x}{y}");
}

TEST(FactorChoice, CrossedResultOfASmallContractionMovesTheOperands) {
  EXPECT_EQ(dot("{x}{}", "{}{y}", "{y}{x}", {128, 4}, {4, 256}),
            "{y}{} {}{x} -> {y}{x}");
}

TEST(FactorChoice, ReduceLeavesPartial) {
  Choice sum("abc->ac", {{2, 64, 13}, {2, 13}}, {"{}{x}{}", "{}{}"});
  EXPECT_EQ(sum.run(), "{}{x}{} -> {}{} partial=sum{x}");
  Choice max("abc->ac", {{2, 64, 13}, {2, 13}}, {"{}{x}{}", "{}{}"});
  for (Factor &factor : max.rule.factors)
    factor.reduction = ReductionKind::Max;
  EXPECT_EQ(max.run(), "{}{x}{} -> {}{} partial=max{x}");
}

TEST(FactorChoice, ReduceTwoDimsWithSubAxes) {
  Choice both("abc->c", {{2, 64, 13}, {13}}, {"{x:(2)2}{y,x:(1)2}{}", "{}"});
  EXPECT_EQ(both.run(), "{x:(2)2}{y,x:(1)2}{} -> {} partial=sum{x,y}");
}

TEST(FactorChoice, ReduceOfTwoInputsCutsTheWholeOne) {
  Choice two("abc,abc->ac,ac", {{2, 64, 13}, {2, 64, 13}, {2, 13}, {2, 13}},
             {"{}{x}{}", "{}{}{}", "{}{}", "{}{}"});
  EXPECT_EQ(two.run(), "{}{x}{} {}{x}{} -> {}{} partial=sum{x} {}{} "
                       "partial=sum{x}");
}

//===----------------------------------------------------------------------===//
// More
//===----------------------------------------------------------------------===//

TEST(FactorChoice, AgreementCostsNothing) {
  Choice dot("ik,kj->ij", {{8, 32}, {32, 16}, {8, 16}},
             {"{x}{}", "{}{y}", "{x}{y}"});
  EXPECT_EQ(dot.run(), "{x}{} {}{y} -> {x}{y}");
  EXPECT_EQ(dot.choice.bytes, 0);
}

// Slicing the operands is free, and the op is cut by 8.
TEST(FactorChoice, WholeOperandsAreCutForTheResult) {
  EXPECT_EQ(dot("{}{}", "{}{}", "{x}{y}"), "{x}{} {}{y} -> {x}{y}");
}

// The sorted dim must be whole; its axis moves to the batch, and back.
TEST(FactorChoice, NeedReplicationMovesToTheBatch) {
  Choice sort("ij->ij", {{16, 64}, {16, 64}}, {"{}{x}", "{}{x}"});
  sort.rule.factors[1].kind = FactorKind::NeedReplication;
  EXPECT_EQ(sort.run(), "{x}{} -> {x}{}");
  // Beside an axis that is there already.
  Choice more("ij->ij", {{16, 64}, {16, 64}}, {"{y}{x}", "{y}{x}"});
  more.rule.factors[1].kind = FactorKind::NeedReplication;
  EXPECT_EQ(more.run(), "{y,x}{} -> {y,x}{}");
  // A batch of one has no room.
  Choice none("ij->ij", {{1, 64}, {1, 64}}, {"{}{x}", "{}{x}"});
  none.rule.factors[1].kind = FactorKind::NeedReplication;
  EXPECT_EQ(none.run(), "{}{} -> {}{}");
}

TEST(FactorChoice, PermutationKeepsItsAxes) {
  Choice pad("ij->ij", {{16, 64}, {16, 66}}, {"{}{x}", "{}{x}"});
  pad.rule.factors[1].kind = FactorKind::Permutation;
  EXPECT_EQ(pad.run(), "{}{x} -> {}{x}");
}

TEST(FactorChoice, UnevenReduction) {
  Choice sum("ij->i", {{3, 13}, {3}}, {"{}{x}", "{}"});
  EXPECT_EQ(sum.run(), "{}{x} -> {} partial=sum{x}");
}

TEST(FactorChoice, CheapOperandsFollow) {
  Choice add("ij,ij->ij", {{16, 16}, {16, 16}, {16, 16}},
             {"{y}{x}", "{x}{y}", "{x}{y}"});
  add.tensors[0].cheap = true;
  EXPECT_EQ(add.run(), "{x}{y} {x}{y} -> {x}{y}");
  EXPECT_EQ(add.choice.bytes, 0);
}

// A partial operand passes along y, so the op itself is not cut along y.
TEST(FactorChoice, ReservedAxesAreNotUsed) {
  Choice add("ij,ij->ij", {{16, 16}, {16, 16}, {16, 16}},
             {"{x}{y}", "{x}{y}", "{x}{y}"});
  FactorChoice choice =
      chooseFactorAxes(add.rule, add.tensors, add.mesh, estimateReshardBytes,
                       {add.mesh.whole(1)});
  EXPECT_EQ(print(add.mesh, choice.results[0]), "{x}{}");
}

TEST(FactorChoice, ChooserRemembers) {
  unsigned asked = 0;
  Choice c("ik,kj->ij", {{8, 32}, {32, 16}, {8, 16}},
           {"{x}{y}", "{y}{}", "{x}{}"});
  FactorChooser chooser(c.mesh, [&](const Sharding &from, const Sharding &to,
                                    llvm::ArrayRef<int64_t> shape,
                                    int64_t elementBytes) {
    ++asked;
    return estimateReshardBytes(from, to, shape, elementBytes);
  });
  double bytes = chooser.choose(c.rule, c.tensors).bytes;
  EXPECT_EQ(bytes, 32);
  unsigned first = asked;
  EXPECT_EQ(chooser.choose(c.rule, c.tensors).bytes, bytes);
  EXPECT_EQ(asked, first);
  c.tensors[2].sharding = parseSharding(c.mesh, 2, "{x,y}{}");
  EXPECT_EQ(chooser.choose(c.rule, c.tensors).bytes, 16);
  EXPECT_GT(asked, first);
}

// [8]{a6} is not the blocks of [2,4]: only its first half is shared.
TEST(FactorChoice, CompoundDimsOnlyWhereBlocksCoincide) {
  Choice split("(ij)->ij", {{8}, {2, 4}}, {"{a}", "{a:(1)2}{a:(2)3}"}, "a6");
  EXPECT_EQ(split.run(), "{a:(1)2} -> {a:(1)2}{}");
  Choice even("(ij)->ij", {{8}, {2, 4}}, {"{a}", "{a:(1)2}{a:(2)2}"}, "a4");
  EXPECT_EQ(even.run(), "{a} -> {a:(1)2}{a:(2)2}");
}

TEST(FactorChoice, TwentyConflictingOperandsAtOnce) {
  std::string mesh, rule;
  std::vector<Shape> shapes(21, Shape{64, 64});
  std::vector<std::string> texts;
  for (char c = 'a'; c < 'a' + 20; ++c) {
    std::string name(1, c);
    mesh += (c == 'a' ? "" : ",") + name + "2";
    rule += c == 'a' ? "ij" : ",ij";
    texts.push_back(c % 2 ? "{" + name + "}{}" : "{}{" + name + "}");
  }
  texts.push_back("{}{}");
  std::vector<llvm::StringRef> shardings(texts.begin(), texts.end());
  Choice add(rule + "->ij", shapes, shardings, mesh);
  double start = cpuSeconds();
  add.run();
  double seconds = cpuSeconds() - start;
  std::printf("20 conflicting operands: %.1f ms\n", seconds * 1e3);
  EXPECT_LT(seconds, 1.5);
}

//===----------------------------------------------------------------------===//
// Against all choices
//===----------------------------------------------------------------------===//

namespace {

/// All ordered lists of whole axes for the factors, each axis used once, of
/// those that stand at a tensor.
class AllChoices {
public:
  explicit AllChoices(const Choice &choice) : c(choice) {}
  double best() {
    FactorAxes axes(c.rule.factors.size());
    visit(0, axes);
    return bytes;
  }

private:
  void visit(unsigned axis, FactorAxes &axes) {
    if (axis == c.mesh.axes.size()) {
      score(axes);
      return;
    }
    visit(axis + 1, axes);
    AxisRef ref = c.mesh.whole(axis);
    if (llvm::none_of(c.tensors, [&](const PlacedTensor &tensor) {
          return tensor.sharding.uses(ref);
        }))
      return;
    for (AxisList &list : axes)
      for (size_t at = 0; at <= list.size(); ++at) {
        list.insert(list.begin() + at, ref);
        visit(axis + 1, axes);
        list.erase(list.begin() + at);
      }
  }
  void score(const FactorAxes &axes) {
    if (!computableAt(c.rule, axes))
      return;
    // More shards than indices only waste ranks.
    for (auto [factor, list] : llvm::zip_equal(c.rule.factors, axes))
      if (list.size() > 1 && axesSize(list) > factor.size)
        return;
    double sum = 0;
    for (auto [t, tensor] : llvm::enumerate(c.tensors)) {
      Sharding at = impliedSharding(c.rule, t, axes, c.mesh);
      bool isOperand = t < c.rule.operands.size();
      sum += estimateReshardBytes(isOperand ? tensor.sharding : at,
                                  isOperand ? at : tensor.sharding,
                                  tensor.shape, tensor.elementBytes);
    }
    bytes = std::min(bytes, sum);
  }
  const Choice &c;
  double bytes = 1e30;
};

} // namespace

static std::string randomSharding(std::mt19937 &random, const Mesh &mesh,
                                  unsigned rank) {
  std::vector<std::string> dims(rank);
  for (const MeshAxis &axis : mesh.axes) {
    unsigned dim = random() % (rank + 1);
    if (dim < rank)
      dims[dim] += (dims[dim].empty() ? "" : ",") + axis.name;
  }
  std::string text;
  for (const std::string &dim : dims)
    text += "{" + dim + "}";
  return text;
}

/// How often the best is found, and the bytes of all relative to the least.
struct Quality {
  unsigned exact = 0;
  double ratio = 0;
};

static Quality compareWithAll(llvm::StringRef meshText, unsigned trials) {
  std::mt19937 random(11);
  Quality quality;
  double total = 0, least = 0;
  Mesh mesh = parseMesh(meshText);
  for (unsigned trial = 0; trial < trials; ++trial) {
    auto size = [&] { return int64_t(4) << random() % 6; };
    int64_t m = size(), k = size(), n = size();
    std::vector<Shape> shapes{{m, k}, {k, n}, {m, n}};
    llvm::StringRef rule = "ik,kj->ij";
    if (trial % 3 == 1) {
      shapes[1] = {m, k};
      shapes[2] = {m, k};
      rule = "ik,ik->ik";
    } else if (trial % 3 == 2) {
      shapes = {{m, k}, {k}, {m}};
      rule = "ik,k->i";
    }
    std::vector<std::string> texts;
    for (const Shape &shape : shapes)
      texts.push_back(randomSharding(random, mesh, shape.size()));
    std::vector<llvm::StringRef> shardings(texts.begin(), texts.end());
    Choice c(rule, shapes, shardings, meshText);
    c.run();
    EXPECT_TRUE(computableAt(c.rule, c.choice.axes));
    double best = AllChoices(c).best();
    quality.exact += c.choice.bytes <= best * (1 + 1e-9) + 1e-6;
    total += c.choice.bytes;
    least += best;
  }
  quality.ratio = total / least;
  std::printf("best in %u of %u, bytes %.4f of the least\n", quality.exact,
              trials, quality.ratio);
  return quality;
}

TEST(FactorChoice, BestOfAllChoices) {
  Quality quality = compareWithAll("x4,y2,z3", 300);
  EXPECT_EQ(quality.exact, 300u);
}

TEST(FactorChoice, NearTheBestWhereNotAllAreTried) {
  Quality quality = compareWithAll("x2,y2,z3,w2", 100);
  EXPECT_GE(quality.exact, 90u);
  EXPECT_LE(quality.ratio, 1.02);
}

//===- EdgesTest.cpp - Types, and models at the edges of what is usual ----===//
#include "test/dsl/Case.h"

#include <algorithm>
#include <cmath>

using namespace cleave;

namespace {

const Dim A("a", 5), C("c", 6), D("d", 4), One("one", 1);

Plan cut(std::vector<Mesh::Axis> axes = {{"x", 2}, {"y", 3}}) {
  Plan plan(Mesh("six", std::move(axes)));
  plan.shard(A, "x").shard(C, "y");
  return plan;
}

/// What each type is good for, relative to the largest element.
struct TypeCase {
  Element type;
  double tolerance;
};

struct DslTypes : testing::TestWithParam<TypeCase> {};

TEST_P(DslTypes, ComputeAlike) {
  auto [type, tolerance] = GetParam();
  Case test;
  Tensor x = test.input("x", {A, C}, type), w = test.weight("w", {C, D}, type);
  Tensor g = test.weight("g", C, type);
  const Numbers &v = test["x"], &vw = test["w"], &vg = test["g"];
  auto row = [&](int64_t a, auto f) {
    double total = 0;
    for (int64_t c = 0; c < 6; ++c)
      total += f(c);
    return total;
  };
  test.expect(
      "product", dot(x, w, C),
      [&](auto &i) {
        return row(i[0],
                   [&](auto c) { return v.at(i[0], c) * vw.at(c, i[1]); });
      },
      tolerance * 4);
  test.expect(
      "sum", sum(x, C),
      [&](auto &i) { return row(i[0], [&](auto c) { return v.at(i[0], c); }); },
      tolerance * 4);
  test.expect(
      "silu", silu(x) + 1,
      [&](auto &i) { return v(i) / (1 + std::exp(-v(i))) + 1; }, tolerance * 2);
  test.expect(
      "softmax", softmax(x, C),
      [&](auto &i) {
        return std::exp(v(i)) /
               row(i[0], [&](auto c) { return std::exp(v.at(i[0], c)); });
      },
      tolerance);
  test.expect(
      "norm", rms_norm(x, g, C),
      [&](auto &i) {
        double square =
            row(i[0], [&](auto c) { return std::pow(v.at(i[0], c), 2); });
        return v(i) / std::sqrt(square / 6 + 1e-5) * vg.at(i[1]);
      },
      tolerance * 2);
  test.expect(
      "turned", rope(x, A, C),
      [&](auto &i) {
        int64_t pair = i[1] % 3, other = (i[1] + 3) % 6;
        double angle = double(i[0]) * std::pow(10000, -double(pair) / 3);
        return v(i) * std::cos(angle) +
               (i[1] < 3 ? -1 : 1) * v.at(i[0], other) * std::sin(angle);
      },
      tolerance * 2);
  test.expect(
      "largest", max(x, A),
      [&](auto &i) {
        double top = v.at(0, i[0]);
        for (int64_t a = 1; a < 5; ++a)
          top = std::max(top, v.at(a, i[0]));
        return top;
      },
      0);
  test.expect(
      "best", top_k(x, C, Dim("k", 1)).values,
      [&](auto &i) {
        double top = v.at(i[0], 0);
        for (int64_t c = 1; c < 6; ++c)
          top = std::max(top, v.at(i[0], c));
        return top;
      },
      0);
  test.expect("wide", cast(x, f32) * 0.1, [&](auto &i) { return v(i) * 0.1; });
  test.expect(
      "narrow", cast(cast(x, f64) * 2, type), [&](auto &i) { return v(i) * 2; },
      tolerance);
  test.run(Plan(Mesh("one", {{"x", 1}})));
  test.run(cut());
}

const TypeCase kTypes[] = {
    {f32, 1e-5}, {f64, 1e-6}, {bf16, 0.02}, {f16, 0.003}};

std::string nameOf(const testing::TestParamInfo<TypeCase> &info) {
  static const char *const kNames[] = {"f32", "bf16", "f16", "f64"};
  return kNames[static_cast<int>(info.param.type)];
}

INSTANTIATE_TEST_SUITE_P(All, DslTypes, testing::ValuesIn(kTypes), nameOf);

TEST(DslEdges, MixedFloats) {
  Case test;
  Tensor x = test.input("x", {A, C}), low = test.weight("low", C, bf16);
  Tensor high = test.weight("high", C, f64), half = test.input("half", C, f16);
  const Numbers &v = test["x"], &l = test["low"], &h = test["high"],
                &f = test["half"];
  test.expect("f32", x * low + half,
              [&](auto &i) { return v(i) * l.at(i[1]) + f.at(i[1]); });
  test.expect("f64", x - high, [&](auto &i) { return v(i) - h.at(i[1]); });
  test.expect("chosen", select(x > 0, low, x),
              [&](auto &i) { return v(i) > 0 ? l.at(i[1]) : v(i); });
  EXPECT_EQ((x * low).type(), f32);
  EXPECT_EQ((x - high).type(), f64);
  test.run(cut());
}

TEST(DslEdges, PartsOfNarrowWeights) {
  Case test;
  const Dim V("v", 7);
  Tensor at = test.input("at", A, i32, 0, 6), x = test.input("x", {A, C});
  test.weight("rows.weight", {V, C}, bf16);
  test.weight("line.weight", {C, D}, bf16);
  test.weight("line.bias", D, bf16);
  test.weight("norm.weight", C, f16);
  const Numbers &v = test["x"], &n = test["at"], &rows = test["rows.weight"],
                &w = test["line.weight"], &b = test["line.bias"],
                &g = test["norm.weight"];
  Entry &e = test.entry;
  Tensor row = embedding(e["rows"], at, V, C, bf16);
  EXPECT_EQ(row.type(), bf16);
  test.expect("row", row, [&](auto &i) { return rows.at(n.at(i[0]), i[1]); });
  test.expect("line", linear(e["line"], x, C, D, bf16), [&](auto &i) {
    double total = b.at(i[1]);
    for (int64_t c = 0; c < 6; ++c)
      total += v.at(i[0], c) * w.at(c, i[1]);
    return total;
  });
  test.expect("norm", rms_norm(e["norm"], x, C, 0.5, f16), [&](auto &i) {
    double square = 0;
    for (int64_t c = 0; c < 6; ++c)
      square += v.at(i[0], c) * v.at(i[0], c) / 6;
    return v(i) / std::sqrt(square + 0.5) * g.at(i[1]);
  });
  test.run(cut());
}

TEST(DslEdges, NotANumber) {
  Case test;
  Tensor x = test.input("x", {A, C}, f32, 0, 8);
  Tensor holes = sqrt(x - 1); // of 0 and of less than 1
  const Numbers &v = test["x"];
  auto best = [&](int64_t a, int64_t skip) {
    int64_t at = -1;
    for (int64_t c = 0; c < 6; ++c)
      if (c != skip && v.at(a, c) >= 1 && (at < 0 || v.at(a, c) > v.at(a, at)))
        at = c;
    return at;
  };
  test.expect("holes", holes, [&](auto &i) { return std::sqrt(v(i) - 1); });
  test.expect("argmax", argmax(holes, C), [&](auto &i) {
    return double(std::max<int64_t>(best(i[0], -1), 0));
  });
  test.expect("top_k", top_k(holes, C, Dim("k", 1)).indices,
              [&](auto &i) { return double(best(i[0], -1)); });
  test.run(cut());
}

TEST(DslEdges, Scalars) {
  Case test;
  Tensor s = test.input("s", {}), x = test.input("x", {One, A});
  const Numbers &v = test["s"], &w = test["x"];
  test.input("unused", {A, C});
  test.expect("scalar", s * 2, [&](auto &) { return v.data[0] * 2; });
  test.expect("constant", test.entry.constant(7, i64) + 1,
              [](auto &) { return 8; });
  test.expect("itself", s, [&](auto &) { return v.data[0]; });
  test.expect("twice", s, [&](auto &) { return v.data[0]; });
  test.expect("renamed", x.rename(A, Dim("b")), [&](auto &i) { return w(i); });
  test.expect("unit", sum(x, One), [&](auto &i) { return w.at(0, i[0]); });
  test.expect("of_all", sum(x * s, {A, One}), [&](auto &) {
    double total = 0;
    for (double d : w.data)
      total += d * v.data[0];
    return total;
  });
  test.expect("no_turns",
              test.entry.repeat(
                  "none", 0, [](Scope, Tensor t) { return t; }, s),
              [&](auto &) { return v.data[0]; });
  test.run(cut());
}

/// Turns of a repeat that pass on more than one tensor, inside of each other.
TEST(DslEdges, NestedRepeats) {
  Case test;
  struct Pair {
    Tensor a, b;
  };
  auto inner = [](Scope m, Pair p) {
    return Pair{p.b + p.a, p.a * (1 + double(m.index()))};
  };
  auto outer = [&](Scope m, Pair p) { return m.repeat("inner", 2, inner, p); };
  Tensor x = test.input("x", A), y = test.input("y", A);
  Pair last = test.entry.repeat("outer", 2, outer, Pair{x, y});
  const Numbers &v = test["x"], &w = test["y"];
  auto reference = [&](int64_t i) {
    std::pair<double, double> p = {v.at(i), w.at(i)};
    for (int turn : {0, 1, 0, 1})
      p = {p.second + p.first, p.first * (1 + turn)};
    return p;
  };
  test.expect("a", last.a, [&](auto &i) { return reference(i[0]).first; });
  test.expect("b", last.b, [&](auto &i) { return reference(i[0]).second; });
  Plan plan(Mesh("two", {{"x", 2}}));
  plan.shard(A, "x");
  test.run(plan);
}

/// A loop inside of a repeat, and a repeat inside of a loop.
TEST(DslEdges, LoopsAndRepeats) {
  Case test;
  const Dim L("loop", 3), M("again", 2);
  auto body = [](Scope m, Tensor t, Tensor step) { return t * 0.5 + step; };
  auto looped = [&](Scope m, Tensor t, Tensor step) {
    return m.loop(L, body, t, step);
  };
  auto repeated = [&](Scope m, Tensor t, Tensor step) {
    return m.repeat("part", 2, body, t, step);
  };
  Tensor x = test.input("x", {A, C}), step = test.input("step", C);
  const Numbers &v = test["x"], &s = test["step"];
  auto reference = [&](auto &i) {
    double value = v(i);
    for (int n = 0; n < 6; ++n)
      value = value * 0.5 + s.at(i[1]);
    return value;
  };
  test.expect("loop_in_repeat", test.entry.repeat("outer", 2, looped, x, step),
              reference);
  test.expect("repeat_in_loop", test.entry.loop(L, repeated, x, step),
              reference);
  auto twice = [&](Scope m, Tensor t, Tensor s) {
    return m.loop(M, body, t, s);
  };
  test.expect("loop_in_loop", test.entry.loop(L, twice, x, step), reference);
  test.run(cut());
}

/// Plans of all kinds cut the same model, and none changes what it computes.
TEST(DslEdges, PlansChangeNothing) {
  const Dim F("f", 10);
  Case test;
  Tensor x = test.input("x", {A, C});
  Tensor up = test.weight("up", {C, F}), down = test.weight("down", {F, C});
  Tensor h = relu(dot(x, up, C));
  test.expect(
      "y", softmax(x + dot(h, down, F), C),
      [&](auto &i) {
        const Numbers &v = test["x"], &u = test["up"], &d = test["down"];
        auto value = [&](int64_t c) {
          double total = v.at(i[0], c);
          for (int64_t f = 0; f < 10; ++f) {
            double inner = 0;
            for (int64_t k = 0; k < 6; ++k)
              inner += v.at(i[0], k) * u.at(k, f);
            total += std::max(inner, 0.0) * d.at(f, c);
          }
          return total;
        };
        double top = value(0), all = 0;
        for (int64_t c = 0; c < 6; ++c)
          top = std::max(top, value(c));
        for (int64_t c = 0; c < 6; ++c)
          all += std::exp(value(c) - top);
        return std::exp(value(i[1]) - top) / all;
      },
      1e-4);
  auto mesh = [] { return Plan(Mesh("m", {{"a", 2}, {"b", 4}})); };
  Plan both = mesh(), parts = mesh(), special = mesh(), ordered = mesh();
  both.shard(A, "a").shard(F, {"a", "b"}, {.priority = 1});
  parts.shard(F, "b:(1)2").shard(C, "b:(2)2").shard(A, "a", {.open = true});
  special.shard(F, "b").tensor("u*").shard(C, "b").replicate(F);
  special.replicate("a");
  ordered = Plan(Mesh("o", {{"a", 2}, {"b", 2}}, {3, 0, 2, 1}));
  ordered.shard(A, "b").shard(F, "a");
  for (const Plan &plan : {both, parts, special, ordered})
    test.run(plan);
}

} // namespace

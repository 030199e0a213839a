//===- PartsTest.cpp - Moves of elements and parts of models --------------===//
#include "test/dsl/Case.h"

#include <algorithm>
#include <cmath>

using namespace cleave;

namespace {

const Dim A("a", 5), C("c", 6), D("d", 4);

void onMeshes(Case &test, const std::function<void(Plan &)> &cut) {
  test.run(Plan(Mesh("one", {{"x", 1}})));
  Plan plan(Mesh("six", {{"x", 2}, {"y", 3}}));
  cut(plan);
  test.run(plan);
}

TEST(DslParts, Shapes) {
  Case test;
  const Dim H("h", 2), E("e"), M("m"), W("w", 3), U("u", 1);
  Tensor x = test.input("x", {A, C, D});
  const Numbers &v = test["x"];
  test.expect("split", split(x, C, {H, E}),
              [&](auto &i) { return v.at(i[0], i[1] * 3 + i[2], i[3]); });
  test.expect("split_unit", split(x, A, {U, Dim("a2", 5)}),
              [&](auto &i) { return v.at(i[1], i[2], i[3]); });
  test.expect("merge", merge(x, {C, D}, M),
              [&](auto &i) { return v.at(i[0], i[1] / 4, i[1] % 4); });
  test.expect("merge_apart", merge(x, {D, A}, Dim("da")),
              [&](auto &i) { return v.at(i[1] % 5, i[0], i[1] / 5); });
  test.expect("renamed", x.rename(C, W(6).name() == "w" ? Dim("c2") : C) * 2,
              [&](auto &i) { return v(i) * 2; });
  test.expect("reordered", reorder(x, {D, A, C}),
              [&](auto &i) { return v.at(i[1], i[2], i[0]); });
  onMeshes(test, [](Plan &p) { p.shard(A, "x").shard(D, "y"); });
}

TEST(DslParts, SlicesPadsAndJoins) {
  Case test;
  const Dim Two("two", 2), Three("three", 3), Nine("nine", 9), All("all");
  Tensor x = test.input("x", {A, C}), y = test.input("y", {Two, A});
  Tensor at = test.input("at", {}, i32, 2, 2),
         far = test.input("far", {}, i64, 90, 90);
  const Numbers &v = test["x"], &w = test["y"];
  test.expect("slice", slice(x, C, Three, 1, 2),
              [&](auto &i) { return v.at(i[0], 1 + 2 * i[1]); });
  test.expect("slice_at", slice(x, C, Three, at),
              [&](auto &i) { return v.at(i[0], 2 + i[1]); });
  test.expect("slice_far", slice(x, C, Three, far),
              [&](auto &i) { return v.at(i[0], 3 + i[1]); });
  test.expect("pad", pad(x, C, Nine, 2, -1), [&](auto &i) {
    return i[1] < 2 || i[1] > 7 ? -1 : v.at(i[0], i[1] - 2);
  });
  test.expect("joined", concat({x, y, x}, {C, Two, C}, All), [&](auto &i) {
    if (i[1] >= 6 && i[1] < 8)
      return w.at(i[1] - 6, i[0]);
    return v.at(i[0], i[1] < 6 ? i[1] : i[1] - 8);
  });
  test.expect("updated", update(x, C, y, Two, at), [&](auto &i) {
    return i[1] == 2 || i[1] == 3 ? w.at(i[1] - 2, i[0]) : v(i);
  });
  onMeshes(test, [](Plan &p) { p.shard(A, "x"); });
}

TEST(DslParts, Lookups) {
  Case test;
  const Dim V("v", 7);
  Tensor table = test.weight("table", {V, D});
  Tensor each = test.weight("each", {A, V});
  Tensor at = test.input("at", {A, C}, i32, 0, 6);
  const Numbers &t = test["table"], &e = test["each"], &w = test["at"];
  test.expect("rows", lookup(table, at, V),
              [&](auto &i) { return t.at(w.at(i[0], i[1]), i[2]); });
  test.expect("of_each", lookup(each, at, V),
              [&](auto &i) { return e.at(i[0], w.at(i[0], i[1])); });
  onMeshes(test, [](Plan &p) { p.shard(Dim("v"), "x").shard(A, "y"); });
}

double mean(int64_t n, const std::function<double(int64_t)> &f) {
  double total = 0;
  for (int64_t i = 0; i < n; ++i)
    total += f(i);
  return total / double(n);
}

TEST(DslParts, Norms) {
  Case test;
  Tensor x = test.input("x", {A, C}), g = test.weight("g", C);
  Tensor b = test.weight("b", C), y = test.input("y", {C, A});
  Tensor low = test.input("low", {A, C}, bf16);
  const Numbers &v = test["x"], &vg = test["g"], &vb = test["b"],
                &vy = test["y"], &vl = test["low"];
  auto rms = [&](const Numbers &n, auto &i) {
    double square =
        mean(6, [&](auto c) { return n.at(i[0], c) * n.at(i[0], c); });
    return n(i) / std::sqrt(square + 1e-5) * vg.at(i[1]);
  };
  test.expect("rms", rms_norm(x, g, C), [&](auto &i) { return rms(v, i); });
  test.expect(
      "rms_low", rms_norm(low, g, C), [&](auto &i) { return rms(vl, i); },
      0.01);
  test.expect("layer", layer_norm(x, g, b, C, 1e-3), [&](auto &i) {
    double m = mean(6, [&](auto c) { return v.at(i[0], c); });
    double s = mean(6, [&](auto c) { return std::pow(v.at(i[0], c) - m, 2); });
    return (v(i) - m) / std::sqrt(s + 1e-3) * vg.at(i[1]) + vb.at(i[1]);
  });
  test.expect("first_dim", rms_norm(y, g, C), [&](auto &i) {
    double square =
        mean(6, [&](auto c) { return std::pow(vy.at(c, i[1]), 2); });
    return vy(i) / std::sqrt(square + 1e-5) * vg.at(i[0]);
  });
  test.expect("softmax", softmax(x, C), [&](auto &i) {
    double all = 0;
    for (int64_t c = 0; c < 6; ++c)
      all += std::exp(v.at(i[0], c));
    return std::exp(v(i)) / all;
  });
  test.expect("softmax_of_all", softmax(x * 100, {A, C}), [&](auto &i) {
    double top = *std::max_element(v.data.begin(), v.data.end()), all = 0;
    for (double d : v.data)
      all += std::exp(100 * (d - top));
    return std::exp(100 * (v(i) - top)) / all;
  });
  onMeshes(test, [](Plan &p) { p.shard(A, "x").shard(C, "y"); });
}

/// Element (s, e) of a turned row, where `x` gives the row's elements.
double turned(
    int64_t position, int64_t e, int64_t size, bool interleaved, double base,
    const std::function<double(int64_t)> &x,
    double (*stretched)(double) = [](double rate) { return rate; }) {
  int64_t pair = interleaved ? e / 2 : e % (size / 2);
  bool isFirst = interleaved ? e % 2 == 0 : e < size / 2;
  int64_t partner = interleaved ? (isFirst ? e + 1 : e - 1)
                                : (isFirst ? e + size / 2 : e - size / 2);
  double rate = std::pow(base, -2.0 * double(pair) / double(size));
  double angle = double(position) * stretched(rate);
  return x(e) * std::cos(angle) +
         (isFirst ? -1 : 1) * x(partner) * std::sin(angle);
}

/// Llama 3's rule in its own words, for a context of 40 places.
double stretchedTo160(double rate) {
  double length = 2 * M_PI / rate; // places of one turn
  if (length < 40 / 4.0)
    return rate;
  if (length > 40 / 1.0)
    return rate / 4;
  double smooth = (40 / length - 1) / (4 - 1);
  return (1 - smooth) * rate / 4 + smooth * rate;
}

TEST(DslParts, Rope) {
  Case test;
  const Dim B("b", 2), S("s", 5), H("h", 3), E("e", 8);
  Tensor x = test.input("x", {B, S, H, E});
  Tensor offset = test.input("offset", {}, i32, 11, 11);
  Tensor places = test.input("places", {B, S}, i64, 0, 30);
  const Numbers &v = test["x"], &p = test["places"];
  auto row = [&](auto &i) {
    return [&v, i](int64_t e) { return v.at(i[0], i[1], i[2], e); };
  };
  test.expect("halves", rope(x, S, E), [&, row](auto &i) {
    return turned(i[1], i[3], 8, false, 10000, row(i));
  });
  test.expect(
      "neighbours", rope(x, S, E, {.base = 500, .interleaved = true}),
      [&, row](auto &i) { return turned(i[1], i[3], 8, true, 500, row(i)); });
  test.expect("offset", rope(x, S, E, {.offset = offset}), [&, row](auto &i) {
    return turned(i[1] + 11, i[3], 8, false, 10000, row(i));
  });
  test.expect("positions", rope(x, S, E, {.positions = places}),
              [&, row](auto &i) {
                return turned(p.at(i[0], i[1]), i[3], 8, false, 10000, row(i));
              });
  RopeStretch stretch{.factor = 4, .low = 1, .high = 4, .context = 40};
  test.expect(
      "stretched",
      rope(x, S, E, {.base = 100, .offset = offset, .stretch = stretch}),
      [&, row](auto &i) {
        return turned(i[1] + 11, i[3], 8, false, 100, row(i), stretchedTo160);
      });
  onMeshes(test, [&](Plan &plan) { plan.shard(H, "x").shard(S, "y"); });
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

struct Reference {
  const Numbers &q, &k, &v; // [b, s, kv, g, e], [b, t, kv, e] twice
  double scale;
  /// Added to a score; -inf hides a key.
  std::function<double(int64_t b, int64_t s, int64_t t)> bias;

  double operator()(const Index &i) const {
    int64_t numKeys = k.shape[1], size = k.shape[3];
    std::vector<double> scores(numKeys);
    double top = -INFINITY, total = 0, mixed = 0;
    for (int64_t t = 0; t < numKeys; ++t) {
      for (int64_t e = 0; e < size; ++e)
        scores[t] += q.at(i[0], i[1], i[2], i[3], e) * k.at(i[0], t, i[2], e);
      scores[t] = scores[t] * scale + bias(i[0], i[1], t);
      top = std::max(top, scores[t]);
    }
    for (int64_t t = 0; t < numKeys; ++t) {
      double power = std::exp(scores[t] - top);
      total += power;
      mixed += power * v.at(i[0], t, i[2], i[4]);
    }
    return mixed / total;
  }
};

TEST(DslParts, Attention) {
  Case test;
  const Dim B("b", 2), S("s", 4), T("t", 7), K("kv", 3), G("g", 2), E("e", 4);
  Tensor q = test.input("q", {B, S, K, G, E}),
         k = test.input("k", {B, T, K, E});
  Tensor v = test.input("v", {B, T, K, E});
  Tensor offset = test.input("offset", {}, i32, 3, 3);
  Tensor lengths = test.input("lengths", B, i32, 2, 6);
  Tensor added = test.input("added", {S, T});
  Tensor seen = test.input("seen", {B, T}, i1, 0, 1);
  Tensor first = (test.entry.iota(T) == 0) | seen;
  const Numbers &nq = test["q"], &nk = test["k"], &nv = test["v"],
                &n = test["lengths"], &add = test["added"], &see = test["seen"];
  auto reference = [&](double scale, auto bias) {
    return Reference{nq, nk, nv, scale, bias};
  };
  auto hide = [](bool hidden) { return hidden ? -INFINITY : 0.0; };
  test.expect("plain", attend(q, k, v, {S, T, E}),
              reference(0.5, [](auto...) { return 0.0; }));
  test.expect(
      "causal",
      attend(
          q, k, v,
          {.queries = S, .keys = T, .head = E, .scale = 0.25, .causal = true}),
      reference(0.25, [=](auto, auto s, auto t) { return hide(t > s); }));
  test.expect(
      "behind",
      attend(q, k, v,
             {.queries = S,
              .keys = T,
              .head = E,
              .causal = true,
              .offset = offset}),
      reference(0.5, [=](auto, auto s, auto t) { return hide(t > s + 3); }));
  test.expect(
      "window",
      attend(
          q, k, v,
          {.queries = S, .keys = T, .head = E, .window = 2, .offset = offset}),
      reference(0.5, [=](auto, auto s, auto t) {
        return hide(t > s + 3 || t <= s + 1);
      }));
  test.expect(
      "length",
      attend(q, k, v, {.queries = S, .keys = T, .head = E, .length = lengths}),
      reference(0.5, [=, &n](auto b, auto, auto t) {
        return hide(double(t) >= n.at(b));
      }));
  test.expect(
      "added",
      attend(q, k, v,
             {.queries = S,
              .keys = T,
              .head = E,
              .mask = test.entry.constant(0) + added}),
      reference(0.5, [&](auto, auto s, auto t) { return add.at(s, t); }));
  test.expect(
      "seen",
      attend(q, k, v, {.queries = S, .keys = T, .head = E, .mask = first}),
      reference(0.5, [=, &see](auto b, auto, auto t) {
        return hide(t != 0 && see.at(b, t) == 0);
      }));
  test.expect(
      "sliding", softmax(sliding_window(dot(q, k, E), S, T, 3), T),
      [&](auto &i) {
        // [b, s, kv, g, t]
        auto score = [&](int64_t t) {
          double sum = 0;
          for (int64_t e = 0; e < 4; ++e)
            sum += nq.at(i[0], i[1], i[2], i[3], e) * nk.at(i[0], t, i[2], e);
          return sum;
        };
        double all = 0;
        auto isSeen = [&](int64_t t) { return t <= i[1] && t > i[1] - 3; };
        for (int64_t t = 0; t < 7; ++t)
          all += isSeen(t) ? std::exp(score(t)) : 0;
        return isSeen(i[4]) ? std::exp(score(i[4])) / all : 0;
      });
  onMeshes(test, [&](Plan &p) { p.shard(K, "x").shard(T, "y"); });
}

} // namespace

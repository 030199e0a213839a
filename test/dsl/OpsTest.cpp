//===- OpsTest.cpp - What ops compute, against plain loops ----------------===//
// Each group of ops is one entry, compiled for one rank and for six ranks over
// which its dims are cut unevenly.
#include "test/dsl/Case.h"

#include <algorithm>
#include <cmath>

using namespace cleave;

namespace {

const Dim A("a", 5), C("c", 6), D("d", 4), N("n", 3);

void onMeshes(Case &test, const std::function<void(Plan &)> &cut) {
  test.run(Plan(Mesh("one", {{"x", 1}})));
  Plan plan(Mesh("six", {{"x", 2}, {"y", 3}}));
  cut(plan);
  test.run(plan);
}

using Unary = std::pair<Tensor, std::function<double(double)>>;

TEST(DslOps, Functions) {
  Case test;
  Tensor x = test.input("x", {A, C});
  Tensor above = test.input("above", {A, C}, f32, 1, 16);
  const Numbers &v = test["x"], &p = test["above"];
  auto sig = [](double t) { return 1 / (1 + std::exp(-t)); };
  const std::map<std::string, Unary> ofX = {
      {"exp", {exp(x), [](double t) { return std::exp(t); }}},
      {"tanh", {tanh(x), [](double t) { return std::tanh(t); }}},
      {"sigmoid", {sigmoid(x), sig}},
      {"erf", {erf(x), [](double t) { return std::erf(t); }}},
      {"sin", {sin(x), [](double t) { return std::sin(t); }}},
      {"cos", {cos(x), [](double t) { return std::cos(t); }}},
      {"abs", {abs(x), [](double t) { return std::abs(t); }}},
      {"negate", {-x, [](double t) { return -t; }}},
      {"relu", {relu(x), [](double t) { return std::max(t, 0.0); }}},
      {"silu", {silu(x), [&](double t) { return t * sig(t); }}},
      {"gelu",
       {gelu(x),
        [](double t) { return t * 0.5 * (1 + std::erf(t / std::sqrt(2.0))); }}},
      {"gelu_tanh",
       {gelu_tanh(x),
        [](double t) {
          double inner = std::sqrt(2 / M_PI) * (t + 0.044715 * t * t * t);
          return 0.5 * t * (1 + std::tanh(inner));
        }}},
  };
  for (const auto &[name, of] : ofX)
    test.expect(name, of.first,
                [&v, f = of.second](const Index &i) { return f(v(i)); });
  test.expect("log", log(above), [&](auto &i) { return std::log(p(i)); });
  test.expect("sqrt", sqrt(above), [&](auto &i) { return std::sqrt(p(i)); });
  test.expect("rsqrt", rsqrt(above),
              [&](auto &i) { return 1 / std::sqrt(p(i)); });
  test.expect(
      "pow", pow(above, x), [&](auto &i) { return std::pow(p(i), v(i)); },
      1e-4);
  onMeshes(test, [](Plan &p) { p.shard(A, "x").shard(C, "y"); });
}

TEST(DslOps, ArithmeticMeetsByName) {
  Case test;
  Tensor x = test.input("x", {A, C}), row = test.input("row", C);
  Tensor swapped = test.input("swapped", {C, A});
  Tensor other = test.input("other", D, f32, 1, 8);
  const Numbers &v = test["x"], &r = test["row"], &s = test["swapped"],
                &o = test["other"];
  test.expect("row_first", row - x, [&](auto &i) { return r.at(i[1]) - v(i); });
  test.expect("other_order", x * swapped,
              [&](auto &i) { return v(i) * s.at(i[1], i[0]); });
  test.expect("outer", row / other,
              [&](auto &i) { return r.at(i[0]) / o.at(i[1]); });
  test.expect("scalars", 2 * x + 1.5 - x / 4,
              [&](auto &i) { return 2 * v(i) + 1.5 - v(i) / 4; });
  test.expect("by_size", x * rsqrt(D) + size(C) * 2,
              [&](auto &i) { return v(i) * 0.5 + 12; });
  test.expect("largest", max(x, row),
              [&](auto &i) { return std::max(v(i), r.at(i[1])); });
  test.expect("smallest", min(x, 0.5),
              [&](auto &i) { return std::min(v(i), 0.5); });
  test.expect("chosen", select(x > row, x, -1),
              [&](auto &i) { return v(i) > r.at(i[1]) ? v(i) : -1; });
  test.expect("constant", x + test.entry.constant(2.5),
              [&](auto &i) { return v(i) + 2.5; });
  onMeshes(test, [](Plan &p) { p.shard(A, "x").shard(C, "y"); });
}

TEST(DslOps, IntegersAndTruth) {
  Case test;
  Tensor x = test.input("x", {A, C}, i32, -20, 20);
  Tensor y = test.input("y", {A, C}, i32, 1, 7);
  Tensor t = test.input("t", {A, C}, i1, 0, 1);
  const Numbers &v = test["x"], &w = test["y"], &b = test["t"];
  auto whole = [](double d) { return static_cast<int64_t>(d); };
  test.expect("quotient", x / y,
              [&](auto &i) { return double(whole(v(i)) / whole(w(i))); });
  test.expect("remainder", x % y,
              [&](auto &i) { return double(whole(v(i)) % whole(w(i))); });
  test.expect("bits", (x & 12) | (y ^ 3), [&](auto &i) {
    return double((whole(v(i)) & 12) | (whole(w(i)) ^ 3));
  });
  test.expect("inverted", ~x, [&](auto &i) { return double(~whole(v(i))); });
  test.expect("negated", -x, [&](auto &i) { return -v(i); });
  test.expect("size", abs(x), [&](auto &i) { return std::abs(v(i)); });
  test.expect("logic", (x < y) & ~t,
              [&](auto &i) { return v(i) < w(i) && b(i) == 0; });
  test.expect("equal", (x == y) | (x != 3) | (x >= y),
              [&](auto &i) { return v(i) != 3 || v(i) >= w(i); });
  test.expect("order", (x <= 0) ^ (x > y),
              [&](auto &i) { return (v(i) <= 0) != (v(i) > w(i)); });
  test.expect("wide", cast(x, i64) * 1000000007,
              [&](auto &i) { return v(i) * 1000000007; });
  test.expect("narrow", cast(x, i8), [&](auto &i) { return v(i); });
  test.expect("float", cast(x, f32) / 2, [&](auto &i) { return v(i) / 2; });
  test.expect("back", cast(cast(x, f32) / 2, i32),
              [&](auto &i) { return std::trunc(v(i) / 2); });
  test.expect("truth", cast(x, i1), [&](auto &i) { return v(i) != 0; });
  test.expect("count", sum(cast(t, i32), {A, C}), [&](auto &) {
    return std::count(b.data.begin(), b.data.end(), 1.0);
  });
  test.expect("places", test.entry.iota(C) * 2 + test.entry.iota(A),
              [&](auto &i) { return double(i[0] * 2 + i[1]); });
  onMeshes(test, [](Plan &p) { p.shard(A, "x").shard(C, "y"); });
}

TEST(DslOps, Products) {
  Case test;
  Tensor x = test.input("x", {N, A, C}), y = test.input("y", {N, D, C});
  Tensor w = test.weight("w", {C, D}), low = test.weight("low", {C, D}, bf16);
  Tensor deep = test.weight("deep", {A, C, D});
  Tensor k = test.input("k", {A, C}, i32), l = test.input("l", {C, D}, i32);
  const Numbers &vx = test["x"], &vy = test["y"], &vw = test["w"],
                &vl = test["low"], &vd = test["deep"], &vk = test["k"],
                &vi = test["l"];
  auto over = [](int64_t n, auto f) {
    double total = 0;
    for (int64_t i = 0; i < n; ++i)
      total += f(i);
    return total;
  };
  test.expect("plain", dot(x, w, C), [&](auto &i) {
    return over(6,
                [&](auto c) { return vx.at(i[0], i[1], c) * vw.at(c, i[2]); });
  });
  test.expect("widened", dot(x, low, C), [&](auto &i) {
    return over(6,
                [&](auto c) { return vx.at(i[0], i[1], c) * vl.at(c, i[2]); });
  });
  test.expect("batched", dot(x, y, C), [&](auto &i) {
    return over(
        6, [&](auto c) { return vx.at(i[0], i[1], c) * vy.at(i[0], i[2], c); });
  });
  test.expect("two_dims", dot(x, deep, {A, C}), [&](auto &i) {
    return over(5, [&](auto a) {
      return over(
          6, [&](auto c) { return vx.at(i[0], a, c) * vd.at(a, c, i[1]); });
    });
  });
  test.expect("kept", dot(x, x, C), [&](auto &i) {
    return over(
        6, [&](auto c) { return vx.at(i[0], i[1], c) * vx.at(i[0], i[1], c); });
  });
  test.expect("integers", dot(k, l, C), [&](auto &i) {
    return over(6, [&](auto c) { return vk.at(i[0], c) * vi.at(c, i[1]); });
  });
  onMeshes(test, [](Plan &p) { p.shard(C, "x").shard(D, "y"); });
}

TEST(DslOps, Reductions) {
  Case test;
  Tensor x = test.input("x", {A, C, D}), n = test.input("n", {A, C}, i32);
  const Numbers &v = test["x"], &w = test["n"];
  auto fold = [&](int64_t c, double start, auto f) {
    for (int64_t a = 0; a < 5; ++a)
      for (int64_t d = 0; d < 4; ++d)
        start = f(start, v.at(a, c, d));
    return start;
  };
  auto plus = [](double s, double t) { return s + t; };
  test.expect("sum", sum(x, {A, D}),
              [&](auto &i) { return fold(i[0], 0, plus); });
  test.expect("mean", mean(x, {D, A}),
              [&](auto &i) { return fold(i[0], 0, plus) / 20; });
  test.expect("max", max(x, {A, D}), [&](auto &i) {
    return fold(i[0], -1e9, [](double s, double t) { return std::max(s, t); });
  });
  test.expect("min", min(x, {A, D}), [&](auto &i) {
    return fold(i[0], 1e9, [](double s, double t) { return std::min(s, t); });
  });
  test.expect("prod", prod(x + 2, D), [&](auto &i) {
    double all = 1;
    for (int64_t d = 0; d < 4; ++d)
      all *= v.at(i[0], i[1], d) + 2;
    return all;
  });
  test.expect("whole", max(n, {A, C}), [&](auto &) {
    return *std::max_element(w.data.begin(), w.data.end());
  });
  test.expect("squares", sum(x * x, D), [&](auto &i) {
    double all = 0;
    for (int64_t d = 0; d < 4; ++d)
      all += v.at(i[0], i[1], d) * v.at(i[0], i[1], d);
    return all;
  });
  onMeshes(test, [](Plan &p) { p.shard(A, "x").shard(D, "y"); });
}

/// The indices of a row, largest number first, equal ones in order.
std::vector<int64_t> ranking(int64_t n,
                             const std::function<double(int64_t)> &row) {
  std::vector<int64_t> order(n);
  for (int64_t i = 0; i < n; ++i)
    order[i] = i;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = i + 1; j < n; ++j)
      if (row(order[j]) > row(order[i]) ||
          (row(order[j]) == row(order[i]) && order[j] < order[i]))
        std::swap(order[i], order[j]);
  return order;
}

TEST(DslOps, Search) {
  Case test;
  const Dim V("v", 11), K("k", 4);
  // Few values, so that many are equal.
  Tensor x = test.input("x", {V, A}, f32, -3, 3);
  Tensor n = test.input("n", {A, V}, i32, -3, 3);
  Tensor lowest = select(x > 0.5, x, -INFINITY);
  const Numbers &v = test["x"], &w = test["n"];
  test.expect("best", argmax(x, V), [&](auto &i) {
    return double(ranking(11, [&](auto j) { return v.at(j, i[0]); })[0]);
  });
  test.expect("best_integer", argmax(n, V), [&](auto &i) {
    return double(ranking(11, [&](auto j) { return w.at(i[0], j); })[0]);
  });
  auto masked = [&](int64_t j, int64_t a) {
    return v.at(j, a) > 0.5 ? v.at(j, a) : -INFINITY;
  };
  TopK plain = top_k(x, V, K), rest = top_k(lowest, V, K);
  test.expect("values", plain.values, [&](auto &i) {
    auto row = [&](auto j) { return v.at(j, i[0]); };
    return row(ranking(11, row)[i[1]]);
  });
  test.expect("indices", plain.indices, [&](auto &i) {
    return double(ranking(11, [&](auto j) { return v.at(j, i[0]); })[i[1]]);
  });
  test.expect("with_infinities", rest.indices, [&](auto &i) {
    return double(ranking(11, [&](auto j) { return masked(j, i[0]); })[i[1]]);
  });
  onMeshes(test, [&](Plan &p) { p.shard(A, "x").shard(V, "y"); });
}

} // namespace

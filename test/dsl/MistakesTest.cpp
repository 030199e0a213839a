//===- MistakesTest.cpp - Mistakes in models, and what is said of them ----===//
// One case for each message; lines count from the beginning of the case.
#include "test/dsl/Mistakes.h"

#include <cmath>

using namespace cleave;

namespace {

const Dim A("a", 4), C("c", 6), D("d", 8), S("seq"), Odd("odd", 5);

Tensor x(Entry &e, Where w = Where::current()) {
  return e.input("x", {A, C}, f32, w);
}
Tensor n(Entry &e, Where w = Where::current()) {
  return e.input("n", {A}, i32, w);
}
Tensor t(Entry &e, Where w = Where::current()) {
  return e.input("t", {A}, i1, w);
}

//===----------------------------------------------------------------------===//
// Dims and operands
//===----------------------------------------------------------------------===//

TEST(DslMistakes, DimsHaveNamesAndSizes) {
  expectMistake([](Entry &e) { e.input("x", Dim("")); },
                "+0: error: a dim of 'x' has no name\n");
  expectMistake([](Entry &e) { e.input("x", Dim("a", -3)); },
                "+0: error: dim 'a' has size -3; sizes are at least 1\n");
  expectMistake(
      [](Entry &e) { e.input("x", {A, C, A}); },
      "+1: error: 'x' has dim 'a' twice; give one of them another name\n");
  // Said once; what has the dim later is left out.
  expectMistake(
      [](Entry &e) {
        Tensor x = e.input("x", {A, S});
        Tensor y = e.input("y", S);
        e.output("z", x + y);
      },
      "+2: error: dim 'seq' has no size in entry 'forward'; give it one: "
      "Dim(\"seq\", size), or entry(\"forward\", {dim(size)})\n");
}

TEST(DslMistakes, OneSizeInAnEntry) {
  expectMistake(
      [](Entry &e) {
        e.input("x", {A, C});
        e.input("y", {Dim("a", 5)});
      },
      "+3: error: dim 'a' has size 5 in 'y', and 4 before; a dim has one size "
      "in an entry\n"
      "  +2: note: first used by 'x'\n");
  expectMistake([](Entry &e) { sum(x(e), C(7)); },
                "+0: error: dim 'c' has size 7 here, and 6 in 'x' [a=4, c=6]\n"
                "  +0: note: 'x' is made here\n");
  Model m;
  m.entry("first", {S(4), S(5)});
  m.entry("second", {S(6)}).input("x", S);
  expectText(m.errors(), "-2: error: dim 'seq' has size 5 in entry 'first', "
                         "and 4 before; a dim has one size in an entry\n"
                         "  -2: note: first used by entry 'first'\n");
}

TEST(DslMistakes, OperandsAreThere) {
  expectMistake(
      [](Entry &e) {
        Tensor nothing;
        Tensor y = x(e) * nothing;
        e.output("y", y + 1);
      },
      "+3: error: operand 1 of multiply is an empty Tensor: nothing was "
      "assigned to it\n");
  expectMistake(
      [](Entry &e) {
        Tensor nothing;
        e.output("y", -nothing);
      },
      "+3: error: output 'y' is an empty Tensor: nothing was assigned to it\n");
  expectMistake([](Entry &e) { e.store("s", Tensor()); },
                "+0: error: store of 's' is given an empty Tensor: nothing was "
                "assigned to it\n");
  expectMistake(
      [](Entry &e) {
        Model other;
        Tensor y = other.entry("elsewhere").input("y", {A, C});
        x(e) + y;
      },
      "+4: error: add combines 'x' [a=4, c=6] of entry 'forward' with 'y' "
      "[a=4, c=6] of entry 'elsewhere'; entries share weights and states, "
      "nothing else\n"
      "  +4: note: 'x' is made here\n"
      "  +3: note: 'y' is made here\n");
}

//===----------------------------------------------------------------------===//
// Element by element
//===----------------------------------------------------------------------===//

TEST(DslMistakes, NumbersHaveTypes) {
  expectMistake([](Entry &e) { e.input("i", A, i8) + 128; },
                "+0: error: 128 is not a number of type i8\n");
  expectMistake([](Entry &e) { e.input("i", A, i8) * -129; },
                "+0: error: -129 is not a number of type i8\n");
  expectMistake([](Entry &e) { n(e) * 1e10; },
                "+0: error: 1e+10 is not a number of type i32\n");
  expectMistake([](Entry &e) { select(t(e), n(e), 0.5); },
                "+0: error: 0.5 is not a number of type i32\n");
  expectMistake([](Entry &e) { t(e) & 2; },
                "+0: error: 2 is not a number of type i1\n");
  expectMistake([](Entry &e) { e.constant(INFINITY, i64); },
                "+0: error: inf is not a number of type i64\n");
  expectMistake([](Entry &e) { pad(n(e), A, D, 1, 0.25); },
                "+0: error: 0.25 is not a number of type i32\n");
  // These are numbers of their types.
  expectMistake(
      [](Entry &e) {
        Tensor i = max(e.input("i", A, i8) + 127, -128);
        Tensor j = max(n(e), -2147483648.0) ^ 2147483647;
        Tensor k = select(t(e) ^ 1, cast(i, i64) + 1e15, cast(j, i64));
        e.output("k", cast(k, f16) * 1e9);
      },
      "");
}

TEST(DslMistakes, TypesMeet) {
  expectMistake([](Entry &e) { x(e) + n(e); },
                "+0: error: add mixes f32 and i32; cast one of them\n");
  expectMistake([](Entry &e) { e.input("u", A, bf16) * e.input("v", A, f16); },
                "+0: error: multiply mixes bf16 and f16; cast one of them\n");
  expectMistake([](Entry &e) { n(e) * 2.5; },
                "+0: error: 2.5 is not a number of type i32\n");
  expectMistake([](Entry &e) { n(e) + rsqrt(D); },
                "+0: error: 0.353553391 is not a number of type i32\n");
  expectMistake(
      [](Entry &e) { x(e) * size(S); },
      "+1: error: dim 'seq' has no size in entry 'forward'; give it one: "
      "Dim(\"seq\", size), or entry(\"forward\", {dim(size)})\n");
  expectMistake(
      [](Entry &e) { t(e) + 1; },
      "+1: error: add works on numbers, not on i1; cast it, or use & | ^ ~\n");
  expectMistake([](Entry &e) { x(e) & 1; },
                "+0: error: and works on i1 and integers, not on f32\n");
  expectMistake([](Entry &e) { ~x(e); },
                "+0: error: not works on i1 and integers, not on f32\n");
  expectMistake([](Entry &e) { -t(e); },
                "+0: error: negate works on numbers, not on i1; use ~\n");
  expectMistake([](Entry &e) { abs(t(e)); },
                "+0: error: abs works on numbers, not on i1\n");
  expectMistake(
      [](Entry &e) { exp(n(e)); },
      "+1: error: exp computes with floats, and 'n' [a=4] is i32; cast it\n");
  expectMistake(
      [](Entry &e) { pow(n(e), 2); },
      "+1: error: pow computes with floats, and 'n' [a=4] is i32; cast it\n");
  expectMistake([](Entry &e) { select(x(e), 1, 0); },
                "+0: error: the condition of select is i1, as comparisons "
                "give, and 'x' [a=4, c=6] is f32\n");
  expectMistake([](Entry &e) { select(t(e), x(e), n(e)); },
                "+0: error: select mixes f32 and i32; cast one of them\n");
  expectMistake([](Entry &e) { e.iota(A, i1); },
                "+0: error: iota counts in numbers, not in i1\n");
}

//===----------------------------------------------------------------------===//
// Products and reductions
//===----------------------------------------------------------------------===//

TEST(DslMistakes, Products) {
  expectMistake(
      [](Entry &e) {
        Tensor w = e.weight("w", {C, D});
        dot(x(e), w, A);
      },
      "+3: error: dot sums over 'a', which 'w' [c=6, d=8] does not have; known "
      "are 'c', 'd'\n"
      "  +2: note: 'w' is made here\n");
  expectMistake(
      [](Entry &e) {
        Tensor w = e.weight("w", {C, D});
        dot(x(e), w, Dim("cc"));
      },
      "+3: error: dot sums over 'cc', which 'x' [a=4, c=6] does not have; "
      "closest is 'c'\n"
      "  +3: note: 'x' is made here\n");
  expectMistake([](Entry &e) { dot(x(e), e.weight("w", C), {}); },
                "+0: error: dot sums over no dim; multiply with *\n");
  expectMistake([](Entry &e) { dot(x(e), e.weight("w", C), {C, C}); },
                "+0: error: dot names dim 'c' twice\n");
  expectMistake([](Entry &e) { dot(n(e), x(e), A); },
                "+0: error: dot mixes i32 and f32; cast one of them\n");
  expectMistake([](Entry &e) { dot(t(e), e.input("u", A, i1), A); },
                "+0: error: dot of i1; cast the operands to a wider type\n");
}

TEST(DslMistakes, Reductions) {
  expectMistake([](Entry &e) { sum(x(e), D); },
                "+0: error: sum reduces 'd', which 'x' [a=4, c=6] does not "
                "have; known are 'a', 'c'\n"
                "  +0: note: 'x' is made here\n");
  expectMistake([](Entry &e) { max(t(e), A); },
                "+0: error: max works on numbers, not on i1; cast it\n");
  expectMistake(
      [](Entry &e) { mean(n(e), A); },
      "+1: error: mean computes with floats, and 'n' [a=4] is i32; cast it\n");
  expectMistake([](Entry &e) { argmax(t(e), A); },
                "+0: error: argmax works on numbers, not on i1; cast it\n");
  expectMistake([](Entry &e) { top_k(x(e), C, Dim("k", 7)); },
                "+0: error: top_k takes 7 of 'c', which has 6\n");
  expectMistake([](Entry &e) { top_k(x(e), C, Dim("k")); },
                "+0: error: dim 'k' has no size in entry 'forward'; give it "
                "one: Dim(\"k\", size), or entry(\"forward\", {dim(size)})\n");
}

//===----------------------------------------------------------------------===//
// Moves
//===----------------------------------------------------------------------===//

TEST(DslMistakes, Names) {
  expectMistake(
      [](Entry &e) { x(e).rename(A, C); },
      "+1: error: rename would give 'x' [a=4, c=6] a second dim 'c'\n");
  expectMistake(
      [](Entry &e) {
        e.input("y", D);
        x(e).rename(C, D);
      },
      "+3: error: rename of 'c' (size 6) to 'd' (size 8): a name has one size\n"
      "  +2: note: 'd' first used by 'y'\n");
  expectMistake([](Entry &e) { x(e).rename(D, S); },
                "+0: error: rename replaces 'd', which 'x' [a=4, c=6] does not "
                "have; known are 'a', 'c'\n"
                "  +0: note: 'x' is made here\n");
  expectMistake([](Entry &e) { (x(e) + 1).named(""); },
                "+0: error: the name of a tensor is empty\n");
  expectMistake([](Entry &e) { x(e).named("y"); },
                "+0: error: 'x' has a name already; name the result of an op, "
                "and once\n");
  expectMistake(
      [](Entry &e) {
        Tensor y = x(e);
        (y + 1).named("z");
        (y + 2).named("z");
      },
      "+4: error: the name 'z' is taken in entry 'forward'\n");
}

TEST(DslMistakes, Shapes) {
  expectMistake([](Entry &e) { split(x(e), C, {Dim("h", 4), Dim("i")}); },
                "+0: error: split of 'c' (size 6) leaves no size for 'i': the "
                "others multiply to 4\n");
  expectMistake(
      [](Entry &e) { split(x(e), C, {Dim("h"), Dim("i")}); },
      "+1: error: neither 'h' nor 'i' has a size; split finds one of them\n");
  expectMistake(
      [](Entry &e) { split(x(e), C, {Dim("h", 2), A}); },
      "+1: error: split would give 'x' [a=4, c=6] a second dim 'a'\n");
  expectMistake([](Entry &e) { merge(x(e), {A, C}, Dim("m", 25)); },
                "+0: error: merge of [a=4, c=6] into 'm' (size 25): the sizes "
                "multiply to 24\n");
  expectMistake([](Entry &e) { merge(x(e), {}, Dim("m")); },
                "+0: error: merge joins no dim; name at least one\n");
  expectMistake(
      [](Entry &e) {
        Tensor y = e.input("y", {A, Dim("u", 1), C});
        merge(y, {A, Dim("u")}, C);
      },
      "+3: error: merge of [a=4, u=1] into 'c' (size 6): the sizes multiply to "
      "4\n");
  expectMistake(
      [](Entry &e) {
        Tensor y = e.input("y", {A, Dim("u", 1), Dim("z", 4)});
        merge(y, {A, Dim("u")}, Dim("z"));
      },
      "+3: error: merge would give 'y' [a=4, u=1, z=4] a second dim 'z'\n");
  expectMistake([](Entry &e) { reorder(x(e), C); },
                "+0: error: reorder places 1 dims of 'x' [a=4, c=6]; name each "
                "of them\n");
}

TEST(DslMistakes, Slices) {
  const Dim P("p", 3);
  expectMistake(
      [&](Entry &e) { slice(x(e), C, P, 4); },
      "+1: error: slice takes indices 4 to 6 by 1 of 'c', which has 0 to 5\n");
  expectMistake(
      [&](Entry &e) { slice(x(e), C, P, 0, 3); },
      "+1: error: slice takes indices 0 to 6 by 3 of 'c', which has 0 to 5\n");
  expectMistake([&](Entry &e) { slice(x(e), C, Dim("p", 9), n(e)); },
                "+0: error: the beginning of slice is an integer without dims, "
                "and 'n' [a=4] is i32\n");
  expectMistake(
      [&](Entry &e) { slice(x(e), C, Dim("p", 9), e.input("i", {}, i32)); },
      "+1: error: slice takes 9 of 'c', which has 6\n");
  expectMistake(
      [&](Entry &e) { slice(x(e), C, A, 0); },
      "+1: error: slice would give 'x' [a=4, c=6] a second dim 'a'\n");
  expectMistake([&](Entry &e) { pad(x(e), C, D, 3); },
                "+0: error: pad puts 'c' (size 6) behind 3 into 'd' (size 8), "
                "where it has no room\n");
  expectMistake([&](Entry &e) { pad(x(e), C, D, -1); },
                "+0: error: pad puts 'c' (size 6) behind -1 into 'd' (size 8), "
                "where it has no room\n");
}

TEST(DslMistakes, Joins) {
  const Dim All("all"), P("p", 3);
  expectMistake(
      [&](Entry &e) {
        Tensor y = e.input("y", {A, C, All(12)});
        concat({y, y}, C, All);
      },
      "+3: error: concat would give 'y' [a=4, c=6, all=12] a second dim "
      "'all'\n");
  expectMistake(
      [&](Entry &e) {
        Tensor y = x(e);
        concat({y, y}, {C, C, C}, All);
      },
      "+3: error: concat joins 2 tensors along 3 dims; name one for each, or "
      "one for all\n");
  expectMistake(
      [&](Entry &e) {
        Tensor y = x(e);
        concat({y, y}, C, All(13));
      },
      "+3: error: concat joins 12 into 'all', which has size 13\n");
  expectMistake(
      [&](Entry &e) { concat({x(e), e.input("y", {D, P})}, {C, P}, All); },
      "+1: error: concat joins 'y' [d=8, p=3] of f32 to 'x' [a=4, c=6] of f32; "
      "their other dims and types must be equal\n");
  expectMistake(
      [&](Entry &e) { concat({x(e), e.input("y", {A, P}, f16)}, {C, P}, All); },
      "+1: error: concat joins 'y' [a=4, p=3] of f16 to 'x' [a=4, c=6] of f32; "
      "their other dims and types must be equal\n");
  expectMistake(
      [&](Entry &e) {
        Tensor at = e.input("at", {}, i32);
        update(x(e), C, e.input("y", {D, P}), P, at);
      },
      "+3: error: update writes 'y' [d=8, p=3] into 'x' [a=4, c=6]; it must "
      "have the dims [a=4, p=3], at most as many of 'p' as of 'c'\n");
  expectMistake(
      [&](Entry &e) {
        Tensor at = e.input("at", {}, i32);
        update(x(e), C, e.input("y", {A, D}), D, at);
      },
      "+3: error: update writes 'y' [a=4, d=8] into 'x' [a=4, c=6]; it must "
      "have the dims [a=4, d=8], at most as many of 'd' as of 'c'\n");
  expectMistake(
      [&](Entry &e) {
        Tensor y = x(e);
        update(y, C, y, C, e.input("at", {}));
      },
      "+3: error: the position of update is an integer without dims, and 'at' "
      "[] is f32\n");
  expectMistake(
      [&](Entry &e) { lookup(x(e), t(e), A); },
      "+1: error: the indices of lookup are integers, and 't' [a=4] is i1\n");
  expectMistake([&](Entry &e) { lookup(x(e), n(e), D); },
                "+0: error: lookup looks along 'd', which 'x' [a=4, c=6] does "
                "not have; known are 'a', 'c'\n"
                "  +0: note: 'x' is made here\n");
}

//===----------------------------------------------------------------------===//
// Parts
//===----------------------------------------------------------------------===//

TEST(DslMistakes, Parts) {
  expectMistake([](Entry &e) { softmax(n(e), A); },
                "+0: error: softmax computes with floats, and 'n' [a=4] is "
                "i32; cast it\n");
  expectMistake([](Entry &e) { rms_norm(x(e), e.weight("g", D), C); },
                "+0: error: rms_norm of 'x' [a=4, c=6] takes 'g' [d=8], whose "
                "dim 'd' it does not have\n");
  expectMistake(
      [](Entry &e) {
        layer_norm(x(e), e.weight("g", C), e.weight("b", C, i32), C);
      },
      "+2: error: layer_norm computes with floats, and 'b' [c=6] is i32; cast "
      "it\n");
  expectMistake([](Entry &e) { rope(e.input("y", {A, Odd}), A, Odd); },
                "+0: error: rope turns pairs, and 'odd' has the odd size 5\n");
  expectMistake(
      [](Entry &e) {
        Tensor at = e.input("at", {}, i32);
        rope(x(e), A, C, {.base = 100, .offset = at, .positions = n(e)});
      },
      "+3: error: rope takes an offset or positions, not both\n");
  expectMistake([](Entry &e) { rope(x(e), A, C, {.base = 0}); },
                "+0: error: the base of rope is a positive number\n");
  expectMistake(
      [](Entry &e) {
        rope(x(e), A, C, {.stretch = RopeStretch{.low = 4, .high = 4}});
      },
      "+2: error: the stretch of rope has positive numbers, and its 'high' is "
      "above its 'low'\n");
  expectMistake([](Entry &e) { rope(x(e), A, C, {.offset = n(e)}); },
                "+0: error: the offset of rope is an integer without dims, and "
                "'n' [a=4] is i32\n");
  expectMistake(
      [](Entry &e) { rope(x(e), A, C, {.positions = t(e)}); },
      "+1: error: the positions of rope are integers, and 't' [a=4] is i1\n");
  expectMistake(
      [](Entry &e) { rope(x(e), A, C, {.positions = e.input("p", D, i32)}); },
      "+1: error: the positions of rope lie along dims of 'x' [a=4, c=6] but "
      "'c', and 'p' [d=8] does not\n");
  expectMistake(
      [](Entry &e) {
        rope(e.input("y", {S(3), A, C}), S, C, {.positions = n(e)});
      },
      "+2: error: the positions of rope have the dim 'seq', and 'n' [a=4] does "
      "not\n");
}

TEST(DslMistakes, Attention) {
  const Dim T("t", 3);
  expectMistake([](Entry &e) { causal(x(e), A, D); },
                "+0: error: causal compares 'd', which 'x' [a=4, c=6] does not "
                "have; known are 'a', 'c'\n"
                "  +0: note: 'x' is made here\n");
  expectMistake([](Entry &e) { causal(x(e), A, C, {.window = -1}); },
                "+0: error: the window of causal is -1; it is at least 1, or 0 "
                "for all\n");
  expectMistake([](Entry &e) { causal(x(e), A, C, {.offset = t(e)}); },
                "+0: error: the offset of causal is an integer without dims, "
                "and 't' [a=4] is i1\n");
  expectMistake(
      [](Entry &e) { sliding_window(x(e), A, C, 0); },
      "+1: error: the width of sliding_window is 0; it is at least 1\n");
  expectMistake(
      [&](Entry &e) {
        Tensor k = e.input("k", {T, C});
        attend(x(e), k, k, {A, T, D});
      },
      "+3: error: dot sums over 'd', which 'x' [a=4, c=6] does not have; known "
      "are 'a', 'c'\n"
      "  +3: note: 'x' is made here\n");
  expectMistake(
      [&](Entry &e) {
        Tensor k = e.input("k", {T, C});
        attend(x(e), k, k,
               {.queries = A, .keys = T, .head = C, .length = t(e)});
      },
      "+3: error: the lengths of attend are integers, and 't' [a=4] is i1\n");
  expectMistake(
      [&](Entry &e) {
        Tensor k = e.input("k", {T, C}), l = e.input("l", D, i32);
        attend(x(e), k, k, {.queries = A, .keys = T, .head = C, .length = l});
      },
      "+3: error: the lengths of attend, 'l' [d=8], have the dim 'd', which "
      "the scores [a=4, t=3] do not have\n");
}

//===----------------------------------------------------------------------===//
// Scopes, entries and models
//===----------------------------------------------------------------------===//

TEST(DslMistakes, Edges) {
  expectMistake([](Entry &e) { e.input("", A); },
                "+0: error: the name of an input is empty\n");
  expectMistake([](Entry &e) { e.weight("", A); },
                "+0: error: the name of a weight is empty\n");
  expectMistake(
      [](Entry &e) {
        e.input("x", A);
        e.input("x", A);
      },
      "+3: error: the name 'x' of the input is taken in entry 'forward'\n"
      "  +2: note: by this one\n");
  expectMistake(
      [](Entry &e) {
        e.weight("w", {A, C});
        e.weight("w", {C, A});
      },
      "+3: error: weight 'w' is f32 [c=6, a=4] here, and f32 [a=4, c=6] "
      "before; it has one type\n"
      "  +2: note: first used here\n");
  expectMistake(
      [](Entry &e) {
        e.weight("w", A);
        e.weight("w", A, bf16);
      },
      "+3: error: weight 'w' is bf16 [a=4] here, and f32 [a=4] before; it has "
      "one type\n"
      "  +2: note: first used here\n");
  expectMistake(
      [](Entry &e) {
        e.weight("w", A);
        e.state("w", A);
      },
      "+3: error: the name 'w' of the state is taken in entry 'forward'\n"
      "  +2: note: by this one\n");
  expectMistake(
      [](Entry &e) {
        e.output("y", x(e));
        e.output("y", n(e));
      },
      "+3: error: entry 'forward' has two outputs 'y'\n"
      "  +2: note: the first one\n");
  expectMistake([](Entry &e) { e.output("", x(e)); },
                "+0: error: the name of an output is empty\n");
  expectMistake(
      [](Entry &e) {
        Model other;
        e.output("y", other.entry("elsewhere").input("x", A));
      },
      "+3: error: output 'y' of entry 'forward' is 'x' [a=4] of entry "
      "'elsewhere'\n");
}

TEST(DslMistakes, States) {
  expectMistake(
      [](Entry &e) {
        e.state("keys", {A, C});
        e.store("kays", x(e));
      },
      "+3: error: store to 'kays', which is no state of entry 'forward'; "
      "closest is 'keys'\n");
  expectMistake(
      [](Entry &e) {
        e.state("keys", {A, D});
        e.store("keys", x(e));
      },
      "+3: error: store of 'x' [a=4, c=6] of f32 to the state 'keys' [a=4, "
      "d=8] of f32; both have one type\n"
      "  +2: note: the state is made here\n");
  expectMistake(
      [](Entry &e) {
        e.state("keys", {A, C}, bf16);
        e.store("keys", x(e));
      },
      "+3: error: store of 'x' [a=4, c=6] of f32 to the state 'keys' [a=4, "
      "c=6] of bf16; both have one type\n"
      "  +2: note: the state is made here\n");
}

TEST(DslMistakes, Loops) {
  expectMistake(
      [](Entry &e) {
        Tensor y = e.loop(
            Dim("layer", 3), [](Scope, Tensor v) { return sum(v, C); }, x(e));
        e.output("y", y);
      },
      "+3: error: a turn of the loop makes 'layer.sum' [a=4] of f32 from 'x' "
      "[a=4, c=6] of f32; both must have one type\n");
  expectMistake(
      [](Entry &e) {
        Tensor kept;
        e.loop(
            Dim("layer", 3),
            [&](Scope m, Tensor v) {
              kept = v * m.weight("gain", A);
              return kept;
            },
            x(e));
        e.output("y", kept);
      },
      "+10: error: 'layer.multiply' [a=4, c=6] is made in each turn of the "
      "loop 'layer'; outside of it, use what loop() returns\n"
      "  +6: note: it is made here\n");
  expectMistake(
      [](Entry &e) {
        e.loop(Dim("layer"), [](Scope, Tensor v) { return v; }, x(e));
      },
      "+2: error: dim 'layer' has no size in entry 'forward'; give it one: "
      "Dim(\"layer\", size), or entry(\"forward\", {dim(size)})\n");
  expectMistake(
      [](Entry &e) {
        Tensor nothing;
        e.output("y", e.loop(
                          Dim("layer", 2), [](Scope, Tensor v) { return v; },
                          nothing));
      },
      "+3: error: output 'y' is an empty Tensor: nothing was assigned to it\n");
  expectMistake(
      [](Entry &e) {
        auto inner = [](Scope m, Tensor v) {
          return v + m.state("sum", {A, C});
        };
        auto outer = [&](Scope m, Tensor v) {
          return m.loop(Dim("inner", 2), inner, v);
        };
        e.loop(Dim("outer", 2), outer, x(e));
      },
      "+3: error: state 'outer.inner.sum' is made in a loop inside of another; "
      "keep the state of one loop, or repeat\n");
}

TEST(DslMistakes, EntriesAgree) {
  Model m;
  Entry first = m.entry("prefill"), second = m.entry("decode");
  first.weight("w", {A, C});
  second.weight("w", {C, A});
  first.state("s", A);
  second.state("s", A, i32);
  m.entry("decode");
  m.entry("");
  expectText(m.errors(), "-5: error: weight 'w' is f32 [c=6, a=4] here, and "
                         "f32 [a=4, c=6] before; it has one type\n"
                         "  -6: note: first used here\n"
                         "-3: error: state 's' is i32 [a=4] here, and f32 "
                         "[a=4] before; it has one type\n"
                         "  -4: note: first used here\n"
                         "-2: error: the model has two entries 'decode'\n"
                         "  -7: note: the first one\n"
                         "-1: error: the name of an entry is empty\n");
}

TEST(DslMistakes, UnfinishedModels) {
  Plan plan(Mesh("pod", {{"tp", 2}}));
  Model empty("nothing");
  expectText(errors(empty, plan), "-1: error: the model 'nothing' has no "
                                  "entry; make one with model.entry(name)\n");
  Model dry;
  dry.entry("forward").input("x", A);
  expectText(errors(dry, plan), "-1: error: entry 'forward' has no output; "
                                "name one with output(name, value)\n");
}

/// Every mistake is told, in the order in which they were made.
TEST(DslMistakes, AllAreTold) {
  expectMistake(
      [](Entry &e) {
        Tensor y = dot(x(e), e.weight("w", {A, D}), C);
        Tensor z = sum(n(e), D);
        e.output("y", y * z);
      },
      "+2: error: dot sums over 'c', which 'w' [a=4, d=8] does not have; known "
      "are 'a', 'd'\n"
      "  +2: note: 'w' is made here\n"
      "+3: error: sum reduces 'd', which 'n' [a=4] does not have; known are "
      "'a'\n"
      "  +3: note: 'n' is made here\n");
}

} // namespace

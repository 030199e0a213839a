//===- ModelMistakesTest.cpp - Mistakes in scopes, entries and models -----===//
// Lines count from the beginning of the case.
#include "test/dsl/Mistakes.h"

using namespace cleave;

namespace {

const Dim A("a", 4), C("c", 6), D("d", 8);

Tensor x(Entry &e, Where w = Where::current()) {
  return e.input("x", {A, C}, f32, w);
}
Tensor n(Entry &e, Where w = Where::current()) {
  return e.input("n", {A}, i32, w);
}

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

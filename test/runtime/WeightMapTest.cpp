//===- WeightMapTest.cpp - Names and dims of stored weights ---------------===//
#include "runtime/io/WeightMap.h"
#include "test/runtime/Files.h"
#include "test/runtime/TestProgram.h"
#include "test/runtime/TestTensor.h"

#include <gtest/gtest.h>

using namespace cleave::rt;
using namespace cleave::rt::test;

namespace {

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

std::string patternError(const std::string &text) {
  return NamePattern().parse(text).message();
}

/// What the weight's name is in the checkpoint by a map of one rule.
std::string mapped(const std::string &weight, const std::string &tensor,
                   const std::string &name) {
  WeightMap map;
  Status status =
      map.parse("{\"weights\": {\"" + weight + "\": \"" + tensor + "\"}}");
  EXPECT_TRUE(status.ok()) << status.message();
  return map.find(name).name;
}

TEST(NamePattern, OpenParts) {
  EXPECT_EQ(mapped("a", "b", "a"), "b");
  EXPECT_EQ(mapped("a", "b", "aa"), "aa");
  EXPECT_EQ(mapped("*", "model.*.weight", "up"), "model.up.weight");
  EXPECT_EQ(mapped("l{i}.w", "m.{i}.w", "l12.w"), "m.12.w");
  EXPECT_EQ(mapped("l{i}.w", "m.{i}.w", "l.w"), "l.w");     // no number
  EXPECT_EQ(mapped("l{i}.w", "m.{i}.w", "lx.w"), "lx.w");   // not a number
  EXPECT_EQ(mapped("l{i}.w", "m.{i}.w", "l1.ww"), "l1.ww"); // text behind it
  EXPECT_EQ(mapped("l{i}.e{j}.*", "m.{i}.x.{j}.*.v", "l1.e20.a.b"),
            "m.1.x.20.a.b.v");
  EXPECT_EQ(mapped("*.w", "*.v", "a.w.w"), "a.w.v");
  EXPECT_EQ(mapped("l*", "m", "l"), "m"); // any text, also none
}

TEST(NamePattern, FirstRuleThatMatchesCounts) {
  WeightMap map;
  ASSERT_TRUE(map.parse("{\"weights\": {\"z\": \"1\", \"*\": \"2\", \"a\": "
                        "\"3\"}}")
                  .ok());
  EXPECT_EQ(map.find("z").name, "1");
  EXPECT_EQ(map.find("a").name, "2");
  EXPECT_EQ(map.withoutMatch({"a"}), std::vector<std::string>{"z"});
}

TEST(NamePattern, Mistakes) {
  EXPECT_EQ(patternError("a{"),
            "the pattern 'a{' has a { that no name and } follow");
  EXPECT_EQ(patternError("a{}"),
            "the pattern 'a{}' has a { that no name and } follow");
  EXPECT_EQ(patternError("*a*"), "the pattern '*a*' has two *");
  EXPECT_EQ(patternError("{i}.{i}"),
            "the pattern '{i}.{i}' has a name in braces twice");
  EXPECT_EQ(patternError("{i}*"), "the pattern '{i}*' has two open parts "
                                  "without text between them");
}

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

std::string mapError(const std::string &text) {
  return WeightMap().parse(text).message();
}

std::string ruleError(const std::string &rule) {
  return mapError("{\"weights\": {\"w\": " + rule + "}}");
}

TEST(WeightMap, WrongFiles) {
  EXPECT_EQ(mapError(""), "it is no JSON object");
  EXPECT_EQ(mapError("[]"), "it is no JSON object");
  EXPECT_EQ(mapError("{\"weight\": {}}"),
            "unknown key 'weight'; known are 'weights', 'unused'");
  EXPECT_EQ(mapError("{\"weights\": []}"), "\"weights\" is no object");
  EXPECT_EQ(mapError("{\"weights\": {\"a\": \"b\", \"a\": \"c\"}}"),
            "'a' occurs twice");
  EXPECT_EQ(mapError("{\"weights\": {\"a\": {\"from\": \"b\"}, \"c\": "
                     "{\"from\": \"b\"}}}"),
            ""); // the same key in two objects
  for (const char *unused : {"{}", "[1]", "\"a\""})
    EXPECT_EQ(mapError("{\"unused\": " + std::string(unused) + "}"),
              "\"unused\" is no list of patterns");
  TemporaryFolder folder;
  std::string path = folder.path("map.json");
  EXPECT_EQ(WeightMap().open(path).message(),
            "--weights-map: cannot open '" + path +
                "': no such file or directory");
  writeFile(path, "{");
  EXPECT_EQ(WeightMap().open(path).message(),
            "--weights-map '" + path + "': it is no JSON object");
}

TEST(WeightMap, WrongRules) {
  EXPECT_EQ(ruleError("1"), "weight 'w': needs the tensor's name, or an object "
                            "with it as \"from\"");
  EXPECT_EQ(ruleError("{\"dims\": \"a -> a\"}"),
            "weight 'w': needs the tensor's name, or an object with it as "
            "\"from\"");
  EXPECT_EQ(ruleError("{\"from\": \"v\", \"dim\": \"a -> a\"}"),
            "weight 'w': unknown key 'dim'; known are 'dims', 'from', 'pick', "
            "'sizes', 'rows'");
  EXPECT_EQ(ruleError("{\"from\": \"v\", \"dims\": 1}"),
            "weight 'w': \"dims\" is no text");
  EXPECT_EQ(ruleError("{\"from\": \"v\", \"sizes\": {\"a\": 2}}"),
            "weight 'w': \"sizes\" and \"pick\" need \"dims\"");
  for (const char *sizes :
       {"1", "{\"a\": -1}", "{\"a\": \"2\"}", "{\"a\": 18446744073709551615}"})
    EXPECT_EQ(ruleError(std::string("{\"from\": \"v\", \"dims\": \"a -> a\", "
                                    "\"sizes\": ") +
                        sizes + "}"),
              "weight 'w': \"sizes\" is no object of names and whole numbers");
  for (const char *rows : {"3", "[1]", "[2, 1]", "[-1, 1]", "[0, \"1\"]",
                           "[18446744073709551615, 3]"})
    EXPECT_EQ(
        ruleError(std::string("{\"from\": \"v\", \"rows\": ") + rows + "}"),
        "weight 'w': \"rows\" is not [begin, end] of the tensor's first "
        "dim");
  EXPECT_EQ(ruleError("\"v.*\""), "weight 'w': 'v.*' has a *, 'w' has none");
  EXPECT_EQ(ruleError("\"v.{i}.{j}\""),
            "weight 'w': 'v.{i}.{j}' stands for several tensors by two names "
            "in braces; one can be");
  EXPECT_EQ(ruleError("\"v{\""), "weight 'w': the pattern 'v{' has a { that no "
                                 "name and } follow");
}

//===----------------------------------------------------------------------===//
// Dims
//===----------------------------------------------------------------------===//

using Numbers = std::map<std::string, int64_t>;

std::string dimsError(const std::string &text, Numbers sizes = {},
                      Numbers picks = {}) {
  return Rearrange().parse(text, std::move(sizes), std::move(picks)).message();
}

TEST(Rearrange, WrongTexts) {
  for (const char *text : {"", "a b", "a (b -> a b", "a) -> a", "a -> ((a))",
                           "a, b -> b a", "2 a -> a", "a -> a -> a"})
    EXPECT_EQ(dimsError(text),
              "\"dims\" is '" + std::string(text) +
                  "', not two lists of names with -> between them, as in 'out "
                  "(a b) -> a b out'");
  EXPECT_EQ(dimsError("a a -> a"), "'a a -> a' has 'a' twice on the left");
  EXPECT_EQ(dimsError("a -> a a"), "'a -> a a' has 'a' twice on the right");
  EXPECT_EQ(dimsError("a -> a b"),
            "'a -> a b' has 'b' on the right, but not on the left");
  EXPECT_EQ(dimsError("a b -> a"),
            "'a b -> a' has 'b' on the left, but not on the right; \"pick\" "
            "can take one index of it");
  EXPECT_EQ(dimsError("a b -> a b", {}, {{"b", 1}}),
            "'a b -> a b' has 'b' on the right, of which \"pick\" takes one "
            "index");
  EXPECT_EQ(dimsError("a -> a", {{"x", 2}}),
            "'a -> a' has no 'x', which \"sizes\" names");
  EXPECT_EQ(dimsError("a -> a", {}, {{"x", 2}}),
            "'a -> a' has no 'x', which \"pick\" names");
}

/// 1, 2, 3, ... in this shape.
struct Counting {
  std::vector<float> data;
  GlobalArray array;

  explicit Counting(std::vector<int64_t> shape) {
    int64_t count = 1;
    for (int64_t size : shape)
      count *= size;
    data.resize(size_t(count));
    std::iota(data.begin(), data.end(), 1.0f);
    array.data = reinterpret_cast<char *>(data.data());
    array.dtype = CLEAVE_F32;
    array.shape = std::move(shape);
    array.setSteps(false);
  }
};

std::string applyError(const std::string &text, std::vector<int64_t> stored,
                       std::vector<int64_t> wanted, Numbers sizes = {},
                       Numbers picks = {}) {
  Rearrange rearrange;
  Status status = rearrange.parse(text, std::move(sizes), std::move(picks));
  EXPECT_TRUE(status.ok()) << status.message();
  GlobalArray result;
  return rearrange.apply(Counting(std::move(stored)).array, wanted, &result)
      .message();
}

TEST(Rearrange, WrongShapes) {
  EXPECT_EQ(applyError("a b -> b a", {2, 3, 4}, {3, 2}),
            "2 dims do not fit 3 on the left in 'a b -> b a': the stored shape "
            "is 2x3x4, the program expects 3x2");
  EXPECT_EQ(applyError("(a b) -> a b", {6}, {6}),
            "2 dims do not fit 1 on the right in '(a b) -> a b': the stored "
            "shape is 6, the program expects 6");
  EXPECT_EQ(applyError("a b -> b a", {2, 3}, {2, 3}),
            "'b' does not fit 2 in 'a b -> b a': the stored shape is 2x3, the "
            "program expects 2x3");
  EXPECT_EQ(applyError("(a b) -> a b", {7}, {2, 3}),
            "'(a b)' does not fit 7 in '(a b) -> a b': the stored shape is 7, "
            "the program expects 2x3");
  EXPECT_EQ(applyError("(a b) -> (b a)", {6}, {6}),
            "the sizes in '(b a)' are not known (\"sizes\" can tell) in '(a b) "
            "-> (b a)': the stored shape is 6, the program expects 6");
  EXPECT_EQ(applyError("1 a -> a", {2, 3}, {3}),
            "'1' does not fit 2 in '1 a -> a': the stored shape is 2x3, the "
            "program expects 3");
  EXPECT_EQ(applyError("(x a) -> a", {6}, {3}, {}, {{"x", 2}}),
            "\"pick\" takes index 2 of 'x' of size 2 in '(x a) -> a': the "
            "stored shape is 6, the program expects 3");
}

/// Reads the array through `text` as a tensor of this shape, whole and cut in
/// every dim, unevenly too. `at` says which number stands at an index.
using At = std::function<int64_t(const std::vector<int64_t> &)>;

void expectNumbers(const std::string &text, std::vector<int64_t> stored,
                   std::vector<int64_t> shape, const At &at, Numbers sizes = {},
                   Numbers picks = {}) {
  Rearrange rearrange;
  Status status = rearrange.parse(text, sizes, picks);
  ASSERT_TRUE(status.ok()) << status.message();
  Counting counting(stored);
  GlobalArray view;
  status = rearrange.apply(counting.array, shape, &view);
  ASSERT_TRUE(status.ok()) << status.message();
  std::vector<float> expected;
  std::vector<int64_t> index(shape.size());
  for (bool more = true; more;) {
    expected.push_back(float(at(index) + 1));
    more = false;
    for (size_t d = shape.size(); d-- > 0 && !more;)
      if (more = ++index[d] < shape[d]; !more)
        index[d] = 0;
  }
  TestProgram program({3, 2});
  for (size_t cut = 0; cut <= shape.size(); ++cut)
    for (int64_t axis : {0, 1}) {
      std::vector<std::vector<CleaveAxisRef>> axes(shape.size());
      if (cut < shape.size())
        axes[cut] = {{axis, 1, axis ? 2 : 3}};
      TestTensor tensor(CLEAVE_F32, shape, axes);
      EXPECT_EQ(readAll(tensor, program.program, view), expected)
          << text << " cut in dim " << cut << " by axis " << axis;
    }
}

using Index = std::vector<int64_t>;

TEST(Rearrange, ReordersSplitsAndJoins) {
  expectNumbers("a b -> b a", {7, 5}, {5, 7},
                [](const Index &i) { return i[1] * 5 + i[0]; });
  expectNumbers("a b c -> c a b", {4, 3, 7}, {7, 4, 3},
                [](const Index &i) { return (i[1] * 3 + i[2]) * 7 + i[0]; });
  // [out, in] with heads in out, as Hugging Face stores projections.
  expectNumbers(
      "(kv group head) model -> model kv group head", {12, 7}, {7, 2, 3, 2},
      [](const Index &i) { return ((i[1] * 3 + i[2]) * 2 + i[3]) * 7 + i[0]; });
  expectNumbers("a b c -> (a b) c", {2, 3, 5}, {6, 5},
                [](const Index &i) { return i[0] * 5 + i[1]; });
  // Joined in another order than they lie: no one distance between indices.
  expectNumbers("a b c -> c (b a)", {2, 3, 5}, {5, 6}, [](const Index &i) {
    return (i[1] % 2 * 3 + i[1] / 2) * 5 + i[0];
  });
  expectNumbers("a b c -> (b a) c", {2, 3, 5}, {6, 5}, [](const Index &i) {
    return (i[0] % 2 * 3 + i[0] / 2) * 5 + i[1];
  });
  expectNumbers("(a b) -> (b a)", {6}, {6},
                [](const Index &i) { return i[0] % 2 * 3 + i[0] / 2; },
                {{"a", 2}});
  expectNumbers("a 1 b -> b 1 1 a", {4, 1, 3}, {3, 1, 1, 4},
                [](const Index &i) { return i[3] * 3 + i[0]; });
  // Larger than a tile, in both directions.
  expectNumbers("a b -> b a", {131, 70}, {70, 131},
                [](const Index &i) { return i[1] * 70 + i[0]; });
}

/// The map that docs/howto/load-weights.md shows: 4 KV heads of 2 queries, 3 to
/// a head, 8 to a row.
TEST(Rearrange, TheMapOfTheManual) {
  WeightMap map;
  Status status =
      map.open(std::string(CLEAVE_EXAMPLES) + "/weight-maps/llama.json");
  ASSERT_TRUE(status.ok()) << status.message();
  struct Case {
    std::string weight, tensor;
    std::vector<int64_t> stored, shape;
  };
  const std::string layer = "model.layers.12.";
  for (const Case &c :
       {Case{"embed", "model.embed_tokens.weight", {5, 8}, {5, 8}},
        Case{"norm", "model.norm.weight", {8}, {8}},
        Case{"layer12.attn.wq",
             layer + "self_attn.q_proj.weight",
             {24, 8},
             {8, 4, 2, 3}},
        Case{"layer12.attn.wv",
             layer + "self_attn.v_proj.weight",
             {12, 8},
             {8, 4, 3}},
        Case{"layer12.attn.wo",
             layer + "self_attn.o_proj.weight",
             {8, 24},
             {4, 2, 3, 8}},
        Case{"layer12.mlp.gate",
             layer + "mlp.gate_proj.weight",
             {20, 8},
             {8, 20}},
        Case{"layer12.input_layernorm",
             layer + "input_layernorm.weight",
             {8},
             {8}}}) {
    WeightSource source = map.find(c.weight);
    EXPECT_EQ(source.name, c.tensor);
    GlobalArray view;
    if (source.dims) {
      status = source.dims->apply(Counting(c.stored).array, c.shape, &view);
      EXPECT_TRUE(status.ok()) << status.message();
    } else {
      EXPECT_EQ(c.stored, c.shape);
    }
  }
  EXPECT_TRUE(map.isUnused("model.layers.0.self_attn.rotary_emb.inv_freq"));
}

TEST(Rearrange, PicksOneIndex) {
  expectNumbers("(three head) d -> d head", {12, 5}, {5, 4},
                [](const Index &i) { return (2 * 4 + i[1]) * 5 + i[0]; }, {},
                {{"three", 2}});
  expectNumbers("(head three) d -> head d", {12, 5}, {4, 5},
                [](const Index &i) { return (i[0] * 3 + 1) * 5 + i[1]; }, {},
                {{"three", 1}});
}

//===----------------------------------------------------------------------===//
// In place
//===----------------------------------------------------------------------===//

/// Whether rank 0's block of such a tensor lies in an array ready to be used.
bool isInPlace(TestTensor tensor, const GlobalArray &array) {
  TestProgram program({3});
  Mesh mesh(program.program);
  BlockRange range = BlockRange::of(tensor.tensor, mesh, 0);
  char *place = blockInPlace(tensor.tensor, range, array);
  EXPECT_TRUE(!place || place == array.data);
  return place != nullptr;
}

TEST(InPlace, RowsOfTheSameType) {
  using Axes = std::vector<std::vector<CleaveAxisRef>>;
  Axes rows = {{{0, 1, 3}}, {}}, columns = {{}, {{0, 1, 3}}}, whole = {{}, {}};
  Counting even({6, 4});
  EXPECT_TRUE(isInPlace({CLEAVE_F32, {6, 4}, rows}, even.array));
  EXPECT_TRUE(isInPlace({CLEAVE_F32, {6, 4}, whole}, even.array));
  EXPECT_FALSE(isInPlace({CLEAVE_F32, {6, 4}, columns}, even.array));
  EXPECT_FALSE(isInPlace({CLEAVE_BF16, {6, 4}, rows}, even.array));
  GlobalArray odd = even.array; // not aligned to an element
  odd.data += 2;
  EXPECT_FALSE(isInPlace({CLEAVE_F32, {6, 4}, rows}, odd));
  odd = even.array;
  odd.swapBytes = true;
  EXPECT_FALSE(isInPlace({CLEAVE_F32, {6, 4}, rows}, odd));
  // Short blocks need padding.
  Counting seven({7, 4});
  TestTensor uneven(CLEAVE_F32, {7, 4}, rows);
  EXPECT_TRUE(isInPlace(uneven, seven.array));
  TestProgram program({3});
  BlockRange last = BlockRange::of(uneven.tensor, Mesh(program.program), 2);
  EXPECT_EQ(blockInPlace(uneven.tensor, last, seven.array), nullptr);
  GlobalArray booleans = even.array;
  booleans.dtype = CLEAVE_I1;
  booleans.setSteps(false);
  EXPECT_FALSE(isInPlace({CLEAVE_I1, {6, 4}, rows}, booleans));
}

TEST(InPlace, TransposedIsCopied) {
  Rearrange rearrange;
  ASSERT_TRUE(rearrange.parse("a b -> b a", {}, {}).ok());
  Counting stored({4, 6});
  GlobalArray view;
  ASSERT_TRUE(rearrange.apply(stored.array, {6, 4}, &view).ok());
  EXPECT_FALSE(isInPlace({CLEAVE_F32, {6, 4}, {{}, {}}}, view));
  // A dim of one element may stand anywhere.
  Counting row({1, 6});
  ASSERT_TRUE(rearrange.apply(row.array, {6, 1}, &view).ok());
  EXPECT_TRUE(isInPlace({CLEAVE_F32, {6, 1}, {{}, {}}}, view));
}

} // namespace

//===- WeightsTest.cpp - Weights in checkpoints ---------------------------===//
#include "runtime/io/Weights.h"
#include "test/runtime/Files.h"
#include "test/runtime/TestProgram.h"
#include "test/runtime/TestTensor.h"

#include <gtest/gtest.h>

using namespace cleave::rt;
using namespace cleave::rt::test;

namespace {

//===----------------------------------------------------------------------===//
// Safetensors
//===----------------------------------------------------------------------===//

struct WeightFile : testing::Test {
  TemporaryFolder folder;
  std::string path = folder.path("w.safetensors");

  /// The message without the path.
  std::string error(const std::string &bytes) {
    writeFile(path, bytes);
    Safetensors files;
    std::string message = files.add(path).message();
    std::string prefix = "cannot read '" + path + "': ";
    return message.rfind(prefix, 0) == 0 ? message.substr(prefix.size())
                                         : message;
  }
};

TEST_F(WeightFile, ReadsOnlyTheBlock) {
  std::vector<float> data(24);
  std::iota(data.begin(), data.end(), 1.0f);
  writeFile(path,
            safetensors("{\"__metadata__\":{\"a\":\"b\"},\"t\":{\"dtype\":"
                        "\"F32\",\"shape\":[4,6],\"data_offsets\":[4,100]}"
                        "}   ",
                        "abcd" + bytesOf(data)));
  Safetensors files;
  Status status = files.add(path);
  ASSERT_TRUE(status.ok()) << status.message();
  TestProgram program({2, 2});
  TestTensor t(CLEAVE_F32, {4, 6}, {{{1, 1, 2}}, {{0, 1, 2}}});
  GlobalArray array;
  EXPECT_TRUE(bindWeight(files, {}, t.tensor, &array).ok());
  roundTrip(t, program.program, array, 24);
}

TEST_F(WeightFile, DamagedHeaders) {
  EXPECT_EQ(error("1234"), "the header of 0 bytes does not fit the file of 4; "
                           "it may be cut off or no safetensors file");
  EXPECT_EQ(error(std::string("\xff\0\0\0\0\0\0\0{}", 10)),
            "the header of 255 bytes does not fit the file of 10; it may be "
            "cut off or no safetensors file");
  EXPECT_EQ(error(std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10)),
            "the header of 18446744073709551615 bytes does not fit the file of "
            "10; it may be cut off or no safetensors file");
  EXPECT_EQ(error(safetensors("[1, 2]", "")), "the header is no JSON object");
  EXPECT_EQ(error(safetensors("{\"t\": ", "")), "the header is no JSON object");
  EXPECT_EQ(error(safetensors("{\"t\":{\"dtype\":\"F32\",\"shape\":[1]}}", "")),
            "tensor 't' needs a 'dtype', a 'shape' and two 'data_offsets'");
  EXPECT_EQ(error(safetensors("{\"t\":{\"dtype\":\"F32\",\"shape\":[-1],"
                              "\"data_offsets\":[0,4]}}",
                              "1234")),
            "tensor 't' needs a 'dtype', a 'shape' and two 'data_offsets'");
  EXPECT_EQ(error(safetensors("{\"t\":{\"dtype\":\"F32\",\"shape\":[2],"
                              "\"data_offsets\":[0,8]}}",
                              "1234")),
            "tensor 't' lies at bytes 0 to 8, the file has 4; it may be cut "
            "off");
  EXPECT_EQ(error(safetensors("{\"t\":{\"dtype\":\"F32\",\"shape\":[2],"
                              "\"data_offsets\":[0,4]}}",
                              "1234")),
            "tensor 't' of 2 f32 takes 4 bytes in the file, which do not fit "
            "that shape");
  EXPECT_EQ(error(safetensors("{\"t\":{\"dtype\":\"I8\",\"shape\":[3],"
                              "\"data_offsets\":[0,3]},\"u\":{\"dtype\":\"I8\","
                              "\"shape\":[2],\"data_offsets\":[2,4]}}",
                              "1234")),
            "tensors 't' and 'u' overlap");
  EXPECT_EQ(error(safetensors("{\"t\":{\"dtype\":\"I8\",\"shape\":[1],"
                              "\"data_offsets\":[0,1]},\"t\":{\"dtype\":\"I8\","
                              "\"shape\":[1],\"data_offsets\":[1,2]}}",
                              "1234")),
            "tensor 't' occurs twice");
  EXPECT_EQ(error(safetensors("{\"t\":{\"dtype\":\"F8_E4M3\",\"shape\":[1],"
                              "\"data_offsets\":[0,1]}}",
                              "1")),
            ""); // only an error when it is asked for
}

TEST_F(WeightFile, WrongWeights) {
  writeFile(path, safetensors("{\"mlp.up\":{\"dtype\":\"F32\",\"shape\":[2,2],"
                              "\"data_offsets\":[0,16]},\"q\":{\"dtype\":"
                              "\"F8_E4M3\",\"shape\":[1],\"data_offsets\":[16,"
                              "17]}}",
                              std::string(17, '\0')));
  Safetensors files;
  ASSERT_TRUE(files.add(path).ok());
  auto error = [&](const char *name, uint32_t dtype,
                   std::vector<int64_t> shape) {
    size_t rank = shape.size();
    TestTensor t(dtype, std::move(shape),
                 std::vector<std::vector<CleaveAxisRef>>(rank));
    t.tensor.storeName = name;
    GlobalArray array;
    return bindWeight(files, {}, t.tensor, &array).message();
  };
  EXPECT_EQ(error("mlp.down", CLEAVE_F32, {2, 2}),
            "weight 'mlp.down' is not in the weight file; it has 'mlp.up', "
            "'q'");
  EXPECT_EQ(error("mlp.up", CLEAVE_F32, {2, 3}),
            "weight 'mlp.up' has shape 2x2 in the file, the program expects "
            "2x3");
  EXPECT_EQ(error("mlp.up", CLEAVE_F64, {2, 2}),
            "weight 'mlp.up' has type f32 in the file, the program expects "
            "f64");
  EXPECT_EQ(error("q", CLEAVE_F32, {1}),
            "weight 'q' has type F8_E4M3 in the file, the program expects f32");
  EXPECT_EQ(error("mlp.up", CLEAVE_BF16, {2, 2}), "");
}

TEST_F(WeightFile, SameNameInTwoFiles) {
  std::string one = folder.path("1"), two = folder.path("2");
  for (const std::string &file : {one, two})
    writeFile(file, safetensors("{\"t\":{\"dtype\":\"I8\",\"shape\":[1],"
                                "\"data_offsets\":[0,1]}}",
                                "1"));
  Safetensors files;
  ASSERT_TRUE(files.add(one).ok());
  EXPECT_EQ(files.add(two).message(), "cannot read '" + two +
                                          "': tensor 't' is also in another "
                                          "weight file");
}

//===----------------------------------------------------------------------===//
// Checkpoints
//===----------------------------------------------------------------------===//

/// A tensor of a test's file: f32 unless said otherwise.
struct Stored {
  std::string name;
  std::vector<int64_t> shape;
  std::string dtype = "F32";
  std::string bytes = "";
};

/// Tensors without bytes get the numbers 1, 2, 3, ... .
std::string fileOf(const std::vector<Stored> &tensors) {
  std::string header, data;
  for (const Stored &t : tensors) {
    size_t count = 1;
    std::string shape;
    for (int64_t size : t.shape) {
      shape += (shape.empty() ? "" : ",") + std::to_string(size);
      count *= size_t(size);
    }
    std::vector<float> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 1.0f);
    std::string bytes = t.bytes.empty() ? bytesOf(numbers) : t.bytes;
    header += (header.empty() ? "{\"" : ",\"") + t.name + "\":{\"dtype\":\"" +
              t.dtype + "\",\"shape\":[" + shape + "],\"data_offsets\":[" +
              std::to_string(data.size()) + "," +
              std::to_string(data.size() + bytes.size()) + "]}";
    data += bytes;
  }
  return safetensors(header + "}", data);
}

struct Checkpoint : testing::Test {
  TemporaryFolder folder;
  std::string root = folder.root() + "/";

  void put(const std::string &name, const std::string &bytes) {
    writeFile(folder.path(name), bytes);
  }
  /// Names of the tensors that a path leads to, or the error.
  std::string namesAt(const std::string &path) {
    Safetensors files;
    Status status = addCheckpoint(folder.path(path), &files);
    if (!status.ok())
      return status.message();
    std::string text;
    for (const std::string &name : files.names())
      text += (text.empty() ? "" : " ") + name;
    return text;
  }
};

TEST_F(Checkpoint, FileIndexAndFolder) {
  put("model-1.safetensors", fileOf({{"a", {2}}, {"b", {3}}}));
  put("model-2.safetensors", fileOf({{"c", {4}}}));
  put("model.safetensors.index.json",
      "{\"metadata\": {\"total_size\": 36}, \"weight_map\": {\"a\": "
      "\"model-1.safetensors\", \"b\": \"model-1.safetensors\", \"c\": "
      "\"model-2.safetensors\"}}");
  EXPECT_EQ(namesAt("model-1.safetensors"), "a b");
  EXPECT_EQ(namesAt("model.safetensors.index.json"), "a b c");
  EXPECT_EQ(namesAt(""), "a b c");
  // The single file is what a folder with both means.
  put("model.safetensors", fileOf({{"d", {1}}}));
  EXPECT_EQ(namesAt(""), "d");
}

TEST_F(Checkpoint, FolderWithOneFileOfAnotherName) {
  put("weights.safetensors", fileOf({{"a", {2}}}));
  EXPECT_EQ(namesAt(""), "a");
  put("other.safetensors", fileOf({{"b", {2}}}));
  EXPECT_EQ(namesAt(""), "'" + root +
                             "' holds no 'model.safetensors' and no "
                             "'model.safetensors.index.json'; of other "
                             ".safetensors files it has 'other.safetensors', "
                             "'weights.safetensors'");
}

TEST_F(Checkpoint, EmptyFolder) {
  EXPECT_EQ(namesAt(""), "'" + root +
                             "' holds no 'model.safetensors' and no "
                             "'model.safetensors.index.json'; of other "
                             ".safetensors files it has none");
}

TEST_F(Checkpoint, WrongIndices) {
  std::string no = "': it is no JSON object with a \"weight_map\" from tensors "
                   "to files";
  for (const char *text : {"", "[]", "{}", "{\"weight_map\": []}",
                           "{\"weight_map\": {\"a\": 1}}"}) {
    put("i.json", text);
    EXPECT_EQ(namesAt("i.json"), "cannot read '" + root + "i.json" + no);
  }
  put("i.json", "{\"weight_map\": {\"a\": \"gone.safetensors\"}}");
  EXPECT_EQ(namesAt("i.json"),
            "'" + root +
                "i.json' has 'a' in the shard 'gone.safetensors': "
                "cannot open '" +
                root + "gone.safetensors': no such file or directory");
  put("one.safetensors", fileOf({{"b", {1}}}));
  put("i.json", "{\"weight_map\": {\"a\": \"one.safetensors\"}}");
  EXPECT_EQ(namesAt("i.json"), "'" + root +
                                   "i.json' has 'a' in the shard "
                                   "'one.safetensors', which has 'b'");
}

//===----------------------------------------------------------------------===//
// All weights of a program
//===----------------------------------------------------------------------===//

/// A program with these weights, on three ranks that cut the first dim.
struct WeightProgram : Checkpoint {
  TestProgram program{{3}};
  std::vector<std::unique_ptr<TestTensor>> tensors;
  std::vector<CleaveTensor> table;
  std::vector<std::string> names;
  Weights weights;

  void add(const std::string &name, std::vector<int64_t> shape,
           uint32_t dtype = CLEAVE_F32) {
    names.reserve(16);
    names.push_back(name);
    std::vector<std::vector<CleaveAxisRef>> axes(shape.size());
    axes[0] = {{0, 1, 3}};
    tensors.push_back(std::make_unique<TestTensor>(dtype, shape, axes));
    tensors.back()->tensor.storeName = names.back().c_str();
    table.push_back(tensors.back()->tensor);
    program.program.weights = table.data();
    program.program.numWeights = int64_t(table.size());
  }
  std::string open(bool strict = false, const std::string &map = "") {
    WeightOptions options;
    options.paths = {folder.path("w.safetensors")};
    options.strict = strict;
    if (!map.empty()) {
      put("map.json", map);
      options.mapPath = folder.path("map.json");
    }
    weights = Weights();
    return weights.open(program.program, options).message();
  }
  std::vector<float> read(size_t weight) {
    return readAll(*tensors[weight], program.program,
                   weights.array(int64_t(weight)));
  }
};

TEST_F(WeightProgram, AllMissingOnesAreNamed) {
  put("w.safetensors", fileOf({{"up.weight", {7}}, {"b", {7}}}));
  for (const char *name : {"up", "b", "down", "gate"})
    add(name, {7});
  EXPECT_EQ(open(), "weight 'up' is not in the weight file; it has 'b', "
                    "'up.weight'; missing are also 'down', 'gate'");
}

TEST_F(WeightProgram, SurplusIsAWarningOrAnError) {
  put("w.safetensors", fileOf({{"a", {7}}, {"b", {1}}, {"c", {1}}}));
  add("a", {7});
  EXPECT_EQ(open(), "");
  std::string text = "2 tensors of the weight file are not used: 'b', 'c'";
  EXPECT_EQ(weights.warnings(), std::vector<std::string>{text});
  EXPECT_EQ(open(/*strict=*/true),
            text + "; \"unused\" in --weights-map can name them");
  EXPECT_EQ(open(true, "{\"unused\": [\"c\"]}"),
            "1 tensor of the weight file is not used: 'b'; \"unused\" in "
            "--weights-map can name it");
  EXPECT_EQ(open(true, "{\"unused\": [\"c\", \"b*\"]}"), "");
  EXPECT_TRUE(weights.warnings().empty());
}

TEST_F(WeightProgram, RoundingIsSaid) {
  put("w.safetensors", fileOf({{"a", {7}}, {"b", {7}}}));
  add("a", {7}, CLEAVE_BF16);
  add("b", {7}, CLEAVE_F32);
  EXPECT_EQ(open(), "");
  EXPECT_EQ(
      weights.warnings(),
      std::vector<std::string>{"1 weight is rounded from f32 to bf16: 'a'"});
  EXPECT_EQ(read(0), read(1)); // 1 to 7
}

TEST_F(WeightProgram, ARuleWithoutWeight) {
  put("w.safetensors", fileOf({{"a", {7}}}));
  add("a", {7});
  std::string map = "{\"weights\": {\"layer{i}\": \"l{i}\", \"a\": \"a\"}}";
  std::string text = "--weights-map '" + root +
                     "map.json' names 'layer{i}', "
                     "which no weight is called; the program has 'a'";
  EXPECT_EQ(open(false, map), "");
  EXPECT_EQ(weights.warnings(), std::vector<std::string>{text});
  EXPECT_EQ(open(true, map), text);
}

TEST_F(WeightProgram, OtherNamesTransposedAndTied) {
  put("w.safetensors",
      fileOf({{"model.layers.0.up.weight", {3, 7}}, {"model.embed", {7, 2}}}));
  add("layer0.up", {7, 3});
  add("embed", {7, 2});
  add("head", {7, 2}, CLEAVE_F32);
  EXPECT_EQ(open(true,
                 "{\"weights\": {\"layer{i}.*\": {\"from\": "
                 "\"model.layers.{i}.*.weight\", \"dims\": \"o i -> i o\"},"
                 "\"embed\": \"model.embed\", \"head\": \"model.embed\"}}"),
            "");
  std::vector<float> transposed;
  for (int row = 0; row < 7; ++row)
    for (int column = 0; column < 3; ++column)
      transposed.push_back(float(column * 7 + row + 1));
  EXPECT_EQ(read(0), transposed);
  EXPECT_EQ(read(1), read(2));
  EXPECT_EQ(weights.warnings(),
            std::vector<std::string>{
                "weights 'embed' and 'head' are one tensor, stored twice; "
                "'cleave build --weights-map' joins them"});
  // Joined, the second name is gone, which is no mistake of the map.
  table.pop_back();
  program.program.numWeights = 2;
  EXPECT_EQ(open(true,
                 "{\"weights\": {\"layer{i}.*\": {\"from\": "
                 "\"model.layers.{i}.*.weight\", \"dims\": \"o i -> i o\"},"
                 "\"embed\": \"model.embed\", \"head\": \"model.embed\"}}"),
            "");
  EXPECT_TRUE(weights.warnings().empty());
}

TEST_F(WeightProgram, EveryFloatBecomesEveryFloat) {
  std::string f16, bf16;
  for (int i = 1; i <= 14; ++i) {
    uint16_t half = floatToF16(float(i)), brain = floatToBf16(float(i));
    f16 += std::string(reinterpret_cast<char *>(&half), 2);
    bf16 += std::string(reinterpret_cast<char *>(&brain), 2);
  }
  std::vector<float> expected(14);
  std::iota(expected.begin(), expected.end(), 1.0f);
  for (uint32_t dtype : {CLEAVE_F32, CLEAVE_F16, CLEAVE_BF16})
    for (const Stored &stored :
         {Stored{"t", {7, 2}}, Stored{"t", {7, 2}, "F16", f16},
          Stored{"t", {7, 2}, "BF16", bf16}}) {
      put("w.safetensors", fileOf({stored}));
      tensors.clear();
      table.clear();
      add("t", {7, 2}, dtype);
      ASSERT_EQ(open(), "");
      EXPECT_EQ(read(0), expected) << stored.dtype << " " << dtype;
    }
}

TEST_F(WeightProgram, StackedLayers) {
  put("w.safetensors", fileOf({{"l.0.w", {2, 3}},
                               {"l.1.w", {2, 3}},
                               {"l.2.w", {2, 3}},
                               {"l.3.w", {2, 3}}}));
  add("w", {4, 3, 2});
  EXPECT_EQ(open(true, "{\"weights\": {\"w\": {\"from\": \"l.{i}.w\", "
                       "\"dims\": \"i a b -> i b a\"}}}"),
            "");
  std::vector<float> expected;
  for (int layer = 0; layer < 4; ++layer)
    for (float value : {1, 4, 2, 5, 3, 6})
      expected.push_back(value);
  EXPECT_EQ(read(0), expected);
  EXPECT_EQ(open(true, "{\"weights\": {\"w\": \"m.{i}.w\"}}"),
            "weight 'w', which is 'm.{i}.w', is not in the weight file; it has "
            "'l.0.w', 'l.1.w', 'l.2.w', 'l.3.w'");
  put("w.safetensors", fileOf({{"l.0.w", {4, 3}}, {"l.1.w", {3, 4}}}));
  EXPECT_EQ(open(true, "{\"weights\": {\"w\": \"l.{i}.w\"}}"),
            "weight 'w': tensors 'l.0.w' and 'l.1.w' have different shapes or "
            "types, but are one weight");
}

TEST_F(WeightProgram, RowsOfAFusedTensor) {
  put("w.safetensors", fileOf({{"qkv", {10, 2}}}));
  add("k", {7, 2});
  EXPECT_EQ(open(true, "{\"weights\": {\"k\": {\"from\": \"qkv\", \"rows\": "
                       "[3, 10]}}}"),
            "");
  std::vector<float> expected(14);
  std::iota(expected.begin(), expected.end(), 7.0f);
  EXPECT_EQ(read(0), expected);
  EXPECT_EQ(open(true, "{\"weights\": {\"k\": {\"from\": \"qkv\", \"rows\": "
                       "[4, 11]}}}"),
            "weight 'k': tensor 'qkv' has shape 10x2, which has no rows 4 to "
            "11");
}

TEST_F(WeightProgram, TransposedShapeGetsAHint) {
  put("w.safetensors", fileOf({{"a", {2, 7}}}));
  add("a", {7, 2});
  EXPECT_EQ(open(),
            "weight 'a' has shape 2x7 in the file, the program expects 7x2; "
            "\"dims\": \"a b -> b a\" in --weights-map reads it transposed");
}

} // namespace

//===- EmbedTest.cpp - The C interface ------------------------------------===//
// Calls the program of matmul.c as a server would.
#include "cleave/runtime.h"
#include "runtime/io/Pack.h"
#include "test/runtime/Files.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

using namespace cleave::rt::test;

namespace {

struct Floats {
  std::vector<int64_t> shape;
  std::vector<float> data;

  CleaveArray named(const char *name) {
    return {name, CLEAVE_F32, int64_t(shape.size()), shape.data(), data.data()};
  }
};

struct Embed : testing::TestWithParam<CleaveWorldKind> {
  CleaveModel *model = nullptr;
  CleaveWorld *world = nullptr;
  CleaveError error = {};
  Floats x{{3, 6}, std::vector<float>(18)}, w{{6, 4}, std::vector<float>(24)};
  Floats y{{3, 4}, std::vector<float>(12)};

  void SetUp() override {
    for (size_t i = 0; i < x.data.size(); ++i)
      x.data[i] = float(i);
    for (size_t i = 0; i < w.data.size(); ++i)
      w.data[i] = float(i % 5);
    ASSERT_EQ(
        cleave_model_open(cleave_programs, cleave_num_programs, &model, &error),
        0)
        << error.message;
    ASSERT_EQ(cleave_world_create(model, GetParam(), 10, &world, &error), 0)
        << error.message;
  }
  void TearDown() override {
    cleave_world_destroy(world);
    cleave_model_close(model);
  }
  int32_t load() {
    CleaveArray weight = w.named("mlp.w");
    return cleave_world_load_arrays(world, &weight, 1, &error);
  }
  int32_t forward() {
    CleaveArray in = x.named("x"), out = y.named("y");
    return cleave_world_call(world, "forward", &in, 1, &out, 1, &error);
  }
  void expectProduct() {
    for (size_t i = 0; i < 3; ++i)
      for (size_t j = 0; j < 4; ++j) {
        float sum = 0;
        for (size_t k = 0; k < 6; ++k)
          sum += x.data[i * 6 + k] * w.data[k * 4 + j];
        EXPECT_EQ(y.data[i * 4 + j], sum);
      }
  }
};

TEST_P(Embed, CallsKeepTheState) {
  ASSERT_EQ(load(), 0) << error.message;
  for (int i = 0; i < 3; ++i) {
    x.data[0] += 1;
    ASSERT_EQ(forward(), 0) << error.message;
    expectProduct();
  }
  int64_t count = 0, one = 1;
  CleaveArray state = {"count", CLEAVE_I64, 1, &one, &count};
  ASSERT_EQ(cleave_world_get_state(world, &state, &error), 0) << error.message;
  EXPECT_EQ(count, 3);
  count = 40;
  ASSERT_EQ(cleave_world_set_state(world, &state, &error), 0) << error.message;
  ASSERT_EQ(forward(), 0);
  ASSERT_EQ(cleave_world_get_state(world, &state, &error), 0);
  EXPECT_EQ(count, 41);
}

TEST_P(Embed, ConvertsAtTheEdge) {
  ASSERT_EQ(load(), 0);
  Floats a{{5, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}}, b{{5, 2}, {}};
  b.data.resize(10);
  CleaveArray in = a.named("a"), out = b.named("b");
  ASSERT_EQ(cleave_world_call(world, "cast", &in, 1, &out, 1, &error), 0)
      << error.message;
  EXPECT_EQ(a.data, b.data);
}

TEST_P(Embed, WrongArguments) {
  EXPECT_EQ(forward(), CLEAVE_FAILED_PRECONDITION);
  EXPECT_STREQ(error.message, "the weights are not loaded yet");
  EXPECT_EQ(cleave_world_load_arrays(world, nullptr, 0, &error),
            CLEAVE_NOT_FOUND);
  EXPECT_STREQ(error.message, "weight 'mlp.w' (6x4xf32) is missing");
  ASSERT_EQ(load(), 0);
  CleaveArray in = x.named("z"), out = y.named("y");
  EXPECT_EQ(cleave_world_call(world, "forward", &in, 1, &out, 1, &error),
            CLEAVE_NOT_FOUND);
  EXPECT_STREQ(error.message, "unknown input 'z'; known are 'x'");
  in = y.named("x");
  EXPECT_EQ(cleave_world_call(world, "forward", &in, 1, &out, 1, &error),
            CLEAVE_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message,
               "input 'x' has shape 3x4, the program expects 3x6");
  EXPECT_EQ(cleave_world_call(world, "backward", &in, 1, &out, 1, &error),
            CLEAVE_NOT_FOUND);
  EXPECT_STREQ(error.message,
               "unknown entry 'backward'; known are 'forward', 'cast'");
  const char *path = "/nowhere/w.safetensors";
  EXPECT_EQ(cleave_world_load_files(world, &path, 1, &error), CLEAVE_NOT_FOUND);
  EXPECT_STREQ(error.message, "cannot open '/nowhere/w.safetensors': no such "
                              "file or directory");
  EXPECT_EQ(forward(), 0); // mistakes do not harm the world
  expectProduct();
}

/// A checkpoint with the weight transposed, the map that says so, and a pack.
struct WeightFolder {
  TemporaryFolder folder;
  std::string path = folder.path("w.safetensors"),
              map = folder.path("map.json"), packs = folder.path("packs");

  explicit WeightFolder(const std::vector<float> &w) {
    std::vector<float> stored;
    for (size_t column = 0; column < 4; ++column)
      for (size_t row = 0; row < 6; ++row)
        stored.push_back(w[row * 4 + column]);
    writeFile(path, safetensors("{\"v\":{\"dtype\":\"F32\",\"shape\":[4,6],"
                                "\"data_offsets\":[0,96]}}",
                                bytesOf(stored)));
    writeFile(map, "{\"weights\": {\"mlp.*\": {\"from\": \"v\", \"dims\": "
                   "\"a b -> b a\"}}}");
    for (int64_t rank : {0, 1}) {
      std::vector<float> area(18);
      std::copy_n(w.begin() + rank * 12, 12, area.begin());
      cleave::rt::PackWriter writer;
      const CleaveProgram &program = *cleave_programs[0];
      EXPECT_TRUE(writer.open(program, packs, rank, "t", false).ok());
      EXPECT_TRUE(
          writer.write(program, reinterpret_cast<char *>(area.data())).ok());
      EXPECT_TRUE(writer.commit().ok());
    }
  }
};

TEST_P(Embed, LoadsByAMap) {
  WeightFolder files(w.data);
  const char *path = files.path.c_str();
  CleaveWeightFiles given = {&path, 1, files.map.c_str(), nullptr, 1};
  ASSERT_EQ(cleave_world_load_weights(world, &given, &error), 0)
      << error.message;
  ASSERT_EQ(forward(), 0) << error.message;
  expectProduct();
}

TEST_P(Embed, LoadsAgain) {
  std::vector<float> other(24, 3.0f);
  TemporaryFolder folder;
  std::string first = folder.path("1"), second = folder.path("2");
  std::string header = "{\"mlp.w\":{\"dtype\":\"F32\",\"shape\":[6,4],"
                       "\"data_offsets\":[0,96]}}   "; // used in place
  ASSERT_EQ(header.size() % 4, 0u);
  writeFile(first, safetensors(header, bytesOf(w.data)));
  writeFile(second, safetensors(header, bytesOf(other)));
  for (const std::string &file : {second, first}) {
    const char *path = file.c_str();
    ASSERT_EQ(cleave_world_load_files(world, &path, 1, &error), 0)
        << error.message;
    ASSERT_EQ(forward(), 0) << error.message;
  }
  expectProduct();
  w.data = other; // from memory, which is copied
  ASSERT_EQ(load(), 0) << error.message;
  ASSERT_EQ(forward(), 0) << error.message;
  expectProduct();
}

TEST_P(Embed, LoadsPacks) {
  WeightFolder files(w.data);
  const char *path = files.path.c_str();
  CleaveWeightFiles given = {&path, 1, nullptr, files.packs.c_str(), 0};
  EXPECT_EQ(cleave_world_load_weights(world, &given, &error),
            CLEAVE_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "packed weights take the place of files; give "
                              "one of them");
  given.packed = nullptr; // first out of a file, in place where it may be
  std::string plain = files.folder.path("plain");
  writeFile(plain, safetensors("{\"mlp.w\":{\"dtype\":\"F32\",\"shape\":[6,4],"
                               "\"data_offsets\":[0,96]}}   ",
                               std::string(96, '\0')));
  path = plain.c_str();
  ASSERT_EQ(cleave_world_load_weights(world, &given, &error), 0)
      << error.message;
  given.numPaths = 0;
  given.packed = files.packs.c_str();
  ASSERT_EQ(cleave_world_load_weights(world, &given, &error), 0)
      << error.message;
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(forward(), 0) << error.message;
    expectProduct();
  }
  bool maps = GetParam() == CLEAVE_THREADS;
  EXPECT_EQ(load(), maps ? CLEAVE_FAILED_PRECONDITION : CLEAVE_OK);
  EXPECT_STREQ(error.message,
               maps ? "the ranks use mapped packs, which cannot be replaced; "
                      "make another world"
                    : "");
}

TEST_P(Embed, MeasuresRanks) {
  ASSERT_EQ(load(), 0);
  ASSERT_EQ(forward(), 0);
  EXPECT_EQ(cleave_world_usage(world, 0).numComms, 0); // not asked for
  cleave_world_measure(world);
  for (int call = 1; call <= 3; ++call) {
    ASSERT_EQ(forward(), 0) << error.message;
    for (int64_t rank : {0, 1}) {
      CleaveUsage usage = cleave_world_usage(world, rank);
      EXPECT_EQ(usage.numComms, call);
      EXPECT_EQ(usage.sentBytes, call * 48); // 2 halves of 3x4 f32
      EXPECT_GT(usage.commSeconds, 0);
      EXPECT_GT(usage.seconds, usage.commSeconds);
    }
  }
  cleave_world_measure(world);
  EXPECT_EQ(cleave_world_usage(world, 1).sentBytes, 0);
  EXPECT_EQ(cleave_world_usage(world, 2).numComms, 0); // no such rank
}

INSTANTIATE_TEST_SUITE_P(Kinds, Embed,
                         testing::Values(CLEAVE_THREADS, CLEAVE_PROCESSES),
                         [](const auto &info) {
                           return info.param == CLEAVE_THREADS ? "Threads"
                                                               : "Processes";
                         });

TEST(EmbedModel, DamagedTables) {
  CleaveProgram program = *cleave_programs[0];
  const CleaveProgram *table[] = {&program};
  CleaveModel *model;
  CleaveError error;
  program.version = 99;
  EXPECT_EQ(cleave_model_open(table, 1, &model, &error),
            CLEAVE_INVALID_ARGUMENT);
  std::string ours = std::to_string(CLEAVE_ABI_VERSION);
  EXPECT_EQ(error.message,
            "the program was compiled for version 99 of the runtime "
            "interface, this runtime has version " +
                ours + "; build both with the same Cleave");
  program.magic = 0;
  EXPECT_EQ(cleave_model_open(table, 1, &model, &error),
            CLEAVE_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "program 0 of the table does not start with the "
                              "magic number of Cleave; the object is damaged");
  EXPECT_EQ(cleave_model_open(table, 0, &model, &error),
            CLEAVE_INVALID_ARGUMENT);
  EXPECT_STREQ(error.message, "the executable holds no program");
}

} // namespace

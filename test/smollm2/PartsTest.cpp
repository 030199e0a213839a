//===- PartsTest.cpp - The parts of generate that need no model -----------===//
#include "examples/smollm2/Config.h"
#include "examples/smollm2/Sampler.h"
#include "examples/smollm2/Tokenizer.h"
#include <cstdio>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <unistd.h>

using namespace llama;

namespace {
/// A file that goes with the test.
class File {
public:
  explicit File(const std::string &content)
      : path(testing::TempDir() + "parts-" + std::to_string(getpid()) +
             ".json") {
    std::ofstream(path) << content;
  }
  ~File() { std::remove(path.c_str()); }
  std::string path;
};

Json goodConfig() {
  return {{"model_type", "llama"},       {"hidden_act", "silu"},
          {"hidden_size", 576},          {"intermediate_size", 1536},
          {"num_hidden_layers", 30},     {"num_attention_heads", 9},
          {"num_key_value_heads", 3},    {"max_position_embeddings", 8192},
          {"rms_norm_eps", 1e-5},        {"rope_theta", 1e5},
          {"tie_word_embeddings", true}, {"vocab_size", 49152},
          {"eos_token_id", {2, 0}},      {"torch_dtype", "float32"}};
}

/// The message for a configuration with these fields, without the file's name.
std::string messageFor(const Json &changes) {
  Json json = goodConfig();
  json.update(changes);
  File file(json.dump());
  std::vector<std::string> warnings;
  auto config = readConfig(file.path, warnings);
  std::string text = config ? "" : config.error();
  for (const std::string &warning : warnings)
    text += warning;
  if (size_t at = text.find("': "); at != std::string::npos)
    text = text.substr(at + 3);
  return text;
}

TEST(Config, ReadsSizes) {
  File file(goodConfig().dump());
  std::vector<std::string> warnings;
  auto config = readConfig(file.path, warnings);
  ASSERT_TRUE(config) << config.error();
  EXPECT_EQ(config->headDim, 64);
  EXPECT_EQ(config->group(), 3);
  EXPECT_EQ(config->endTokens, (std::vector<int32_t>{2, 0}));
  EXPECT_FALSE(config->ropeScaling);
  EXPECT_TRUE(warnings.empty());
}

TEST(Config, NamesWhatIsWrong) {
  EXPECT_EQ(messageFor({{"hidden_size", nullptr}}), "has no 'hidden_size'");
  EXPECT_EQ(messageFor({{"hidden_size", "576"}}),
            "'hidden_size' is \"576\"; a positive integer is wanted");
  EXPECT_EQ(messageFor({{"num_hidden_layers", 0}}),
            "'num_hidden_layers' is 0; a positive integer is wanted");
  EXPECT_EQ(messageFor({{"rms_norm_eps", -1}}),
            "'rms_norm_eps' is -1; a positive number is wanted");
  EXPECT_EQ(messageFor({{"num_key_value_heads", 4}}),
            "has 9 heads of queries, which 4 heads of keys do not divide");
  EXPECT_EQ(
      messageFor({{"num_attention_heads", 7}, {"num_key_value_heads", 7}}),
      "has 7 heads, which do not divide 'hidden_size' 576, and no "
      "'head_dim'");
  EXPECT_EQ(messageFor({{"head_dim", 63}}),
            "has heads of 63 elements; rope turns pairs");
  EXPECT_EQ(messageFor({{"model_type", "qwen2"}}),
            "'model_type' is \"qwen2\"; only \"llama\" is computed here");
  EXPECT_EQ(messageFor({{"hidden_act", "gelu"}}),
            "'hidden_act' is \"gelu\"; only \"silu\" is computed here");
  EXPECT_EQ(messageFor({{"attention_bias", true}}),
            "'attention_bias' is true; only false is computed here");
  EXPECT_EQ(messageFor({{"tie_word_embeddings", 1}}),
            "'tie_word_embeddings' is 1; true or false is wanted");
  EXPECT_EQ(messageFor({{"eos_token_id", "</s>"}}),
            "'eos_token_id' is \"</s>\"; an integer or a list of them is "
            "wanted");
  EXPECT_EQ(messageFor({{"logit_softcap", 30}}),
            "the field 'logit_softcap' is not known here, and ignored");
}

TEST(Config, ReadsRopeScaling) {
  Json scaling = {{"rope_type", "llama3"},
                  {"factor", 8},
                  {"low_freq_factor", 1},
                  {"high_freq_factor", 4},
                  {"original_max_position_embeddings", 8192}};
  EXPECT_EQ(messageFor({{"rope_scaling", scaling}}), "");
  scaling["high_freq_factor"] = 1;
  EXPECT_EQ(messageFor({{"rope_scaling", scaling}}),
            "'rope_scaling': has a 'high_freq_factor' that is not above its "
            "'low_freq_factor'");
  EXPECT_EQ(messageFor({{"rope_scaling", {{"type", "linear"}}}}),
            "rope of type \"linear\" is not computed here; 'default' and "
            "'llama3' are");
  EXPECT_EQ(messageFor({{"rope_scaling", {{"factor", 2}}}}),
            "'rope_scaling' has no 'rope_type'");
  EXPECT_EQ(messageFor({{"rope_scaling", 2}}),
            "'rope_scaling' is 2; an object or null is wanted");
}

TEST(Config, NamesBadFiles) {
  std::vector<std::string> warnings;
  EXPECT_EQ(readConfig("/no/such/config.json", warnings).error(),
            "cannot read '/no/such/config.json': No such file or directory");
  File text("{\"hidden_size\": ");
  EXPECT_EQ(readConfig(text.path, warnings).error(),
            "'" + text.path + "' is not JSON");
  File list("[]");
  EXPECT_EQ(readConfig(list.path, warnings).error(),
            "'" + list.path + "' is not a JSON object");
}

/// Bytes, "ab", "abc" and "bc", and one special token.
Json goodTokenizer() {
  Json vocabulary = {{"a", 0}, {"b", 1},  {"c", 2},  {"\u0120", 3},
                     {"1", 4}, {"ab", 5}, {"bc", 6}, {"abc", 7}};
  return {{"added_tokens", {{{"id", 8}, {"content", "<end>"}}}},
          {"pre_tokenizer",
           {{"type", "ByteLevel"},
            {"add_prefix_space", false},
            {"use_regex", true}}},
          {"model",
           {{"type", "BPE"},
            {"vocab", vocabulary},
            {"merges", {"b c", {"a", "bc"}, "a b"}}}}};
}

using Tokens = std::vector<int32_t>;

TEST(Tokenizer, JoinsWhatWasLearnedFirst) {
  File file(goodTokenizer().dump());
  auto tokenizer = Tokenizer::load(file.path);
  ASSERT_TRUE(tokenizer) << tokenizer.error();
  EXPECT_EQ(tokenizer->encode("abc"), (Tokens{7})); // b c first, then a bc
  EXPECT_EQ(tokenizer->encode("ab"), (Tokens{5}));
  EXPECT_EQ(tokenizer->encode("bcab abc"), (Tokens{6, 5, 3, 7}));
  EXPECT_EQ(tokenizer->encode("abcabc"), (Tokens{7, 7}));
  EXPECT_EQ(tokenizer->encode(""), Tokens{});
  EXPECT_EQ(tokenizer->encode("a<end>b"), (Tokens{0, 8, 1}));
  EXPECT_EQ(tokenizer->decode(3), " ");
  EXPECT_EQ(tokenizer->decode(8), "<end>");
  EXPECT_EQ(tokenizer->decode(9), "");
  EXPECT_EQ(tokenizer->find("<end>"), 8);
  EXPECT_EQ(tokenizer->find("<begin>"), -1);
}

TEST(Tokenizer, LongWordsTakeNoQuadraticTime) {
  File file(goodTokenizer().dump());
  auto tokenizer = Tokenizer::load(file.path);
  ASSERT_TRUE(tokenizer);
  std::string word;
  for (int i = 0; i < 200000; ++i)
    word += "abc";
  EXPECT_EQ(tokenizer->encode(word), Tokens(200000, 7));
}

std::string tokenizerMessage(const Json &changes) {
  Json json = goodTokenizer();
  json.merge_patch(changes);
  File file(json.dump());
  auto tokenizer = Tokenizer::load(file.path);
  std::string text = tokenizer ? "" : tokenizer.error();
  size_t at = text.find("': ");
  return at == std::string::npos ? text : text.substr(at + 3);
}

TEST(Tokenizer, NamesWhatItDoesNotDo) {
  EXPECT_EQ(tokenizerMessage({{"model", {{"type", "Unigram"}}}}),
            "the model is of type 'Unigram'; 'BPE' is wanted");
  EXPECT_EQ(tokenizerMessage({{"model", {{"merges", nullptr}}}}),
            "the model has no 'vocab' or no 'merges'");
  EXPECT_EQ(tokenizerMessage({{"model", {{"merges", {"a d"}}}}}),
            "the merge \"a d\" is not of two tokens to a third");
  EXPECT_EQ(tokenizerMessage({{"model", {{"vocab", {{"a", 99}}}}}}),
            "the token 'a' has the id 99 of 8");
  EXPECT_EQ(tokenizerMessage({{"normalizer", {{"type", "NFC"}}}}),
            "it normalizes text, which is not done here");
  EXPECT_EQ(tokenizerMessage({{"pre_tokenizer", {{"add_prefix_space", true}}}}),
            "the pre-tokenizer 'ByteLevel' adds a space, which is not done "
            "here");
  EXPECT_EQ(tokenizerMessage({{"pre_tokenizer",
                               {{"type", "Metaspace"},
                                {"add_prefix_space", nullptr},
                                {"use_regex", nullptr}}}}),
            "the pre-tokenizer {\"type\":\"Metaspace\"} is not known here; "
            "known are Sequence, ByteLevel, Digits, and Split with a regex "
            "that isolates its matches");
}

TEST(Sampler, TakesTheLikeliest) {
  float logits[] = {1, 5, 5, -2};
  EXPECT_EQ(Sampler(0, 1, 3).choose(logits, 4), 1); // of equal ones the first
}

TEST(Sampler, KeepsToTheLikeliest) {
  // Probabilities 0.64, 0.24, 0.09, 0.03.
  float logits[] = {2, 4, 3, 1};
  std::map<int32_t, int> counts;
  Sampler sampler(1, 0.8, 7);
  for (int i = 0; i < 4000; ++i)
    ++counts[sampler.choose(logits, 4)];
  EXPECT_EQ(counts.size(), 2u); // 0.64 alone is less than 0.8
  EXPECT_NEAR(counts[1] / 4000.0, 0.731, 0.03);
  EXPECT_NEAR(counts[2] / 4000.0, 0.269, 0.03);
}

TEST(Sampler, FollowsItsSeed) {
  std::vector<float> logits(1000);
  for (size_t i = 0; i < logits.size(); ++i)
    logits[i] = float(i % 13) / 7;
  auto draw = [&](uint64_t seed) {
    Sampler sampler(0.8, 0.95, seed);
    Tokens tokens;
    for (int i = 0; i < 20; ++i)
      tokens.push_back(sampler.choose(logits.data(), 1000));
    return tokens;
  };
  EXPECT_EQ(draw(1), draw(1));
  EXPECT_NE(draw(1), draw(2));
}
} // namespace

//===- Config.cpp - The architecture of a Llama-family model --------------===//
#include "Config.h"
#include <algorithm>
#include <array>
#include <string_view>

using namespace llama;
using cleave::Expected;

namespace {
/// Takes fields out of a JSON object, and keeps the first problem.
class Fields {
public:
  Fields(const Json &json, std::string where)
      : json(json), where(std::move(where)) {}

  const Json *find(const char *name) {
    known.push_back(name);
    auto found = json.find(name);
    return found == json.end() || found->is_null() ? nullptr : &*found;
  }
  int64_t count(const char *name, std::optional<int64_t> otherwise = {}) {
    const Json *value = find(name);
    if (!value && otherwise)
      return *otherwise;
    if (!value)
      fail(std::string("has no '") + name + "'");
    else if (!value->is_number_integer() || value->get<int64_t>() < 1)
      fail(std::string("'") + name + "' is " + value->dump() +
           "; a positive integer is wanted");
    else
      return value->get<int64_t>();
    return 1;
  }
  double number(const char *name, std::optional<double> otherwise = {}) {
    const Json *value = find(name);
    if (!value && otherwise)
      return *otherwise;
    if (!value)
      fail(std::string("has no '") + name + "'");
    else if (!value->is_number() || value->get<double>() <= 0)
      fail(std::string("'") + name + "' is " + value->dump() +
           "; a positive number is wanted");
    else
      return value->get<double>();
    return 1;
  }
  /// A field that may only say one thing.
  void expect(const char *name, const Json &wanted) {
    const Json *value = find(name);
    if (value && *value != wanted)
      fail(std::string("'") + name + "' is " + value->dump() + "; only " +
           wanted.dump() + " is computed here");
  }
  bool flag(const char *name, bool otherwise) {
    const Json *value = find(name);
    if (value && !value->is_boolean())
      fail(std::string("'") + name + "' is " + value->dump() +
           "; true or false is wanted");
    return value && value->is_boolean() ? value->get<bool>() : otherwise;
  }
  void fail(const std::string &what) {
    if (problem.empty())
      problem = where + ": " + what;
  }
  /// Names that nobody asked for.
  std::vector<std::string> unknown() const {
    std::vector<std::string> names;
    for (auto &[name, value] : json.items())
      if (std::find(known.begin(), known.end(), name) == known.end())
        names.push_back(name);
    return names;
  }

  std::string problem;

private:
  const Json &json;
  std::string where;
  std::vector<std::string_view> known;
};
} // namespace

/// Fields that say nothing about what is computed.
static constexpr std::array kHarmless = {
    "_name_or_path", "architectures",          "attention_dropout",
    "dtype",         "initializer_range",      "is_llama_config",
    "pad_token_id",  "pretraining_tp",         "rope_interleaved",
    "torch_dtype",   "transformers.js_config", "transformers_version",
    "use_cache"};

static RopeScaling readScaling(const Json &json, const std::string &where,
                               std::string &problem) {
  Fields fields(json, where + ": 'rope_scaling'");
  RopeScaling scaling{fields.number("factor"), fields.number("low_freq_factor"),
                      fields.number("high_freq_factor"),
                      fields.count("original_max_position_embeddings")};
  if (scaling.highFrequencyFactor <= scaling.lowFrequencyFactor)
    fields.fail("has a 'high_freq_factor' that is not above its "
                "'low_freq_factor'");
  problem = fields.problem;
  return scaling;
}

/// 'rope_theta' and 'rope_scaling', which newer files join in
/// 'rope_parameters'.
static void readRope(Fields &fields, const std::string &path, Config &config) {
  const Json *scaling = fields.find("rope_scaling");
  const Json *joined = fields.find("rope_parameters");
  config.ropeTheta = fields.number("rope_theta", joined ? 1.0 : 10000.0);
  if (joined && joined->is_object()) {
    config.ropeTheta = joined->value("rope_theta", config.ropeTheta);
    scaling = joined;
  }
  if (!scaling)
    return;
  if (!scaling->is_object())
    return fields.fail("'rope_scaling' is " + scaling->dump() +
                       "; an object or null is wanted");
  for (const char *name : {"rope_type", "type"}) {
    auto type = scaling->find(name);
    if (type == scaling->end())
      continue;
    if (*type == "default")
      return;
    if (*type != "llama3")
      return fields.fail("rope of type " + type->dump() +
                         " is not computed here; 'default' and 'llama3' are");
    std::string problem;
    config.ropeScaling = readScaling(*scaling, path, problem);
    if (!problem.empty())
      fields.problem = problem;
    return;
  }
  if (scaling != joined)
    fields.fail("'rope_scaling' has no 'rope_type'");
}

static void readTokens(Fields &fields, Config &config) {
  if (const Json *begin = fields.find("bos_token_id");
      begin && begin->is_number_integer())
    config.beginToken = begin->get<int32_t>();
  const Json *end = fields.find("eos_token_id");
  if (!end)
    return;
  for (const Json &token : end->is_array() ? *end : Json::array({*end})) {
    if (!token.is_number_integer())
      return fields.fail("'eos_token_id' is " + end->dump() +
                         "; an integer or a list of them is wanted");
    config.endTokens.push_back(token.get<int32_t>());
  }
}

static void checkSizes(Fields &fields, const Config &config, bool hasHeadDim) {
  if (config.heads % config.kvHeads)
    fields.fail("has " + std::to_string(config.heads) +
                " heads of queries, which " + std::to_string(config.kvHeads) +
                " heads of keys do not divide");
  if (!hasHeadDim && config.hidden % config.heads)
    fields.fail("has " + std::to_string(config.heads) +
                " heads, which do not divide 'hidden_size' " +
                std::to_string(config.hidden) + ", and no 'head_dim'");
  if (config.headDim % 2)
    fields.fail("has heads of " + std::to_string(config.headDim) +
                " elements; rope turns pairs");
}

Expected<Config> llama::readConfig(const std::string &path,
                                   std::vector<std::string> &warnings) {
  Expected<Json> json = readJson(path);
  if (!json)
    return Expected<Config>::failure(json.error());
  if (!json->is_object())
    return Expected<Config>::failure("'" + path + "' is not a JSON object");
  std::string where = "'" + path + "'";
  Fields fields(*json, where);
  for (const char *name : kHarmless)
    fields.find(name);
  fields.expect("model_type", "llama");
  fields.expect("hidden_act", "silu");
  fields.expect("attention_bias", false);
  fields.expect("mlp_bias", false);
  fields.expect("sliding_window", nullptr);
  Config config{};
  config.hidden = fields.count("hidden_size");
  config.ffn = fields.count("intermediate_size");
  config.layers = fields.count("num_hidden_layers");
  config.heads = fields.count("num_attention_heads");
  config.kvHeads = fields.count("num_key_value_heads", config.heads);
  bool hasHeadDim = fields.find("head_dim");
  config.headDim = fields.count("head_dim", config.hidden / config.heads);
  config.vocabulary = fields.count("vocab_size");
  config.context = fields.count("max_position_embeddings");
  config.epsilon = fields.number("rms_norm_eps");
  config.tied = fields.flag("tie_word_embeddings", false);
  readRope(fields, where, config);
  readTokens(fields, config);
  checkSizes(fields, config, hasHeadDim);
  if (!fields.problem.empty())
    return Expected<Config>::failure(fields.problem);
  for (const std::string &name : fields.unknown())
    warnings.push_back(where + ": the field '" + name +
                       "' is not known here, and ignored");
  return config;
}

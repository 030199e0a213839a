//===- Session.cpp - A compiled model that texts grow in ------------------===//
#include "Session.h"
#include <algorithm>

using namespace llama;
using cleave::Array;
using cleave::Expected;

std::string llama::checkSizes(const Config &config, const Sizes &sizes) {
  if (sizes.context > config.context)
    return "a context of " + std::to_string(sizes.context) +
           " tokens is wanted; the model was made for " +
           std::to_string(config.context);
  if (sizes.chunk < 1 || sizes.context % sizes.chunk)
    return "a context of " + std::to_string(sizes.context) +
           " tokens is no multiple of the chunk of " +
           std::to_string(sizes.chunk);
  return "";
}

Expected<Session> Session::open(const std::string &folder, const Config &config,
                                const Sizes &sizes, const Cut &cut) {
  if (std::string wrong = checkSizes(config, sizes); !wrong.empty())
    return Expected<Session>::failure(wrong);
  cleave::Model model = makeModel(config, sizes);
  auto program = cleave::compile(model, makePlan(config, cut));
  if (!program)
    return Expected<Session>::failure(program.error());
  std::string wrong = program->load({.paths = {folder},
                                     .map = SMOLLM2_WEIGHTS_MAP,
                                     .packed = "",
                                     .strict = true});
  if (!wrong.empty())
    return Expected<Session>::failure(wrong);
  Session session(config, sizes);
  session.compiled = *program;
  return session;
}

std::string Session::call(const char *entry, std::vector<int32_t> &tokens,
                          int64_t length, int32_t *last) {
  for (int32_t token : tokens)
    if (token < 0 || token >= config.vocabulary)
      return "the token " + std::to_string(token) +
             " is not one of the model's " + std::to_string(config.vocabulary);
  if (place + length > sizes.context)
    return "the text has " + std::to_string(place + length) +
           " tokens, but the context is " + std::to_string(sizes.context);
  int32_t position = int32_t(place);
  std::vector<Array> inputs = {
      Array::of("tokens", {sizes.samples, length}, tokens.data()),
      Array::of("position", {}, &position)};
  if (last)
    inputs.push_back(Array::of("last", {}, last));
  return compiled->run(
      entry, inputs,
      {Array::of("logits", {sizes.samples, 1, config.vocabulary},
                 scores.data())});
}

std::string Session::prefill(const std::vector<int32_t> &tokens) {
  if (tokens.empty())
    return "the prompt has no tokens";
  int64_t count = int64_t(tokens.size());
  if (count > sizes.context)
    return "the prompt has " + std::to_string(count) +
           " tokens, but the context is " + std::to_string(sizes.context);
  place = 0;
  for (int64_t begin = 0; begin < count; begin += sizes.chunk) {
    int64_t used = std::min(sizes.chunk, count - begin);
    // The end of the last chunk is never seen: what follows it in the text is
    // written over it before anything looks there.
    std::vector<int32_t> chunk;
    for (int64_t sample = 0; sample < sizes.samples; ++sample)
      for (int64_t i = 0; i < sizes.chunk; ++i)
        chunk.push_back(i < used ? tokens[begin + i] : 0);
    int32_t last = int32_t(used - 1);
    place = begin;
    std::string wrong = call("prefill", chunk, sizes.chunk, &last);
    if (!wrong.empty())
      return wrong;
  }
  place = count;
  return "";
}

std::string Session::decode(const std::vector<int32_t> &tokens) {
  std::vector<int32_t> row = tokens;
  std::string wrong = call("decode", row, 1, nullptr);
  place += wrong.empty();
  return wrong;
}

//===- Session.h - A compiled model that texts grow in ---------*- C++ -*-===//
#ifndef CLEAVE_EXAMPLES_SMOLLM2_SESSION_H
#define CLEAVE_EXAMPLES_SMOLLM2_SESSION_H

#include "Llama.h"
#include <string>
#include <vector>

namespace llama {

/// The entries of `makeModel` behind one place in the cache. All samples stand
/// at the same place.
class Session {
public:
  /// Compiles, starts the ranks, and loads the weights of a folder with
  /// config.json and model.safetensors. The text of a failure names what is
  /// wrong.
  static cleave::Expected<Session> open(const std::string &folder,
                                        const Config &config,
                                        const Sizes &sizes, const Cut &cut);

  /// Reads the tokens, the same for each sample, from the begin of the cache;
  /// `logits()` are those after the last one. "" or what is wrong.
  std::string prefill(const std::vector<int32_t> &tokens);
  /// Reads one token for each sample behind what was read before.
  std::string decode(const std::vector<int32_t> &tokens);

  /// Of the next token, for each sample one after the other.
  const std::vector<float> &logits() const { return scores; }
  /// Tokens in the cache.
  int64_t length() const { return place; }
  cleave::Program &program() { return *compiled; }

private:
  Session(const Config &config, const Sizes &sizes)
      : config(config), sizes(sizes),
        scores(sizes.samples * config.vocabulary) {}
  std::string call(const char *entry, std::vector<int32_t> &tokens,
                   int64_t length, int32_t *last);

  Config config;
  Sizes sizes;
  std::optional<cleave::Program> compiled;
  std::vector<float> scores;
  int64_t place = 0;
};

/// Checks what an option says against the model. "" or what is wrong.
std::string checkSizes(const Config &config, const Sizes &sizes);

} // namespace llama

#endif // CLEAVE_EXAMPLES_SMOLLM2_SESSION_H

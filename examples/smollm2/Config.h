//===- Config.h - The architecture of a Llama-family model -----*- C++ -*-===//
#ifndef CLEAVE_EXAMPLES_SMOLLM2_CONFIG_H
#define CLEAVE_EXAMPLES_SMOLLM2_CONFIG_H

#include "Json.h"
#include <optional>
#include <vector>

namespace llama {

/// Llama 3's stretching of slow rotations to longer contexts (Dubey et al.
/// 2024).
struct RopeScaling {
  double factor, lowFrequencyFactor, highFrequencyFactor;
  int64_t originalContext;
};

/// What a config.json of Hugging Face says of a model.
struct Config {
  int64_t hidden, ffn, layers, heads, kvHeads, headDim, vocabulary, context;
  double epsilon, ropeTheta;
  std::optional<RopeScaling> ropeScaling;
  bool tied; // the head's weight is the embedding's
  int32_t beginToken = -1;
  std::vector<int32_t> endTokens;

  /// Heads of queries that share one of keys.
  int64_t group() const { return heads / kvHeads; }
};

/// Reads config.json. Fields that it needs and lacks, that contradict each
/// other, or that ask for what the model here does not do, are errors; those
/// that it does not know are named in `warnings`.
cleave::Expected<Config> readConfig(const std::string &path,
                                    std::vector<std::string> &warnings);

} // namespace llama

#endif // CLEAVE_EXAMPLES_SMOLLM2_CONFIG_H

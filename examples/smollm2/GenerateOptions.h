//===- GenerateOptions.h - The command line of generate --------*- C++ -*-===//
#ifndef CLEAVE_EXAMPLES_SMOLLM2_GENERATEOPTIONS_H
#define CLEAVE_EXAMPLES_SMOLLM2_GENERATEOPTIONS_H

#include "Llama.h"
#include <string>
#include <vector>

namespace llama {

struct GenerateOptions {
  std::string folder;
  std::string prompt = "The capital of France is";
  bool chat = false;
  int64_t numTokens = 64;
  double temperature = 0, topP = 1;
  uint64_t seed = 0;
  Sizes sizes;
  Cut cut;
  bool quiet = false; // no figures
  bool showTokens = false;
  /// Words for the compiler's own command line: build, plan, explain, check.
  std::vector<std::string> compiler;
};

/// Exit status 2 with a message on stderr, or nothing.
std::optional<int> parseOptions(int argc, char **argv,
                                GenerateOptions *options);

} // namespace llama

#endif // CLEAVE_EXAMPLES_SMOLLM2_GENERATEOPTIONS_H

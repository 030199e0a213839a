//===- Sampler.h - The choice of the next token ----------------*- C++ -*-===//
#ifndef CLEAVE_EXAMPLES_SMOLLM2_SAMPLER_H
#define CLEAVE_EXAMPLES_SMOLLM2_SAMPLER_H

#include <cstdint>
#include <random>
#include <vector>

namespace llama {

/// Chooses tokens by their logits: the likeliest, or by chance among the
/// likeliest that together have the probability `topP` (Holtzman et al. 2020).
class Sampler {
public:
  /// A temperature of 0 always takes the likeliest. Equal seeds choose alike on
  /// every machine.
  Sampler(double temperature, double topP, uint64_t seed)
      : temperature(temperature), topP(topP), random(seed) {}

  /// Of `count` logits.
  int32_t choose(const float *logits, int64_t count);

private:
  double temperature, topP;
  std::mt19937_64 random;
  std::vector<std::pair<float, int32_t>> order;
};

} // namespace llama

#endif // CLEAVE_EXAMPLES_SMOLLM2_SAMPLER_H

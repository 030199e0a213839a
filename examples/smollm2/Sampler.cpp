//===- Sampler.cpp - The choice of the next token -------------------------===//
#include "Sampler.h"
#include <algorithm>
#include <cmath>

using namespace llama;

int32_t Sampler::choose(const float *logits, int64_t count) {
  const float *best = std::max_element(logits, logits + count);
  if (temperature <= 0)
    return int32_t(best - logits);
  // What is e^-20 less likely than the best adds nothing to the sum.
  float least = *best - float(20 * temperature);
  order.clear();
  for (int64_t i = 0; i < count; ++i)
    if (logits[i] >= least)
      order.push_back({logits[i], int32_t(i)});
  std::sort(order.begin(), order.end(), [](const auto &a, const auto &b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  std::vector<double> weights;
  double sum = 0, kept = 0;
  for (auto [logit, token] : order) {
    weights.push_back(std::exp((logit - *best) / temperature));
    sum += weights.back();
  }
  size_t candidates = 0;
  while (candidates < order.size() && kept < topP * sum)
    kept += weights[candidates++];
  // 53 random bits are a number in [0, 1).
  double draw = double(random() >> 11) * 0x1p-53 * kept;
  for (size_t i = 0; i < candidates; ++i)
    if ((draw -= weights[i]) < 0)
      return order[i].second;
  return order[candidates ? candidates - 1 : 0].second;
}

//===- Llama.h - The Llama architecture in the DSL -------------*- C++ -*-===//
#ifndef CLEAVE_EXAMPLES_SMOLLM2_LLAMA_H
#define CLEAVE_EXAMPLES_SMOLLM2_LLAMA_H

#include "Config.h"
#include <cleave/cleave.h>

namespace llama {

/// What of a model is compiled.
struct Sizes {
  int64_t samples = 1; // sequences that grow side by side
  int64_t context = 512;
  int64_t chunk = 64; // tokens of a call of `prefill`; divides the context
  /// Of the matrices and the cache: f32, bf16 or f16. All else is f32.
  cleave::Element type = cleave::bf16;
};

/// Two entries that share weights and the cache of keys and values:
///
///   prefill(tokens [samples, chunk], position, last) -> logits [samples, 1, V]
///   decode(tokens [samples, 1], position)            -> logits [samples, 1, V]
///
/// `position` is the place of the first token; `last` is the one of the chunk
/// whose logits are wanted. The names of weights are those of
/// weights-map.json.
cleave::Model makeModel(const Config &config, const Sizes &sizes);

/// How a model is cut.
struct Cut {
  int64_t dp = 1, tp = 1;
  bool sequence = false;  // the values between the matrices, over tp as well
  bool wholeHead = false; // the vocabulary on every rank
};

/// Sequences over dp; heads, the inner dim of the perceptrons and the
/// vocabulary over tp. More ranks than heads of keys share those heads, where
/// the numbers allow.
cleave::Plan makePlan(const Config &config, const Cut &cut);

} // namespace llama

#endif // CLEAVE_EXAMPLES_SMOLLM2_LLAMA_H

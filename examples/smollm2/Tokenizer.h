//===- Tokenizer.h - Byte-level BPE from a tokenizer.json ------*- C++ -*-===//
// The tokenizer of the GPT-2 family (Sennrich et al. 2016; Radford et al.
// 2019): text is split by patterns, and in each piece the pair of neighbours
// that was learned first is joined until none is left.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_EXAMPLES_SMOLLM2_TOKENIZER_H
#define CLEAVE_EXAMPLES_SMOLLM2_TOKENIZER_H

#include "Json.h"
#include <cstdint>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace llama {

class Tokenizer {
public:
  /// From a file of the `tokenizers` library, or what in it is not known here.
  static cleave::Expected<Tokenizer> load(const std::string &path);

  /// Tokens of a text in UTF-8. Names of special tokens in it become those
  /// tokens.
  std::vector<int32_t> encode(std::string_view text) const;
  /// The bytes of one token: perhaps a part of a character. Empty if the id is
  /// out of range.
  std::string decode(int32_t token) const;
  /// The id of a token by its name, or -1.
  int32_t find(const std::string &token) const;
  int64_t size() const { return int64_t(texts.size()); }

private:
  class Pattern;

  std::string readModel(const Json &model);
  std::string readSpecial(const Json &tokens);
  std::string readSplitters(const Json &preTokenizer);
  std::string addPattern(const std::string &regex);
  void split(std::string_view text, size_t pattern,
             std::vector<int32_t> &out) const;
  void encodePiece(std::string_view piece, std::vector<int32_t> &out) const;

  /// Applied one after the other: matches, and what is between them, are the
  /// pieces of the next.
  std::vector<std::shared_ptr<const Pattern>> patterns;
  std::vector<std::string> texts;               // bytes of each token
  std::unordered_map<std::string, int32_t> ids; // of bytes
  std::vector<std::pair<std::string, int32_t>> special;
  std::unordered_map<std::string, int32_t> names;
  struct Merge {
    int32_t rank, result;
  };
  std::unordered_map<uint64_t, Merge> merges; // by left << 32 | right
  int32_t byteTokens[256] = {};
  bool wholeWordsFirst = false;
};

} // namespace llama

#endif // CLEAVE_EXAMPLES_SMOLLM2_TOKENIZER_H

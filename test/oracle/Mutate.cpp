//===- Mutate.cpp - Damaged model text ------------------------------------===//
#include "test/oracle/Case.h"
#include "test/oracle/Scalar.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"

namespace cleave::oracle {

/// Words, numbers, strings, and single other characters.
static std::vector<std::string> tokenize(llvm::StringRef text) {
  std::vector<std::string> tokens;
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    auto isWord = [](char c) { return llvm::isAlnum(c) || c == '_'; };
    if (llvm::isDigit(text[i]))
      while (end < text.size() && llvm::isDigit(text[end]))
        ++end;
    else if (isWord(text[i]))
      while (end < text.size() && isWord(text[end]) &&
             !(text[end - 1] == 'x' && llvm::isDigit(text[end])))
        ++end;
    tokens.push_back(text.slice(i, end).str());
    i = end;
  }
  return tokens;
}

static std::string otherNumber(Random &random, llvm::StringRef number) {
  static const char *const extremes[] = {"0",
                                         "1",
                                         "2",
                                         "7",
                                         "4294967296",
                                         "9223372036854775807",
                                         "99999999999999999999"};
  int64_t value;
  if (random.chance(50) || number.getAsInteger(10, value))
    return random.pick(extremes);
  return std::to_string(std::max<int64_t>(0, value + random.between(-2, 2)));
}

static std::string otherWord(Random &random,
                             const std::vector<std::string> &tokens) {
  static const char *const words[] = {"?",
                                      "*",
                                      "-1",
                                      "i1",
                                      "f32",
                                      "bf16",
                                      "index",
                                      "tensor",
                                      "sum",
                                      "partial",
                                      "@m",
                                      "@x",
                                      "\"a\"",
                                      "\"z\"",
                                      "{}",
                                      "[]",
                                      "true",
                                      "none",
                                      "affine_map<(d0) -> (d0)>",
                                      "\"a\":(1)2",
                                      "p1",
                                      "memref",
                                      "reduction",
                                      "parallel",
                                      "vector",
                                      "tuple<f32>",
                                      "NaN",
                                      "replicated"};
  if (random.chance(50))
    return random.pick(words);
  return tokens[random.below(tokens.size())];
}

std::string mutate(llvm::StringRef text, uint64_t seed) {
  Random random(seed ^ 0xabcdef);
  std::vector<std::string> tokens = tokenize(text);
  int count = random.between(1, 4);
  for (int i = 0; i < count && !tokens.empty(); ++i) {
    size_t at = random.below(tokens.size());
    // Blanks are dull; most mutations go to what has a meaning.
    for (int tries = 0; tries < 8 && llvm::isSpace(tokens[at][0]); ++tries)
      at = random.below(tokens.size());
    bool isNumber = llvm::isDigit(tokens[at][0]);
    switch (random.below(5)) {
    case 0:
      tokens.erase(tokens.begin() + at);
      break;
    case 1:
      std::swap(tokens[at], tokens[random.below(tokens.size())]);
      break;
    case 2:
      tokens.insert(tokens.begin() + at, tokens[at]);
      break;
    default:
      tokens[at] = isNumber ? otherNumber(random, tokens[at])
                            : otherWord(random, tokens);
    }
  }
  return llvm::join(tokens, "");
}

} // namespace cleave::oracle

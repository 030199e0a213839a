//===- Tokenizer.cpp - Byte-level BPE from a tokenizer.json ---------------===//
#include "Tokenizer.h"
#include <algorithm>
#include <queue>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

using namespace llama;
using cleave::Expected;

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

/// A regular expression on UTF-8 with the classes of Unicode. Bytes that are no
/// UTF-8 match nothing.
class Tokenizer::Pattern {
public:
  explicit Pattern(const std::string &regex) {
    int number = 0;
    PCRE2_SIZE at = 0;
    code = pcre2_compile(
        reinterpret_cast<PCRE2_SPTR>(regex.data()), regex.size(),
        PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF, &number, &at, nullptr);
    if (!code) {
      PCRE2_UCHAR text[256];
      pcre2_get_error_message(number, text, sizeof text);
      problem = "the pattern '" + regex +
                "': " + reinterpret_cast<const char *>(text) + " at " +
                std::to_string(at);
      return;
    }
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE); // else it is interpreted
    match = pcre2_match_data_create_from_pattern(code, nullptr);
  }
  ~Pattern() {
    pcre2_match_data_free(match);
    pcre2_code_free(code);
  }
  Pattern(const Pattern &) = delete;

  /// Calls `piece` for all of `text` in order.
  template <typename F> void split(std::string_view text, F piece) const {
    size_t done = 0;
    auto emit = [&](size_t end) {
      if (end > done)
        piece(text.substr(done, end - done));
      done = std::max(done, end);
    };
    for (size_t at = 0; at < text.size();) {
      int found = pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()),
                              text.size(), at, 0, match, nullptr);
      if (found < 0)
        break;
      const PCRE2_SIZE *range = pcre2_get_ovector_pointer(match);
      emit(range[0]);
      emit(range[1]);
      at = std::max<size_t>(range[1], range[0] + 1);
    }
    emit(text.size());
  }

  std::string problem;

private:
  pcre2_code *code = nullptr;
  pcre2_match_data *match = nullptr;
};

//===----------------------------------------------------------------------===//
// Bytes as characters
//===----------------------------------------------------------------------===//

/// In tokenizer.json each byte is written as one printable character: itself,
/// or, of those that are not printable, the i-th is U+0100 + i.
static std::vector<std::string> charactersOfBytes() {
  auto isPrintable = [](int byte) {
    return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
  };
  std::vector<std::string> characters;
  int hidden = 0;
  for (int byte = 0; byte < 256; ++byte) {
    int code = isPrintable(byte) ? byte : 0x100 + hidden++;
    std::string utf8;
    if (code < 0x80)
      utf8 += char(code);
    else
      utf8 = {char(0xC0 | code >> 6), char(0x80 | (code & 0x3F))};
    characters.push_back(utf8);
  }
  return characters;
}

/// The bytes that `text` writes, or the text itself if it writes none.
static std::string
bytesOf(const std::string &text,
        const std::unordered_map<std::string, char> &byteOf) {
  std::string bytes;
  for (size_t i = 0; i < text.size();) {
    size_t length = (text[i] & 0x80) ? 2 : 1;
    auto found = byteOf.find(text.substr(i, length));
    if (found == byteOf.end())
      return text;
    bytes += found->second;
    i += length;
  }
  return bytes;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

static std::string stringAt(const Json &json, const char *name) {
  auto found = json.is_object() ? json.find(name) : json.end();
  return json.is_object() && found != json.end() && found->is_string()
             ? found->get<std::string>()
             : std::string();
}

static bool flagAt(const Json &json, const char *name, bool otherwise) {
  auto found = json.find(name);
  return found != json.end() && found->is_boolean() ? found->get<bool>()
                                                    : otherwise;
}

static uint64_t pairOf(int32_t left, int32_t right) {
  return uint64_t(uint32_t(left)) << 32 | uint32_t(right);
}

/// Both sides of a merge: "a b" or ["a", "b"].
static bool sidesOf(const Json &merge, std::string &left, std::string &right) {
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
      merge[1].is_string()) {
    left = merge[0].get<std::string>();
    right = merge[1].get<std::string>();
    return true;
  }
  if (!merge.is_string())
    return false;
  std::string text = merge.get<std::string>();
  size_t space = text.find(' ');
  if (space == std::string::npos)
    return false;
  left = text.substr(0, space);
  right = text.substr(space + 1);
  return true;
}

std::string Tokenizer::readModel(const Json &model) {
  if (std::string type = stringAt(model, "type"); type != "BPE")
    return "the model is of type '" + type + "'; 'BPE' is wanted";
  auto vocab = model.find("vocab"), list = model.find("merges");
  if (vocab == model.end() || !vocab->is_object() || list == model.end() ||
      !list->is_array())
    return "the model has no 'vocab' or no 'merges'";
  wholeWordsFirst = flagAt(model, "ignore_merges", false);
  std::vector<std::string> characters = charactersOfBytes();
  std::unordered_map<std::string, char> byteOf;
  for (int byte = 0; byte < 256; ++byte)
    byteOf[characters[byte]] = char(byte);
  texts.resize(vocab->size());
  for (auto &[text, id] : vocab->items()) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 ||
        id.get<int64_t>() >= int64_t(texts.size()))
      return "the token '" + text + "' has the id " + id.dump() + " of " +
             std::to_string(texts.size());
    int32_t number = id.get<int32_t>();
    names[text] = number;
    texts[number] = bytesOf(text, byteOf);
    ids[texts[number]] = number;
  }
  for (int byte = 0; byte < 256; ++byte) {
    auto found = names.find(characters[byte]);
    byteTokens[byte] = found == names.end() ? -1 : found->second;
  }
  for (const Json &merge : *list) {
    std::string left, right;
    if (!sidesOf(merge, left, right) || !names.count(left) ||
        !names.count(right) || !names.count(left + right))
      return "the merge " + merge.dump() + " is not of two tokens to a third";
    merges.try_emplace(pairOf(names[left], names[right]),
                       Merge{int32_t(merges.size()), names[left + right]});
  }
  return "";
}

std::string Tokenizer::readSpecial(const Json &tokens) {
  for (const Json &token : tokens) {
    std::string content = stringAt(token, "content");
    auto id = token.is_object() ? token.find("id") : token.end();
    if (content.empty() || id == token.end() || !id->is_number_integer())
      return "an added token has no 'content' or no 'id'";
    int32_t number = id->get<int32_t>();
    if (number < 0 || number > (1 << 24))
      return "the added token '" + content + "' has the id " + id->dump();
    if (number >= int32_t(texts.size()))
      texts.resize(number + 1);
    texts[number] = content;
    names[content] = number;
    special.push_back({content, number});
  }
  // Of two that begin alike the longer one is meant.
  std::stable_sort(special.begin(), special.end(),
                   [](const auto &a, const auto &b) {
                     return a.first.size() > b.first.size();
                   });
  return "";
}

std::string Tokenizer::addPattern(const std::string &regex) {
  patterns.push_back(std::make_shared<Pattern>(regex));
  return patterns.back()->problem;
}

std::string Tokenizer::readSplitters(const Json &splitter) {
  std::string type = stringAt(splitter, "type");
  if (type == "Sequence") {
    auto list = splitter.find("pretokenizers");
    if (list == splitter.end() || !list->is_array())
      return "the pre-tokenizer 'Sequence' has no 'pretokenizers'";
    for (const Json &inner : *list)
      if (std::string problem = readSplitters(inner); !problem.empty())
        return problem;
    return "";
  }
  if (type == "ByteLevel") {
    if (flagAt(splitter, "add_prefix_space", true))
      return "the pre-tokenizer 'ByteLevel' adds a space, which is not done "
             "here";
    // The pattern of GPT-2.
    return flagAt(splitter, "use_regex", true)
               ? addPattern(R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+)"
                            R"(| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)")
               : "";
  }
  if (type == "Digits")
    return addPattern(flagAt(splitter, "individual_digits", false)
                          ? R"(\p{N})"
                          : R"(\p{N}+)");
  auto pattern =
      splitter.is_object() ? splitter.find("pattern") : splitter.end();
  if (type == "Split" && pattern != splitter.end() &&
      !stringAt(*pattern, "Regex").empty() &&
      stringAt(splitter, "behavior") == "Isolated" &&
      !flagAt(splitter, "invert", false))
    return addPattern(stringAt(*pattern, "Regex"));
  return "the pre-tokenizer " + splitter.dump() +
         " is not known here; known are Sequence, ByteLevel, Digits, and Split "
         "with a regex that isolates its matches";
}

Expected<Tokenizer> Tokenizer::load(const std::string &path) {
  Expected<Json> json = readJson(path);
  if (!json)
    return Expected<Tokenizer>::failure(json.error());
  Tokenizer tokenizer;
  std::string problem;
  auto part = [&](const char *name) {
    return json->is_object() && json->contains(name) ? (*json)[name] : Json();
  };
  if (!part("normalizer").is_null())
    problem = "it normalizes text, which is not done here";
  if (problem.empty())
    problem = tokenizer.readModel(part("model"));
  if (problem.empty())
    problem = tokenizer.readSpecial(part("added_tokens"));
  if (problem.empty() && !part("pre_tokenizer").is_null())
    problem = tokenizer.readSplitters(part("pre_tokenizer"));
  if (!problem.empty())
    return Expected<Tokenizer>::failure("'" + path + "': " + problem);
  return tokenizer;
}

//===----------------------------------------------------------------------===//
// Encoding
//===----------------------------------------------------------------------===//

namespace {
/// A symbol of a piece; joined ones leave the list.
struct Symbol {
  int32_t token;
  int previous, next;
};

/// Two neighbours that may be joined, if they are still what they were.
struct Candidate {
  int32_t rank;
  int left;
  int32_t leftToken, rightToken, result;
  /// The lowest rank first, and of equal ones the leftmost.
  bool operator<(const Candidate &other) const {
    return rank != other.rank ? rank > other.rank : left > other.left;
  }
};
} // namespace

void Tokenizer::encodePiece(std::string_view piece,
                            std::vector<int32_t> &out) const {
  if (wholeWordsFirst)
    if (auto whole = ids.find(std::string(piece)); whole != ids.end())
      return out.push_back(whole->second);
  std::vector<Symbol> symbols;
  for (unsigned char byte : piece) {
    int at = int(symbols.size());
    symbols.push_back({byteTokens[byte], at - 1, at + 1});
  }
  int count = int(symbols.size());
  std::priority_queue<Candidate> queue;
  auto offer = [&](int left) {
    int right = left < 0 ? count : symbols[left].next;
    if (right >= count)
      return;
    int32_t a = symbols[left].token, b = symbols[right].token;
    if (auto merge = merges.find(pairOf(a, b)); merge != merges.end())
      queue.push({merge->second.rank, left, a, b, merge->second.result});
  };
  for (int i = 0; i + 1 < count; ++i)
    offer(i);
  while (!queue.empty()) {
    Candidate best = queue.top();
    queue.pop();
    Symbol &left = symbols[best.left];
    int right = left.next;
    if (left.token != best.leftToken || right >= count ||
        symbols[right].token != best.rightToken)
      continue;
    left.token = best.result;
    left.next = symbols[right].next;
    symbols[right].token = -1; // is in no list any more
    if (left.next < count)
      symbols[left.next].previous = best.left;
    offer(best.left);
    offer(left.previous);
  }
  for (int i = 0; i < count; i = symbols[i].next)
    if (symbols[i].token >= 0) // bytes that the vocabulary lacks are dropped
      out.push_back(symbols[i].token);
}

void Tokenizer::split(std::string_view text, size_t pattern,
                      std::vector<int32_t> &out) const {
  if (pattern == patterns.size())
    return encodePiece(text, out);
  patterns[pattern]->split(
      text, [&](std::string_view piece) { split(piece, pattern + 1, out); });
}

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<int32_t> out;
  size_t done = 0;
  auto plain = [&](size_t end) {
    if (end > done)
      split(text.substr(done, end - done), 0, out);
  };
  for (size_t at = 0; at < text.size();) {
    auto here =
        std::find_if(special.begin(), special.end(), [&](const auto &token) {
          return text.substr(at).starts_with(token.first);
        });
    if (here == special.end()) {
      ++at;
      continue;
    }
    plain(at);
    out.push_back(here->second);
    at = done = at + here->first.size();
  }
  plain(text.size());
  return out;
}

std::string Tokenizer::decode(int32_t token) const {
  return token < 0 || token >= size() ? std::string() : texts[token];
}

int32_t Tokenizer::find(const std::string &token) const {
  auto found = names.find(token);
  return found == names.end() ? -1 : found->second;
}

//===- WeightMap.cpp - A program's names against a checkpoint's -----------===//
#include "runtime/io/WeightMap.h"
#include "runtime/io/File.h"
#include "runtime/support/Names.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

namespace cleave::rt {

using Json = nlohmann::ordered_json;

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

static bool isDigit(char c) { return c >= '0' && c <= '9'; }

Status NamePattern::parse(const std::string &text) {
  source = text;
  auto wrong = [&](const char *why) {
    return invalidArgument("the pattern '", text, "' ", why);
  };
  for (size_t i = 0; i < text.size();) {
    std::string name = "*";
    size_t end = i + 1;
    if (text[i] == '{') {
      end = text.find('}', i);
      if (end == std::string::npos || end == i + 1)
        return wrong("has a { that no name and } follow");
      name = text.substr(i + 1, end - i - 1);
      ++end;
    } else if (text[i] != '*') {
      end = std::min(text.find_first_of("*{", i), text.size());
      pieces.push_back({false, text.substr(i, end - i)});
      i = end;
      continue;
    }
    for (const Piece &other : pieces)
      if (other.isOpen && other.text == name)
        return wrong(name == "*" ? "has two *" : "has a name in braces twice");
    if (!pieces.empty() && pieces.back().isOpen)
      return wrong("has two open parts without text between them");
    pieces.push_back({true, name});
    i = end;
  }
  return Status();
}

bool NamePattern::matchesFrom(size_t index, std::string_view rest,
                              Parts *parts) const {
  if (index == pieces.size())
    return rest.empty();
  const Piece &piece = pieces[index];
  if (!piece.isOpen)
    return rest.substr(0, piece.text.size()) == piece.text &&
           matchesFrom(index + 1, rest.substr(piece.text.size()), parts);
  bool isNumber = piece.text != "*";
  size_t longest = 0;
  while (longest < rest.size() && (!isNumber || isDigit(rest[longest])))
    ++longest;
  for (size_t size = longest + 1; size-- > (isNumber ? 1u : 0u);)
    if (matchesFrom(index + 1, rest.substr(size), parts)) {
      (*parts)[piece.text] = std::string(rest.substr(0, size));
      return true;
    }
  return false;
}

bool NamePattern::matches(const std::string &name, Parts *parts) const {
  return matchesFrom(0, name, parts);
}

std::string NamePattern::fill(const Parts &parts) const {
  std::string name;
  for (const Piece &piece : pieces) {
    auto it = parts.find(piece.text);
    if (!piece.isOpen)
      name += piece.text;
    else if (it != parts.end())
      name += it->second;
    else
      name += piece.text == "*" ? "*" : "{" + piece.text + "}";
  }
  return name;
}

std::vector<std::string> NamePattern::open() const {
  std::vector<std::string> names;
  for (const Piece &piece : pieces)
    if (piece.isOpen)
      names.push_back(piece.text);
  return names;
}

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

class WeightMapReader {
public:
  explicit WeightMapReader(WeightMap &map) : map(map) {}
  Status read(const Json &root);

private:
  Status readRule(const std::string &weight, const Json &value);
  Status readSource(const Json &value, WeightMap::Rule *rule);
  Status readRows(const Json &value, WeightMap::Rule *rule);
  Status findStack(WeightMap::Rule *rule);
  Status readUnused(const Json &value);

  WeightMap &map;
};

/// Keys of an object that are not among the known ones.
static Status checkKeys(const Json &object,
                        const std::vector<std::string> &known) {
  for (const auto &[key, value] : object.items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      return invalidArgument("unknown key '", key, "'; known are ",
                             closestFirst(key, known));
  return Status();
}

static bool isCount(const Json &value) {
  return value.is_number_unsigned() && value.get<uint64_t>() <= INT64_MAX;
}

/// Names to numbers that are not negative.
static Status readNumbers(const Json &rule, const char *key,
                          std::map<std::string, int64_t> *numbers) {
  if (!rule.contains(key))
    return Status();
  bool good = rule[key].is_object();
  for (const auto &[name, number] : rule[key].items()) {
    good = good && isCount(number);
    if (good)
      (*numbers)[name] = number.get<int64_t>();
  }
  if (!good)
    return invalidArgument("\"", key,
                           "\" is no object of names and whole "
                           "numbers");
  return Status();
}

Status WeightMapReader::readRows(const Json &value, WeightMap::Rule *rule) {
  if (!value.contains("rows"))
    return Status();
  const Json &rows = value["rows"];
  if (!rows.is_array() || rows.size() != 2 || !isCount(rows[0]) ||
      !isCount(rows[1]) || rows[0].get<int64_t>() > rows[1].get<int64_t>())
    return invalidArgument("\"rows\" is not [begin, end] of the tensor's first "
                           "dim");
  rule->rows = {rows[0].get<int64_t>(), rows[1].get<int64_t>()};
  return Status();
}

Status WeightMapReader::readSource(const Json &value, WeightMap::Rule *rule) {
  if (value.is_string())
    return rule->tensor.parse(value.get<std::string>());
  if (!value.is_object() || !value.contains("from") ||
      !value["from"].is_string())
    return invalidArgument(
        "needs the tensor's name, or an object with it as \"from\"");
  CLEAVE_RETURN_IF_ERROR(
      checkKeys(value, {"from", "dims", "sizes", "pick", "rows"}));
  CLEAVE_RETURN_IF_ERROR(rule->tensor.parse(value["from"].get<std::string>()));
  CLEAVE_RETURN_IF_ERROR(readRows(value, rule));
  std::map<std::string, int64_t> sizes, picks;
  CLEAVE_RETURN_IF_ERROR(readNumbers(value, "sizes", &sizes));
  CLEAVE_RETURN_IF_ERROR(readNumbers(value, "pick", &picks));
  if (!value.contains("dims"))
    return sizes.empty() && picks.empty()
               ? Status()
               : invalidArgument("\"sizes\" and \"pick\" need \"dims\"");
  if (!value["dims"].is_string())
    return invalidArgument("\"dims\" is no text");
  rule->dims.emplace();
  return rule->dims->parse(value["dims"].get<std::string>(), sizes, picks);
}

/// A name in braces that the weight's does not have stands for the indices of
/// the weight's first dim.
Status WeightMapReader::findStack(WeightMap::Rule *rule) {
  std::vector<std::string> known = rule->weight.open();
  for (const std::string &name : rule->tensor.open()) {
    if (std::find(known.begin(), known.end(), name) != known.end())
      continue;
    if (name == "*")
      return invalidArgument("'", rule->tensor.text(), "' has a *, '",
                             rule->weight.text(), "' has none");
    if (!rule->stack.empty())
      return invalidArgument("'", rule->tensor.text(),
                             "' stands for several tensors by two names in "
                             "braces; one can be");
    rule->stack = name;
  }
  return Status();
}

Status WeightMapReader::readRule(const std::string &weight, const Json &value) {
  WeightMap::Rule rule;
  CLEAVE_RETURN_IF_ERROR(rule.weight.parse(weight));
  Status status = readSource(value, &rule);
  if (status.ok())
    status = findStack(&rule);
  if (!status.ok())
    return status.within(concat("weight '", weight, "'"));
  map.rules.push_back(std::move(rule));
  return Status();
}

Status WeightMapReader::readUnused(const Json &value) {
  bool good = value.is_array();
  for (const Json &item : value) {
    if (!good || !item.is_string())
      break;
    map.unused.emplace_back();
    CLEAVE_RETURN_IF_ERROR(map.unused.back().parse(item.get<std::string>()));
  }
  if (!good || map.unused.size() != value.size())
    return invalidArgument("\"unused\" is no list of patterns");
  return Status();
}

Status WeightMapReader::read(const Json &root) {
  CLEAVE_RETURN_IF_ERROR(checkKeys(root, {"weights", "unused"}));
  if (root.contains("weights")) {
    if (!root["weights"].is_object())
      return invalidArgument("\"weights\" is no object");
    for (const auto &[weight, value] : root["weights"].items())
      CLEAVE_RETURN_IF_ERROR(readRule(weight, value));
  }
  return root.contains("unused") ? readUnused(root["unused"]) : Status();
}

Status WeightMap::parse(std::string_view text) {
  std::vector<std::vector<std::string>> keys;
  std::string duplicate;
  auto seen = [&](int depth, Json::parse_event_t event, Json &parsed) {
    size_t level = size_t(depth);
    keys.resize(std::max(keys.size(), level + 1));
    if (event == Json::parse_event_t::object_start && level + 1 < keys.size())
      keys[level + 1].clear();
    if (event != Json::parse_event_t::key)
      return true;
    std::string key = parsed.get<std::string>();
    if (std::find(keys[level].begin(), keys[level].end(), key) !=
        keys[level].end())
      duplicate = key;
    keys[level].push_back(key);
    return true;
  };
  Json root = Json::parse(text.begin(), text.end(), seen,
                          /*allow_exceptions=*/false);
  if (root.is_discarded() || !root.is_object())
    return invalidArgument("it is no JSON object");
  if (!duplicate.empty())
    return invalidArgument("'", duplicate, "' occurs twice");
  return WeightMapReader(*this).read(root);
}

Status WeightMap::open(const std::string &path) {
  MappedFile file;
  CLEAVE_RETURN_IF_ERROR(file.open(path).within("--weights-map"));
  std::string_view text(file.size() ? file.data() : "", size_t(file.size()));
  return parse(text).within(concat("--weights-map '", path, "'"));
}

//===----------------------------------------------------------------------===//
// Looking up
//===----------------------------------------------------------------------===//

WeightSource WeightMap::find(const std::string &weight) const {
  for (const Rule &rule : rules) {
    NamePattern::Parts parts;
    if (rule.weight.matches(weight, &parts))
      return {rule.tensor.fill(parts), rule.stack, rule.dims, rule.rows};
  }
  return {weight, "", std::nullopt, std::nullopt};
}

bool WeightMap::isUnused(const std::string &tensor) const {
  return std::any_of(unused.begin(), unused.end(),
                     [&](const NamePattern &pattern) {
                       NamePattern::Parts parts;
                       return pattern.matches(tensor, &parts);
                     });
}

std::string WeightSource::key() const {
  std::string text = name;
  if (dims)
    text += concat("\n", dims->key());
  if (rows)
    text += concat("\nrows ", rows->first, " ", rows->second);
  return text;
}

std::vector<std::string>
WeightMap::withoutMatch(const std::vector<std::string> &weights) const {
  std::vector<std::string> names;
  std::set<std::string> sources;
  for (const std::string &weight : weights)
    sources.insert(find(weight).key());
  for (const Rule &rule : rules) {
    bool matched =
        std::any_of(weights.begin(), weights.end(), [&](const auto &weight) {
          NamePattern::Parts parts;
          return rule.weight.matches(weight, &parts);
        });
    // The second name of a tied weight is gone when the compiler has joined
    // the two.
    if (!matched && !(rule.weight.isExact() &&
                      sources.count(find(rule.weight.text()).key())))
      names.push_back(rule.weight.text());
  }
  return names;
}

} // namespace cleave::rt

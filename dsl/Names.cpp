//===- Names.cpp - Lists, patterns and closest names ----------------------===//
#include "dsl/Names.h"

#include <algorithm>
#include <numeric>

namespace cleave::dsl {

static size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t(0));
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

static std::vector<std::string> sorted(std::string_view wanted,
                                       std::vector<std::string> known) {
  std::sort(known.begin(), known.end(),
            [&](const std::string &a, const std::string &b) {
              size_t first = distance(wanted, a);
              size_t second = distance(wanted, b);
              return first != second ? first < second : a < b;
            });
  known.erase(std::unique(known.begin(), known.end()), known.end());
  return known;
}

std::string closestFirst(std::string_view wanted,
                         std::vector<std::string> known) {
  constexpr size_t kMost = 12;
  known = sorted(wanted, std::move(known));
  std::string text;
  for (size_t i = 0; i < known.size() && i < kMost; ++i)
    text += (i ? ", '" : "'") + known[i] + "'";
  if (known.size() > kMost)
    text += ", and " + std::to_string(known.size() - kMost) + " more";
  return text;
}

std::string closest(std::string_view wanted,
                    const std::vector<std::string> &known) {
  return known.empty() ? "" : sorted(wanted, known).front();
}

std::string suggestion(std::string_view wanted,
                       const std::vector<std::string> &known) {
  if (known.empty())
    return "; there are none";
  std::string best = closest(wanted, known);
  size_t away = distance(wanted, best);
  if (away < wanted.size() && away <= std::max<size_t>(2, wanted.size() / 3))
    return "; closest is '" + best + "'";
  return "; known are " + closestFirst(wanted, known);
}

bool matches(std::string_view pattern, std::string_view name) {
  if (pattern.empty())
    return name.empty();
  if (pattern.front() != '*') {
    bool fits = !name.empty() && (pattern.front() == name.front() ||
                                  (pattern.front() == '?' && name[0] != '.'));
    return fits && matches(pattern.substr(1), name.substr(1));
  }
  bool deep = pattern.substr(0, 2) == "**";
  std::string_view rest = pattern.substr(deep ? 2 : 1);
  for (size_t taken = 0;; ++taken) {
    if (matches(rest, name.substr(taken)))
      return true;
    if (taken == name.size() || (!deep && name[taken] == '.'))
      return false;
  }
}

bool covers(std::string_view pattern, std::string_view name) {
  for (size_t end = name.find('.');; end = name.find('.', end + 1)) {
    if (matches(pattern, name.substr(0, end)))
      return true;
    if (end == std::string_view::npos)
      return false;
  }
}

} // namespace cleave::dsl

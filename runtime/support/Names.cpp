//===- Names.cpp - Lists of names in messages -----------------------------===//
#include "runtime/support/Names.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

namespace cleave::rt {

/// Edit distance: how many letters to insert, drop or replace.
static size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t(0));
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      size_t replace = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replace, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

std::string closestFirst(std::string_view wanted,
                         std::vector<std::string> names) {
  constexpr size_t kMaxShown = 8;
  std::stable_sort(names.begin(), names.end(),
                   [&](const std::string &a, const std::string &b) {
                     return editDistance(wanted, a) < editDistance(wanted, b);
                   });
  if (names.empty())
    return "none";
  std::string out;
  for (size_t i = 0; i < std::min(names.size(), kMaxShown); ++i)
    out += (i ? ", '" : "'") + names[i] + "'";
  if (names.size() > kMaxShown)
    out += " (" + std::to_string(names.size() - kMaxShown) + " more)";
  return out;
}

std::string shapeText(const int64_t *shape, int64_t rank) {
  if (rank == 0)
    return "scalar";
  std::string out;
  for (int64_t d = 0; d < rank; ++d)
    out += (d ? "x" : "") + std::to_string(shape[d]);
  return out;
}

std::string jsonString(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char buffer[8];
      std::snprintf(buffer, sizeof(buffer), "\\u%04x", c);
      out += buffer;
    } else {
      out += c;
    }
  }
  return out + "\"";
}

} // namespace cleave::rt

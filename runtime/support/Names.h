//===- Names.h - Lists of names in messages ---------------------*- C++ -*-===//
#ifndef CLEAVE_RUNTIME_SUPPORT_NAMES_H
#define CLEAVE_RUNTIME_SUPPORT_NAMES_H

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cleave::rt {

/// The names as a list, the one most like `wanted` first, at most eight:
/// "'forward', 'decode' (3 more)". No names give "none".
std::string closestFirst(std::string_view wanted,
                         std::vector<std::string> names);

/// "4x8" for [4, 8]; "scalar" for [].
std::string shapeText(const int64_t *shape, int64_t rank);

/// The text as a JSON string, quotes included.
std::string jsonString(std::string_view text);

} // namespace cleave::rt

#endif // CLEAVE_RUNTIME_SUPPORT_NAMES_H

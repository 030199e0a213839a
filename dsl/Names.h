//===- Names.h - Lists, patterns and closest names -------------*- C++ -*-===//
#ifndef CLEAVE_DSL_NAMES_H
#define CLEAVE_DSL_NAMES_H

#include <string>
#include <string_view>
#include <vector>

namespace cleave::dsl {

/// "'a', 'b'", the one most like `wanted` first.
std::string closestFirst(std::string_view wanted,
                         std::vector<std::string> known);
/// "; closest is 'x'", or all of them if none is close; "; there are none".
std::string suggestion(std::string_view wanted,
                       const std::vector<std::string> &known);
/// The known name most like `wanted`; empty if there is none.
std::string closest(std::string_view wanted,
                    const std::vector<std::string> &known);

/// Whether the whole of `name` matches: `*` is anything without a dot, `**`
/// anything, `?` one character.
bool matches(std::string_view pattern, std::string_view name);
/// Whether `name` or a scope above it matches: "layer*" covers "layer0.attn".
bool covers(std::string_view pattern, std::string_view name);

} // namespace cleave::dsl

#endif // CLEAVE_DSL_NAMES_H

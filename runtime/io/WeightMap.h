//===- WeightMap.h - A program's names against a checkpoint's ---*- C++ -*-===//
// What --weights-map reads:
//
//   {"weights": {
//      "embed":         "model.embed_tokens.weight",
//      "layer{i}.up":   {"from": "model.layers.{i}.mlp.up_proj.weight",
//                        "dims": "out in -> in out"}},
//    "unused": ["*.inv_freq"]}
//
// The first pattern that a weight's name matches tells where it is; one without
// a pattern has its own name in the checkpoint.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_RUNTIME_IO_WEIGHTMAP_H
#define CLEAVE_RUNTIME_IO_WEIGHTMAP_H

#include "runtime/io/Rearrange.h"
#include <optional>

namespace cleave::rt {

/// A name in which `*` stands for any text and `{i}` for a number.
class NamePattern {
public:
  /// What the parts of a name that a pattern leaves open are: by the name in
  /// braces, or "*".
  using Parts = std::map<std::string, std::string>;

  Status parse(const std::string &text);
  bool matches(const std::string &name, Parts *parts) const;
  /// The name with these parts; those that are not given stay as they are.
  std::string fill(const Parts &parts) const;
  /// "*" and the names in braces, in the order of the text.
  std::vector<std::string> open() const;
  bool isExact() const { return open().empty(); }
  const std::string &text() const { return source; }

private:
  struct Piece {
    bool isOpen;
    std::string text; // of an open one its name
  };
  bool matchesFrom(size_t piece, std::string_view rest, Parts *parts) const;

  std::string source;
  std::vector<Piece> pieces;
};

/// Where one weight is in a checkpoint.
struct WeightSource {
  std::string name;  // may have one {name} left: one tensor for each index
  std::string stack; // that name
  std::optional<Rearrange> dims;
  std::optional<std::pair<int64_t, int64_t>> rows; // [begin, end) of dim 0

  /// Equal for the same part of the same tensor in the same layout.
  std::string key() const;
};

class WeightMap {
public:
  /// Reads and checks a file.
  Status open(const std::string &path);
  Status parse(std::string_view json);

  WeightSource find(const std::string &weight) const;
  /// True for a tensor that the map says no program needs.
  bool isUnused(const std::string &tensor) const;
  /// Of the patterns for weights, those that match none of these, and don't
  /// name what one of them is either.
  std::vector<std::string>
  withoutMatch(const std::vector<std::string> &weights) const;

private:
  struct Rule {
    NamePattern weight, tensor;
    std::string stack;
    std::optional<Rearrange> dims;
    std::optional<std::pair<int64_t, int64_t>> rows;
  };
  friend class WeightMapReader;
  std::vector<Rule> rules;
  std::vector<NamePattern> unused;
};

} // namespace cleave::rt

#endif // CLEAVE_RUNTIME_IO_WEIGHTMAP_H

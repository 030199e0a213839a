//===- Rearrange.h - "out (kv head) -> kv head out" -------------*- C++ -*-===//
// How the dims of a stored tensor become those of a program's weight: dims are
// reordered, cut in several, or joined to one. Nothing is copied here; the
// result is another view of the same bytes.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_RUNTIME_IO_REARRANGE_H
#define CLEAVE_RUNTIME_IO_REARRANGE_H

#include "runtime/io/Blocks.h"
#include <map>
#include <string>

namespace cleave::rt {

class Rearrange {
public:
  /// Names of the factors of each dim, major first. The dim "(a b)" has two,
  /// the dim "1" none.
  using Dims = std::vector<std::vector<std::string>>;

  /// `sizes` are those that the shapes do not tell; `picks` are factors of the
  /// left side of which one index is taken. They don't occur on the right.
  Status parse(const std::string &text, std::map<std::string, int64_t> sizes,
               std::map<std::string, int64_t> picks);

  /// The stored array as an array of this shape.
  Status apply(const GlobalArray &stored, const std::vector<int64_t> &shape,
               GlobalArray *result) const;

  /// Equal for equal rearrangements.
  std::string key() const;

private:
  Status checkNames() const;
  Status solve(const GlobalArray &stored, const std::vector<int64_t> &shape,
               std::map<std::string, int64_t> *solved) const;

  std::string source;
  Dims left, right;
  std::map<std::string, int64_t> sizes, picks;
};

} // namespace cleave::rt

#endif // CLEAVE_RUNTIME_IO_REARRANGE_H

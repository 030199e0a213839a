//===- Rearrange.cpp - "out (kv head) -> kv head out" ---------------------===//
#include "runtime/io/Rearrange.h"
#include "runtime/support/Names.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace cleave::rt {

//===----------------------------------------------------------------------===//
// Reading the text
//===----------------------------------------------------------------------===//

static bool isNamePart(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

/// One side of the arrow; false where it is not a list of names and groups.
static bool parseSide(std::string_view text, Rearrange::Dims *dims) {
  bool inGroup = false;
  for (size_t i = 0; i < text.size();) {
    char c = text[i];
    if (c == ' ') {
      ++i;
    } else if (c == '(' && !inGroup) {
      inGroup = true;
      dims->emplace_back();
      ++i;
    } else if (c == ')' && inGroup) {
      inGroup = false;
      ++i;
    } else if (isNamePart(c)) {
      size_t end = i;
      while (end < text.size() && isNamePart(text[end]))
        ++end;
      std::string name(text.substr(i, end - i));
      if (std::isdigit(static_cast<unsigned char>(c)) && name != "1")
        return false;
      if (!inGroup)
        dims->emplace_back();
      if (name != "1")
        dims->back().push_back(name);
      i = end;
    } else {
      return false;
    }
  }
  return !inGroup;
}

Status Rearrange::parse(const std::string &text,
                        std::map<std::string, int64_t> knownSizes,
                        std::map<std::string, int64_t> pickedIndices) {
  source = text;
  sizes = std::move(knownSizes);
  picks = std::move(pickedIndices);
  size_t arrow = text.find("->");
  if (arrow == std::string::npos ||
      !parseSide(std::string_view(text).substr(0, arrow), &left) ||
      !parseSide(std::string_view(text).substr(arrow + 2), &right))
    return invalidArgument("\"dims\" is '", text,
                           "', not two lists of names with -> between them, as "
                           "in 'out (a b) -> a b out'");
  return checkNames();
}

Status Rearrange::checkNames() const {
  std::set<std::string> stored, wanted;
  for (const auto &dim : left)
    for (const std::string &name : dim)
      if (!stored.insert(name).second)
        return invalidArgument("'", source, "' has '", name,
                               "' twice on the left");
  for (const auto &dim : right)
    for (const std::string &name : dim) {
      if (!wanted.insert(name).second)
        return invalidArgument("'", source, "' has '", name,
                               "' twice on the right");
      if (!stored.count(name))
        return invalidArgument("'", source, "' has '", name,
                               "' on the right, but not on the left");
      if (picks.count(name))
        return invalidArgument("'", source, "' has '", name,
                               "' on the right, of which \"pick\" takes one "
                               "index");
    }
  for (const std::string &name : stored)
    if (!wanted.count(name) && !picks.count(name))
      return invalidArgument("'", source, "' has '", name,
                             "' on the left, but not on the right; \"pick\" "
                             "can take one index of it");
  for (const auto *given : {&sizes, &picks})
    for (const auto &[name, number] : *given)
      if (!stored.count(name))
        return invalidArgument("'", source, "' has no '", name, "', which \"",
                               given == &sizes ? "sizes" : "pick", "\" names");
  return Status();
}

std::string Rearrange::key() const {
  std::string key = source;
  for (const auto *given : {&sizes, &picks})
    for (const auto &[name, number] : *given)
      key += concat(given == &sizes ? "; size " : "; pick ", name, " ", number);
  return key;
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

namespace {

enum class Fit { known, open, wrong };

} // namespace

/// Uses that the sizes of a dim's factors multiply to the dim's. `open`: more
/// than one is still unknown.
static Fit fitDim(const std::vector<std::string> &factors, int64_t size,
                  std::map<std::string, int64_t> *solved) {
  int64_t product = 1;
  const std::string *unknown = nullptr;
  for (const std::string &name : factors) {
    auto it = solved->find(name);
    if (it == solved->end()) {
      if (unknown)
        return Fit::open;
      unknown = &name;
    } else if (__builtin_mul_overflow(product, it->second, &product)) {
      return Fit::wrong;
    }
  }
  if (!unknown)
    return product == size ? Fit::known : Fit::wrong;
  if (product == 0 || size % product != 0)
    return Fit::wrong;
  (*solved)[*unknown] = size / product;
  return Fit::known;
}

static std::string joined(const std::vector<std::string> &factors) {
  std::string text;
  for (const std::string &name : factors)
    text += (text.empty() ? "" : " ") + name;
  return factors.empty() ? "1" : factors.size() == 1 ? text : "(" + text + ")";
}

Status Rearrange::solve(const GlobalArray &stored,
                        const std::vector<int64_t> &shape,
                        std::map<std::string, int64_t> *solved) const {
  auto wrong = [&](const auto &...pieces) {
    return invalidArgument(
        concat(pieces...), " in '", source, "': the stored shape is ",
        shapeText(stored.shape.data(), int64_t(stored.shape.size())),
        ", the program expects ",
        shapeText(shape.data(), int64_t(shape.size())));
  };
  struct Side {
    const Dims &dims;
    const std::vector<int64_t> &shape;
    const char *name;
  };
  const Side sides[] = {{left, stored.shape, "left"}, {right, shape, "right"}};
  for (const Side &side : sides)
    if (side.dims.size() != side.shape.size())
      return wrong(side.dims.size(), " dims do not fit ", side.shape.size(),
                   " on the ", side.name);
  *solved = sizes;
  const std::vector<std::string> *open = nullptr;
  // Each round but the last settles a dim.
  for (size_t round = 0; round <= left.size() + right.size(); ++round) {
    open = nullptr;
    for (const Side &side : sides)
      for (size_t d = 0; d < side.dims.size(); ++d) {
        Fit fit = fitDim(side.dims[d], side.shape[d], solved);
        if (fit == Fit::wrong)
          return wrong("'", joined(side.dims[d]), "' does not fit ",
                       side.shape[d]);
        if (fit == Fit::open)
          open = &side.dims[d];
      }
  }
  if (open)
    return wrong("the sizes in '", joined(*open),
                 "' are not known (\"sizes\" can tell)");
  for (const auto &[name, index] : picks)
    if (index >= solved->at(name))
      return wrong("\"pick\" takes index ", index, " of '", name, "' of size ",
                   solved->at(name));
  return Status();
}

//===----------------------------------------------------------------------===//
// The view
//===----------------------------------------------------------------------===//

namespace {

/// A factor, where it lies in the stored array.
struct Factor {
  int64_t size = 1, step = 0;
  const std::vector<int64_t> *places = nullptr; // a whole listed dim
};

} // namespace

static std::map<std::string, Factor>
factorsOf(const Rearrange::Dims &dims, const GlobalArray &stored,
          const std::map<std::string, int64_t> &sizes) {
  std::map<std::string, Factor> factors;
  for (size_t d = 0; d < dims.size(); ++d) {
    int64_t step = stored.steps[d];
    for (size_t i = dims[d].size(); i-- > 0;) {
      Factor &factor = factors[dims[d][i]];
      factor.size = sizes.at(dims[d][i]);
      factor.step = step;
      if (stored.isListed(int64_t(d)))
        factor.places = &stored.places[d];
      step *= factor.size;
    }
  }
  return factors;
}

/// The dim that these factors make: one distance where they have one, else the
/// place of each index.
static void joinFactors(const std::vector<Factor> &factors, int64_t size,
                        int64_t *step, std::vector<int64_t> *places) {
  bool regular = true;
  *step = 0;
  int64_t span = -1; // what the next major factor must step by
  for (size_t i = factors.size(); i-- > 0;) {
    const Factor &factor = factors[i];
    if (factor.size == 1 && !factor.places)
      continue;
    regular &= !factor.places && (span < 0 || factor.step == span);
    if (span < 0)
      *step = factor.step;
    span = factor.step * factor.size;
  }
  if (regular)
    return;
  for (int64_t index = 0; index < size; ++index) {
    int64_t place = 0, rest = index;
    for (size_t i = factors.size(); i-- > 0; rest /= factors[i].size) {
      int64_t digit = rest % factors[i].size;
      place += factors[i].places ? (*factors[i].places)[digit]
                                 : digit * factors[i].step;
    }
    places->push_back(place);
  }
}

Status Rearrange::apply(const GlobalArray &stored,
                        const std::vector<int64_t> &shape,
                        GlobalArray *result) const {
  std::map<std::string, int64_t> solved;
  CLEAVE_RETURN_IF_ERROR(solve(stored, shape, &solved));
  for (size_t d = 0; d < left.size(); ++d)
    if (stored.isListed(int64_t(d)) &&
        (left[d].size() != 1 || picks.count(left[d][0])))
      return invalidArgument("'", joined(left[d]), "' in '", source,
                             "' stands for several tensors; it has one name "
                             "and is taken whole");
  std::map<std::string, Factor> factors = factorsOf(left, stored, solved);
  GlobalArray view;
  view.data = stored.data;
  view.dtype = stored.dtype;
  view.swapBytes = stored.swapBytes;
  view.shape = shape;
  for (const auto &[name, index] : picks)
    view.data += index * factors.at(name).step;
  view.steps.resize(shape.size());
  view.places.resize(shape.size());
  for (size_t d = 0; d < right.size(); ++d) {
    std::vector<Factor> parts;
    for (const std::string &name : right[d])
      parts.push_back(factors.at(name));
    joinFactors(parts, shape[d], &view.steps[d], &view.places[d]);
  }
  // A dim of one element has no distance; one that fits the dim within it lets
  // both be read as one.
  for (size_t d = shape.size(); d-- > 0;)
    if (shape[d] == 1)
      view.steps[d] = d + 1 < shape.size() ? view.steps[d + 1] * shape[d + 1]
                                           : dtypeBytes(view.dtype);
  *result = std::move(view);
  return Status();
}

} // namespace cleave::rt

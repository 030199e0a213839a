//===- Case.h - Outputs of a model compared with plain loops ---*- C++ -*-===//
// A case builds an entry, says for each output what an element of it is by a
// function of its indices, and runs the program on several meshes.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_TEST_DSL_CASE_H
#define CLEAVE_TEST_DSL_CASE_H

#include "cleave/cleave.h"

#include <functional>
#include <gtest/gtest.h>
#include <map>

namespace cleave {

using Index = std::vector<int64_t>;

/// A whole array of numbers, kept as f64; written to programs in `type`.
struct Numbers {
  Element type = f32;
  Index shape;
  std::vector<double> data;

  double operator()(const Index &at) const;
  template <typename... Ints> double at(Ints... at) const {
    return (*this)(Index{static_cast<int64_t>(at)...});
  }
  int64_t size() const;
};

/// Calls `f` with each index of a shape.
void forEach(const Index &shape, const std::function<void(const Index &)> &f);

class Case {
public:
  Case() : entry(model.entry("forward")) {}

  /// Whole numbers from `low` to `high`, divided by `scale`.
  Tensor input(const std::string &name, const Dims &dims, Element type = f32,
               int low = -8, int high = 8, double scale = 4);
  Tensor weight(const std::string &name, const Dims &dims, Element type = f32);
  const Numbers &operator[](const std::string &name) const {
    return given.at(name);
  }
  void expect(const std::string &name, const Tensor &value,
              std::function<double(const Index &)> element,
              double tolerance = 1e-5);
  /// Compiles for the plan, runs, and compares all outputs.
  void run(const Plan &plan);

  Model model;
  Entry entry;

private:
  struct Wanted {
    std::string name;
    Element type;
    Index shape;
    std::function<double(const Index &)> element;
    double tolerance;
  };
  Numbers &give(const std::string &name, const Tensor &tensor, int low,
                int high, double scale);

  std::map<std::string, Numbers> given;
  std::vector<std::string> inputs, weights;
  std::vector<Wanted> wanted;
  unsigned seed = 12345;
};

/// Bytes of an array in its own type, and back.
std::vector<char> toBytes(const Numbers &numbers);
void fromBytes(const std::vector<char> &bytes, Numbers &numbers);
int64_t bytesOf(Element type);

} // namespace cleave

#endif // CLEAVE_TEST_DSL_CASE_H

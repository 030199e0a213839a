//===- Case.cpp - Outputs of a model compared with plain loops ------------===//
#include "test/dsl/Case.h"

#include <cmath>
#include <cstring>

namespace cleave {

int64_t Numbers::size() const {
  int64_t count = 1;
  for (int64_t n : shape)
    count *= n;
  return count;
}

double Numbers::operator()(const Index &at) const {
  int64_t place = 0;
  for (size_t i = 0; i < shape.size(); ++i)
    place = place * shape[i] + at[i];
  return data[place];
}

void forEach(const Index &shape, const std::function<void(const Index &)> &f) {
  Index at(shape.size(), 0);
  for (;;) {
    f(at);
    size_t dim = shape.size();
    while (dim > 0 && ++at[dim - 1] == shape[dim - 1])
      at[--dim] = 0;
    if (dim == 0)
      return;
  }
}

int64_t bytesOf(Element type) {
  switch (type) {
  case f64:
  case i64:
    return 8;
  case i8:
  case i1:
    return 1;
  default:
    // bf16 and f16 are given and taken as f32.
    return 4;
  }
}

template <typename T>
static void write(std::vector<char> &bytes, const std::vector<double> &data) {
  for (size_t i = 0; i < data.size(); ++i) {
    T value = static_cast<T>(data[i]);
    std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
  }
}

template <typename T>
static void read(const std::vector<char> &bytes, std::vector<double> &data) {
  for (size_t i = 0; i < data.size(); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    data[i] = static_cast<double>(value);
  }
}

std::vector<char> toBytes(const Numbers &numbers) {
  std::vector<char> bytes(numbers.data.size() * bytesOf(numbers.type));
  switch (numbers.type) {
  case f64:
    write<double>(bytes, numbers.data);
    break;
  case i64:
    write<int64_t>(bytes, numbers.data);
    break;
  case i32:
    write<int32_t>(bytes, numbers.data);
    break;
  case i8:
  case i1:
    write<int8_t>(bytes, numbers.data);
    break;
  default:
    write<float>(bytes, numbers.data);
  }
  return bytes;
}

void fromBytes(const std::vector<char> &bytes, Numbers &numbers) {
  numbers.data.resize(numbers.size());
  switch (numbers.type) {
  case f64:
    return read<double>(bytes, numbers.data);
  case i64:
    return read<int64_t>(bytes, numbers.data);
  case i32:
    return read<int32_t>(bytes, numbers.data);
  case i8:
  case i1:
    return read<int8_t>(bytes, numbers.data);
  default:
    return read<float>(bytes, numbers.data);
  }
}

/// The type at the edge of the program.
static Element edgeType(Element type) {
  return type == bf16 || type == f16 ? f32 : type;
}

Numbers &Case::give(const std::string &name, const Tensor &tensor, int low,
                    int high, double scale) {
  Numbers &numbers = given[name];
  numbers.type = tensor.type();
  for (const Dim &dim : tensor.dims())
    numbers.shape.push_back(dim.size());
  for (int64_t i = 0; i < numbers.size(); ++i) {
    seed = seed * 1103515245 + 12345;
    int whole = low + static_cast<int>((seed >> 16) % (high - low + 1));
    bool isFloat = numbers.type <= f64;
    numbers.data.push_back(isFloat ? whole / scale : whole);
  }
  return numbers;
}

Tensor Case::input(const std::string &name, const Dims &dims, Element type,
                   int low, int high, double scale) {
  Tensor tensor = entry.input(name, dims, type);
  give(name, tensor, low, high, scale);
  inputs.push_back(name);
  return tensor;
}

Tensor Case::weight(const std::string &name, const Dims &dims, Element type) {
  Tensor tensor = entry.weight(name, dims, type);
  give(name, tensor, -8, 8, 4);
  weights.push_back(name);
  return tensor;
}

void Case::expect(const std::string &name, const Tensor &value,
                  std::function<double(const Index &)> element,
                  double tolerance) {
  ASSERT_TRUE(value) << name << "\n" << model.errors();
  entry.output(name, value);
  Index shape;
  for (const Dim &dim : value.dims())
    shape.push_back(dim.size());
  wanted.push_back({name, value.type(), shape, std::move(element), tolerance});
}

/// The first element that is not as expected, and how far it is away.
static void compare(const std::string &name, const Numbers &got,
                    const std::function<double(const Index &)> &element,
                    double tolerance) {
  int reported = 0;
  forEach(got.shape, [&](const Index &at) {
    double is = got(at), should = element(at);
    bool equal = std::isnan(should) ? std::isnan(is)
                 : std::isinf(should)
                     ? is == should
                     : std::abs(is - should) <=
                           tolerance * std::max(1.0, std::abs(should));
    if (equal || reported++ > 0)
      return;
    std::string place;
    for (int64_t i : at)
      place += std::to_string(i) + " ";
    ADD_FAILURE() << name << " at " << place << "is " << is << ", not "
                  << should;
  });
}

void Case::run(const Plan &plan) {
  Expected<Program> program = compile(model, plan);
  ASSERT_TRUE(program) << program.error();
  std::map<std::string, std::vector<char>> bytes;
  auto arrays = [&](const std::vector<std::string> &names) {
    std::vector<Array> list;
    for (const std::string &name : names) {
      const Numbers &numbers = given.at(name);
      bytes[name] = toBytes(numbers);
      list.push_back(
          {name, edgeType(numbers.type), numbers.shape, bytes[name].data()});
    }
    return list;
  };
  ASSERT_EQ(program->load(arrays(weights)), "");
  std::vector<Array> outputs;
  std::vector<std::vector<char>> results(wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    Numbers shaped{wanted[i].type, wanted[i].shape, {}};
    results[i].resize(shaped.size() * bytesOf(wanted[i].type));
    outputs.push_back({wanted[i].name, edgeType(wanted[i].type),
                       wanted[i].shape, results[i].data()});
  }
  ASSERT_EQ(program->run("forward", arrays(inputs), outputs), "");
  for (size_t i = 0; i < wanted.size(); ++i) {
    Numbers got{wanted[i].type, wanted[i].shape, {}};
    fromBytes(results[i], got);
    compare(wanted[i].name, got, wanted[i].element, wanted[i].tolerance);
  }
}

} // namespace cleave

//===- CheckData.cpp - Random inputs and comparisons of check -------------===//
#include "driver/CheckData.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <limits>

using namespace llvm;

namespace cleave {

static Error fail(const Twine &text) {
  return createStringError(inconvertibleErrorCode(), text);
}

int64_t EdgeTensorType::numElements() const {
  int64_t n = 1;
  for (int64_t size : shape)
    n *= size;
  return n;
}

//===----------------------------------------------------------------------===//
// Description
//===----------------------------------------------------------------------===//

/// "tensor<4x8xf32>".
static Expected<EdgeTensorType> parseType(StringRef name, StringRef text) {
  EdgeTensorType type;
  type.name = name.str();
  StringRef rest = text;
  if (!rest.consume_front("tensor<") || !rest.consume_back(">"))
    return fail("the program describes '" + name + "' as '" + text + "'");
  int64_t size;
  while (!rest.empty() && isDigit(rest[0])) {
    if (rest.consumeInteger(10, size) || !rest.consume_front("x"))
      return fail("the program describes '" + name + "' as '" + text + "'");
    type.shape.push_back(size);
  }
  if (rest == "index")
    rest = "i64";
  int dtype = rt::dtypeFromName(rest.data(), rest.size());
  if (dtype < 0)
    return fail("'" + name + "' has the element type '" + rest +
                "', which files cannot hold");
  type.dtype = dtype;
  return type;
}

static Error parseList(const json::Object &entry, StringRef key,
                       std::vector<EdgeTensorType> &to) {
  const json::Array *array = entry.getArray(key);
  if (!array)
    return fail("the description has no '" + key + "'");
  for (const json::Value &value : *array) {
    const json::Object *object = value.getAsObject();
    std::optional<StringRef> name, type;
    if (object) {
      name = object->getString("name");
      type = object->getString("type");
    }
    if (!name || !type)
      return fail("the description of '" + key + "' lacks name or type");
    Expected<EdgeTensorType> parsed = parseType(*name, *type);
    if (!parsed)
      return parsed.takeError();
    to.push_back(*parsed);
  }
  return Error::success();
}

Expected<std::vector<EdgeEntryType>> parseDescription(StringRef text) {
  Expected<json::Value> root = json::parse(text);
  if (!root)
    return root.takeError();
  const json::Object *object = root->getAsObject();
  const json::Array *list = object ? object->getArray("entries") : nullptr;
  if (!list)
    return fail("the description lists no entries");
  std::vector<EdgeEntryType> entries;
  for (const json::Value &value : *list) {
    const json::Object *entry = value.getAsObject();
    if (!entry)
      return fail("the description's entries are no objects");
    EdgeEntryType &to = entries.emplace_back();
    to.name = entry->getString("name").value_or("").str();
    if (Error error = parseList(*entry, "inputs", to.inputs))
      return error;
    if (Error error = parseList(*entry, "outputs", to.outputs))
      return error;
    if (Error error = parseList(*entry, "weights", to.weights))
      return error;
    if (Error error = parseList(*entry, "state", to.states))
      return error;
  }
  return entries;
}

//===----------------------------------------------------------------------===//
// Data
//===----------------------------------------------------------------------===//

template <typename T>
static void put(std::vector<char> &bytes, int64_t i, T value) {
  std::memcpy(bytes.data() + i * sizeof(T), &value, sizeof(T));
}

static void putNumber(std::vector<char> &bytes, int64_t i, uint32_t dtype,
                      int64_t number, float scale) {
  float real = static_cast<float>(number) * scale;
  switch (dtype) {
  case CLEAVE_F32:
    return put<float>(bytes, i, real);
  case CLEAVE_F64:
    return put<double>(bytes, i, real);
  case CLEAVE_BF16:
    return put<uint16_t>(bytes, i, rt::floatToBf16(real));
  case CLEAVE_F16:
    return put<uint16_t>(bytes, i, rt::floatToF16(real));
  case CLEAVE_I32:
    return put<int32_t>(bytes, i, number);
  case CLEAVE_I64:
    return put<int64_t>(bytes, i, number);
  case CLEAVE_I16:
    return put<int16_t>(bytes, i, number);
  case CLEAVE_I8:
    return put<int8_t>(bytes, i, number);
  default:
    return put<int8_t>(bytes, i, number & 1);
  }
}

std::vector<char> randomData(const EdgeTensorType &type, std::mt19937_64 &rng,
                             const InputRange &range) {
  int64_t n = type.numElements();
  std::vector<char> bytes(n * rt::dtypeBytes(type.dtype));
  bool isFloat = type.dtype <= CLEAVE_F64;
  std::uniform_int_distribution<int64_t> numbers(
      isFloat ? -4 : range.minInteger, isFloat ? 4 : range.maxInteger);
  for (int64_t i = 0; i < n; ++i)
    putNumber(bytes, i, type.dtype, numbers(rng), range.scale);
  return bytes;
}

static Error writeFile(StringRef path, ArrayRef<StringRef> parts) {
  std::error_code code;
  raw_fd_ostream os(path, code, sys::fs::OF_None);
  if (code)
    return fail("cannot write '" + path + "': " + code.message());
  for (StringRef part : parts)
    os << part;
  os.flush();
  if (os.has_error()) {
    code = os.error();
    os.clear_error();
    return fail("cannot write '" + path + "': " + code.message());
  }
  return Error::success();
}

static StringRef asText(ArrayRef<char> bytes) {
  return StringRef(bytes.data(), bytes.size());
}

Error writeNpy(StringRef path, const EdgeTensorType &type,
               ArrayRef<char> data) {
  uint32_t stored = rt::npyDtype(type.dtype);
  std::string header =
      rt::npyHeader(stored, type.shape.data(), type.shape.size());
  if (stored == type.dtype)
    return writeFile(path, {header, asText(data)});
  std::vector<char> wide(type.numElements() * sizeof(float));
  for (int64_t i = 0; i < type.numElements(); ++i) {
    uint16_t bits;
    std::memcpy(&bits, data.data() + i * 2, 2);
    put<float>(wide, i, rt::bf16ToFloat(bits));
  }
  return writeFile(path, {header, asText(wide)});
}

Error writeSafetensors(
    StringRef path,
    ArrayRef<std::pair<EdgeTensorType, std::vector<char>>> tensors) {
  static constexpr StringLiteral kNames[] = {"F32", "BF16", "F16", "F64", "I32",
                                             "I64", "I16",  "I8",  "BOOL"};
  json::Object header;
  int64_t offset = 0;
  std::vector<StringRef> parts(2);
  for (const auto &[type, data] : tensors) {
    json::Array shape;
    for (int64_t size : type.shape)
      shape.push_back(size);
    int64_t end = offset + static_cast<int64_t>(data.size());
    header[type.name] =
        json::Object{{"dtype", kNames[type.dtype]},
                     {"shape", std::move(shape)},
                     {"data_offsets", json::Array{offset, end}}};
    offset = end;
    parts.push_back(StringRef(data.data(), data.size()));
  }
  std::string text;
  raw_string_ostream(text) << json::Value(std::move(header));
  text.resize((text.size() + 7) / 8 * 8, ' ');
  uint64_t length = text.size();
  parts[0] = StringRef(reinterpret_cast<const char *>(&length), 8);
  parts[1] = text;
  return writeFile(path, parts);
}

//===----------------------------------------------------------------------===//
// Comparison
//===----------------------------------------------------------------------===//

double toleranceOf(uint32_t dtype) {
  switch (dtype) {
  case CLEAVE_F32:
    return 1e-5;
  case CLEAVE_F64:
    return 1e-12;
  case CLEAVE_BF16:
    return 2e-2;
  case CLEAVE_F16:
    return 3e-3;
  default:
    return 0;
  }
}

template <typename T> static double load(const char *at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return static_cast<double>(value);
}

static double readNumber(const char *data, int64_t i, uint32_t dtype) {
  const char *at = data + i * rt::dtypeBytes(dtype);
  switch (dtype) {
  case CLEAVE_F32:
    return load<float>(at);
  case CLEAVE_F64:
    return load<double>(at);
  case CLEAVE_F16:
    return rt::f16ToFloat(static_cast<uint16_t>(load<uint16_t>(at)));
  case CLEAVE_I32:
    return load<int32_t>(at);
  case CLEAVE_I64:
    return load<int64_t>(at);
  case CLEAVE_I16:
    return load<int16_t>(at);
  default:
    return load<int8_t>(at);
  }
}

static std::string place(const EdgeTensorType &type, int64_t i) {
  std::string text = "]";
  for (int64_t size : reverse(type.shape)) {
    text = (text == "]" ? "" : ", ") + text;
    text = std::to_string(i % size) + text;
    i /= size;
  }
  return "[" + text;
}

Expected<Difference> compareNpy(StringRef reference, StringRef other,
                                const EdgeTensorType &type, double tolerance) {
  rt::NpyFile a, b;
  for (auto [file, path] : {std::pair(&a, reference), std::pair(&b, other)}) {
    rt::Status status = file->open(path.str());
    if (!status.ok())
      return fail(status.message());
    if (file->array.shape != type.shape)
      return fail("'" + path + "' has another shape than '" + type.name + "'");
  }
  Difference result;
  uint32_t dtype = a.array.dtype;
  int64_t n = type.numElements();
  double largest = 0;
  for (int64_t i = 0; i < n; ++i)
    if (double x = std::abs(readNumber(a.array.data, i, dtype));
        std::isfinite(x))
      largest = std::max(largest, x);
  double own = toleranceOf(type.dtype);
  double allowed =
      (own == 0 ? 0 : std::max(own, tolerance)) * std::max(1.0, largest);
  for (int64_t i = 0; i < n; ++i) {
    double x = readNumber(a.array.data, i, dtype);
    double y = readNumber(b.array.data, i, dtype);
    if (x == y || (std::isnan(x) && std::isnan(y)))
      continue;
    double abs = std::abs(x - y);
    if (!std::isfinite(abs))
      abs = std::numeric_limits<double>::max();
    result.maxAbs = std::max(result.maxAbs, abs);
    result.maxRel = std::max(result.maxRel, abs / std::max(std::abs(x), 1e-30));
    if (abs <= allowed || !result.equal)
      continue;
    result.equal = false;
    raw_string_ostream(result.first)
        << place(type, i) << ": " << y << " instead of " << x;
  }
  return result;
}

} // namespace cleave

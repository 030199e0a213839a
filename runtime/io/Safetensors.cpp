//===- Safetensors.cpp - Weight files -------------------------------------===//
// A file is: 8 bytes, the little-endian length of the header; the header, a
// JSON object from names to {dtype, shape, data_offsets: [begin, end]}, with
// offsets from the end of the header; then the data, row-major.
#include "runtime/io/Safetensors.h"
#include "runtime/support/Names.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

namespace cleave::rt {

namespace {

struct Extent {
  int64_t begin, end;
  std::string name;
};

/// Finds a key that comes twice, which the JSON library silently merges. Keys
/// of tensors stand at depth one.
struct DuplicateFinder {
  std::string *duplicate;
  std::map<std::string, bool> seen;

  bool operator()(int depth, nlohmann::json::parse_event_t event,
                  nlohmann::json &parsed) {
    if (depth == 1 && event == nlohmann::json::parse_event_t::key &&
        !seen.emplace(parsed.get<std::string>(), true).second)
      *duplicate = parsed.get<std::string>();
    return true;
  }
};

} // namespace

static int dtypeOfCode(const std::string &code) {
  struct Known {
    const char *code;
    uint32_t dtype;
  };
  static constexpr Known known[] = {
      {"F32", CLEAVE_F32}, {"BF16", CLEAVE_BF16}, {"F16", CLEAVE_F16},
      {"F64", CLEAVE_F64}, {"I32", CLEAVE_I32},   {"I64", CLEAVE_I64},
      {"I16", CLEAVE_I16}, {"I8", CLEAVE_I8},     {"BOOL", CLEAVE_I1}};
  for (const Known &k : known)
    if (code == k.code)
      return int(k.dtype);
  return -1;
}

/// Sizes and offsets are whole numbers that are not negative.
static bool readNumbers(const nlohmann::json &list,
                        std::vector<int64_t> *numbers) {
  if (!list.is_array())
    return false;
  for (const nlohmann::json &item : list) {
    if (!item.is_number_unsigned() || item.get<uint64_t>() > INT64_MAX)
      return false;
    numbers->push_back(int64_t(item.get<uint64_t>()));
  }
  return true;
}

/// One tensor's entry. A type that no program has is skipped: such a tensor
/// may be in the file, but not be asked for.
static Status parseTensor(const std::string &name, const nlohmann::json &entry,
                          int64_t dataBytes, GlobalArray *array,
                          Extent *extent) {
  auto wrong = [&](const auto &...pieces) {
    return invalidArgument("tensor '", name, "' ", concat(pieces...));
  };
  std::vector<int64_t> offsets;
  if (!entry.is_object() || !entry.contains("dtype") ||
      !entry["dtype"].is_string() || !entry.contains("shape") ||
      !readNumbers(entry["shape"], &array->shape) ||
      !entry.contains("data_offsets") ||
      !readNumbers(entry["data_offsets"], &offsets) || offsets.size() != 2)
    return wrong("needs a 'dtype', a 'shape' and two 'data_offsets'");
  if (offsets[0] > offsets[1] || offsets[1] > dataBytes)
    return wrong("lies at bytes ", offsets[0], " to ", offsets[1],
                 ", the file has ", dataBytes, "; it may be cut off");
  *extent = {offsets[0], offsets[1], name};
  int dtype = dtypeOfCode(entry["dtype"].get<std::string>());
  array->dtype = dtype < 0 ? kNumDtypes : uint32_t(dtype);
  if (dtype < 0)
    return Status();
  int64_t bytes = dtypeBytes(array->dtype);
  bool tooLarge = false;
  for (int64_t n : array->shape)
    tooLarge |= __builtin_mul_overflow(bytes, n, &bytes);
  if (tooLarge || bytes != offsets[1] - offsets[0])
    return wrong(
        "of ", shapeText(array->shape.data(), int64_t(array->shape.size())),
        " ", dtypeName(array->dtype), " takes ", offsets[1] - offsets[0],
        " bytes in the file, which do not fit that shape");
  array->setSteps(/*fortranOrder=*/false);
  return Status();
}

static Status checkOverlaps(std::vector<Extent> extents) {
  std::sort(extents.begin(), extents.end(),
            [](const Extent &a, const Extent &b) {
              return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
            });
  for (size_t i = 1; i < extents.size(); ++i)
    if (extents[i].begin < extents[i - 1].end)
      return invalidArgument("tensors '", extents[i - 1].name, "' and '",
                             extents[i].name, "' overlap");
  return Status();
}

Status Safetensors::parse(const std::string &path, const MappedFile &file) {
  constexpr int64_t kPrefix = 8;
  uint64_t length = 0;
  if (file.size() >= kPrefix)
    std::memcpy(&length, file.data(), kPrefix);
  if (file.size() < kPrefix || length > uint64_t(file.size() - kPrefix))
    return invalidArgument("the header of ", length,
                           " bytes does not fit the file of ", file.size(),
                           "; it may be cut off or no safetensors file");
  const char *text = file.data() + kPrefix;
  std::string duplicate;
  nlohmann::json header = nlohmann::json::parse(text, text + length,
                                                DuplicateFinder{&duplicate, {}},
                                                /*allow_exceptions=*/false);
  if (header.is_discarded() || !header.is_object())
    return invalidArgument("the header is no JSON object");
  if (!duplicate.empty())
    return invalidArgument("tensor '", duplicate, "' occurs twice");
  std::vector<Extent> extents;
  int64_t dataBytes = file.size() - kPrefix - int64_t(length);
  for (const auto &[name, entry] : header.items()) {
    if (name == "__metadata__")
      continue;
    GlobalArray array;
    Extent extent;
    CLEAVE_RETURN_IF_ERROR(
        parseTensor(name, entry, dataBytes, &array, &extent));
    if (array.dtype >= kNumDtypes)
      otherTypes[name] = entry["dtype"].get<std::string>();
    array.data = const_cast<char *>(text) + length + extent.begin;
    extents.push_back(extent);
    if (!tensors.emplace(name, std::move(array)).second)
      return invalidArgument("tensor '", name,
                             "' is also in another weight file");
  }
  return checkOverlaps(std::move(extents));
}

Status Safetensors::add(const std::string &path) {
  MappedFile file;
  CLEAVE_RETURN_IF_ERROR(file.open(path));
  CLEAVE_RETURN_IF_ERROR(
      parse(path, file).within(concat("cannot read '", path, "'")));
  files.push_back(std::move(file));
  return Status();
}

const GlobalArray *Safetensors::find(const std::string &name) const {
  auto it = tensors.find(name);
  return it == tensors.end() ? nullptr : &it->second;
}

std::vector<std::string> Safetensors::names() const {
  std::vector<std::string> result;
  for (const auto &[name, array] : tensors)
    result.push_back(name);
  return result;
}

void Safetensors::release() const {
  for (const MappedFile &file : files)
    file.release();
}

std::string Safetensors::typeText(const std::string &name) const {
  uint32_t dtype = tensors.at(name).dtype;
  return dtype < kNumDtypes ? dtypeName(dtype) : otherTypes.at(name);
}

} // namespace cleave::rt

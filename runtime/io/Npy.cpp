//===- Npy.cpp - NumPy's .npy files ---------------------------------------===//
#include "runtime/io/Npy.h"
#include "runtime/support/Names.h"

#include <charconv>
#include <cstring>

namespace cleave::rt {

//===----------------------------------------------------------------------===//
// The header: a Python dictionary
//===----------------------------------------------------------------------===//

namespace {

/// Reads {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }. Keys may
/// come in any order.
class HeaderParser {
public:
  HeaderParser(std::string_view text) : rest(text) {}

  bool parse();
  std::string descr;
  bool fortranOrder = false;
  std::vector<int64_t> shape;

private:
  void skipSpace() {
    while (!rest.empty() && std::strchr(" \t\n\r", rest.front()))
      rest.remove_prefix(1);
  }
  bool eat(std::string_view token) {
    skipSpace();
    if (rest.substr(0, token.size()) != token)
      return false;
    rest.remove_prefix(token.size());
    return true;
  }
  bool string(std::string *value);
  bool boolean(bool *value);
  bool tuple();

  std::string_view rest;
};

bool HeaderParser::string(std::string *value) {
  skipSpace();
  if (rest.empty() || (rest.front() != '\'' && rest.front() != '"'))
    return false;
  size_t end = rest.find(rest.front(), 1);
  if (end == std::string_view::npos)
    return false;
  *value = std::string(rest.substr(1, end - 1));
  rest.remove_prefix(end + 1);
  return true;
}

bool HeaderParser::boolean(bool *value) {
  *value = eat("True");
  return *value || eat("False");
}

bool HeaderParser::tuple() {
  if (!eat("("))
    return false;
  while (!eat(")")) {
    skipSpace();
    int64_t size = 0;
    auto [end, error] =
        std::from_chars(rest.data(), rest.data() + rest.size(), size);
    if (error != std::errc() || size < 0)
      return false;
    rest.remove_prefix(size_t(end - rest.data()));
    shape.push_back(size);
    if (!eat(","))
      return eat(")");
  }
  return true;
}

bool HeaderParser::parse() {
  bool hasDescr = false, hasOrder = false, hasShape = false;
  if (!eat("{"))
    return false;
  while (!eat("}")) {
    std::string key;
    if (!string(&key) || !eat(":"))
      return false;
    if (key == "descr")
      hasDescr = string(&descr);
    else if (key == "fortran_order")
      hasOrder = boolean(&fortranOrder);
    else if (key == "shape")
      hasShape = tuple();
    else
      return false;
    if (!eat(",") && rest.substr(0, 1) != "}")
      return false;
  }
  return hasDescr && hasOrder && hasShape;
}

} // namespace

/// "<f4" and its like; -1 for types that no tensor has.
static int dtypeOfDescr(std::string_view descr) {
  struct Known {
    const char *code;
    uint32_t dtype;
  };
  static constexpr Known known[] = {{"f4", CLEAVE_F32}, {"f2", CLEAVE_F16},
                                    {"f8", CLEAVE_F64}, {"i4", CLEAVE_I32},
                                    {"i8", CLEAVE_I64}, {"i2", CLEAVE_I16},
                                    {"i1", CLEAVE_I8},  {"b1", CLEAVE_I1}};
  if (descr.size() != 3 || !std::strchr("<>|=", descr[0]))
    return -1;
  for (const Known &k : known)
    if (descr.substr(1) == k.code)
      return int(k.dtype);
  return -1;
}

static Status damaged(const char *why) {
  return invalidArgument("not a whole .npy file: ", why);
}

Status NpyFile::open(const std::string &path) {
  CLEAVE_RETURN_IF_ERROR(file.open(path));
  return parse(file.data(), file.size())
      .within(concat("cannot read '", path, "'"));
}

Status NpyFile::parse(const char *data, int64_t size) {
  constexpr int64_t kPrefix = 8; // magic, version
  if (size < kPrefix || std::memcmp(data, "\x93NUMPY", 6) != 0)
    return damaged("it does not start with the magic string");
  int version = data[6];
  if (version < 1 || version > 3)
    return invalidArgument("version ", version,
                           " of the .npy format; versions 1 to 3 are known");
  int64_t lengthBytes = version == 1 ? 2 : 4, length = 0;
  if (size < kPrefix + lengthBytes)
    return damaged("the header is cut off");
  for (int64_t i = lengthBytes; i-- > 0;)
    length = length * 256 + static_cast<unsigned char>(data[kPrefix + i]);
  int64_t begin = kPrefix + lengthBytes;
  if (length > size - begin)
    return damaged("the header is cut off");
  HeaderParser header(std::string_view(data + begin, size_t(length)));
  if (!header.parse())
    return damaged("the header is no dictionary of 'descr', 'fortran_order' "
                   "and 'shape'");
  int dtype = dtypeOfDescr(header.descr);
  if (dtype < 0)
    return invalidArgument("the element type is '", header.descr,
                           "'; f2, f4, f8, i1, i2, i4, i8 and b1 are known");
  array.dtype = uint32_t(dtype);
  array.swapBytes = header.descr[0] == '>' && dtypeBytes(array.dtype) > 1;
  array.shape = header.shape;
  int64_t bytes = dtypeBytes(array.dtype);
  bool tooLarge = false;
  for (int64_t n : array.shape)
    tooLarge |= __builtin_mul_overflow(bytes, n, &bytes);
  int64_t given = size - begin - length;
  if (tooLarge || given < bytes)
    return invalidArgument(
        "not a whole .npy file: an array of ",
        shapeText(array.shape.data(), int64_t(array.shape.size())), " ",
        dtypeName(array.dtype),
        tooLarge ? " does not fit any file"
                 : concat(" needs ", bytes, " bytes, the file has ", given));
  array.setSteps(header.fortranOrder);
  array.data = const_cast<char *>(data) + begin + length;
  return Status();
}

Status checkNpy(const GlobalArray &array, const CleaveTensor &tensor,
                const std::string &what) {
  std::vector<int64_t> expected(tensor.shape, tensor.shape + tensor.rank);
  if (array.shape != expected)
    return invalidArgument(
        what, " has shape ",
        shapeText(array.shape.data(), int64_t(array.shape.size())),
        ", the program expects ", shapeText(tensor.shape, tensor.rank));
  bool sameType = array.dtype == tensor.dtype;
  bool narrows =
      array.dtype == CLEAVE_F32 && canConvert(CLEAVE_F32, tensor.dtype);
  if (sameType || narrows)
    return Status();
  const char *also = tensor.dtype == CLEAVE_F16 ? " (or f32)" : "";
  return invalidArgument(what, " has type ", dtypeName(array.dtype),
                         ", the program expects ",
                         dtypeName(npyDtype(tensor.dtype)), also,
                         tensor.dtype == CLEAVE_BF16 ? " for its bf16" : "");
}

uint32_t npyDtype(uint32_t dtype) {
  return dtype == CLEAVE_BF16 ? uint32_t(CLEAVE_F32) : dtype;
}

std::string npyHeader(uint32_t dtype, const int64_t *shape, int64_t rank) {
  static constexpr const char *codes[kNumDtypes] = {
      "<f4", "", "<f2", "<f8", "<i4", "<i8", "<i2", "|i1", "|b1"};
  std::string text = concat("{'descr': '", codes[dtype],
                            "', 'fortran_order': False, 'shape': (");
  for (int64_t d = 0; d < rank; ++d)
    text += concat(shape[d], d + 1 < rank ? ", " : rank == 1 ? "," : "");
  text += "), }";
  // The data start at a multiple of 64; the header ends with a new line.
  bool large = text.size() + 80 > 65535;
  size_t prefix = large ? 12 : 10;
  text.append(63 - (prefix + text.size()) % 64, ' ');
  text += '\n';
  std::string out = large ? std::string("\x93NUMPY\x02\x00", 8)
                          : std::string("\x93NUMPY\x01\x00", 8);
  for (size_t i = 0; i < prefix - 8; ++i)
    out += char((text.size() >> (8 * i)) & 255);
  return out + text;
}

} // namespace cleave::rt

//===- Pack.cpp - One rank's weights, ready to map ------------------------===//
#include "runtime/io/Pack.h"
#include "runtime/cpu/Isa.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sys/mman.h>
#include <unistd.h>

namespace cleave::rt {

constexpr char kMagic[] = "CLEAVEPK";
constexpr int64_t kPrefix = 16, kPage = 4096, kVersion = 1;

static int64_t roundUp(int64_t value) {
  return (value + kPage - 1) / kPage * kPage;
}

std::string packPath(const std::string &folder, int64_t rank) {
  return concat(folder, "/rank-", rank, ".pack");
}

/// "tp=2, dp=3", with the order of the ranks where it is another than usual.
static std::string meshText(const CleaveProgram &program) {
  std::string axes, order;
  bool usual = true;
  for (int64_t a = 0; a < program.numAxes; ++a)
    axes +=
        concat(a ? ", " : "", program.axisNames[a], "=", program.axisSizes[a]);
  for (int64_t i = 0; i < program.numRanks; ++i) {
    order += concat(i ? " " : "", program.ranks[i]);
    usual &= program.ranks[i] == i;
  }
  return axes.empty() ? "one rank" : axes + (usual ? "" : ", ranks " + order);
}

/// Parts of the resident area that hold no state.
static std::vector<std::pair<int64_t, int64_t>>
weightRanges(const CleaveProgram &program) {
  std::vector<std::pair<int64_t, int64_t>> states, ranges;
  for (int64_t i = 0; i < program.numStates; ++i)
    states.push_back({program.states[i].offset,
                      program.states[i].offset + program.states[i].bytes});
  std::sort(states.begin(), states.end());
  states.push_back({program.residentBytes, program.residentBytes});
  int64_t at = 0;
  for (auto [begin, end] : states) {
    if (at < begin)
      ranges.push_back({at, begin});
    at = std::max(at, end);
  }
  return ranges;
}

int64_t packedBytes(const CleaveProgram &program) {
  int64_t bytes = 0;
  for (auto [begin, end] : weightRanges(program))
    bytes += end - begin;
  return bytes;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

static std::string headOf(const CleaveProgram &program, int64_t rank) {
  nlohmann::json text = {{"version", kVersion},
                         {"rank", rank},
                         {"mesh", meshText(program)},
                         {"isa", isaName(program.isa)},
                         {"bytes", program.residentBytes},
                         {"layout", program.layout ? program.layout : ""}};
  std::string head = text.dump();
  uint64_t length = head.size();
  head.insert(0, reinterpret_cast<const char *>(&length), 8);
  head.insert(0, kMagic, 8);
  head.resize(size_t(roundUp(int64_t(head.size()))), '\0');
  return head;
}

Status PackWriter::open(const CleaveProgram &program, const std::string &folder,
                        int64_t rank, const std::string &suffix, bool join) {
  head = headOf(program, rank);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return errnoStatus(concat("cannot make the folder '", folder, "'"),
                       error.value());
  std::string path = packPath(folder, rank);
  return join ? file.join(path, suffix)
              : file.create(
                    path, int64_t(head.size()) + roundUp(program.residentBytes),
                    suffix);
}

Status PackWriter::write(const CleaveProgram &program, const char *resident) {
  char *data;
  CLEAVE_RETURN_IF_ERROR(file.map(&data));
  std::memcpy(data, head.data(), head.size());
  for (auto [begin, end] : weightRanges(program))
    std::memcpy(data + head.size() + begin, resident + begin,
                size_t(end - begin));
  return Status();
}

//===----------------------------------------------------------------------===//
// Using
//===----------------------------------------------------------------------===//

PackFile &PackFile::operator=(PackFile &&other) noexcept {
  std::swap(path, other.path);
  std::swap(fd, other.fd);
  std::swap(file, other.file);
  std::swap(areaAt, other.areaAt);
  return *this;
}

PackFile::~PackFile() {
  if (fd >= 0)
    ::close(fd);
}

/// The first line in which two layouts differ, and the same line of the other.
static std::pair<std::string, std::string>
firstDifference(const std::string &a, const std::string &b) {
  size_t at = 0;
  while (at < a.size() && at < b.size() && a[at] == b[at])
    ++at;
  at = at == 0 ? 0 : a.rfind('\n', at - 1) + 1;
  auto lineAt = [&](const std::string &text) {
    std::string line = text.substr(at, text.find('\n', at) - at);
    return line.empty() ? "nothing" : line;
  };
  return {lineAt(a), lineAt(b)};
}

Status PackFile::check(const CleaveProgram &program, int64_t rank) const {
  uint64_t length = 0;
  if (file.size() >= kPrefix)
    std::memcpy(&length, file.data() + 8, 8);
  if (file.size() < kPrefix || std::memcmp(file.data(), kMagic, 8) != 0 ||
      length > uint64_t(file.size() - kPrefix))
    return invalidArgument("'", path, "' is no pack of weights, or cut off");
  const char *text = file.data() + kPrefix;
  nlohmann::json head = nlohmann::json::parse(text, text + length, nullptr,
                                              /*allow_exceptions=*/false);
  if (head.is_discarded() || head.value("version", int64_t(0)) != kVersion)
    return invalidArgument("'", path,
                           "' was packed by another version of "
                           "Cleave; pack the weights again");
  std::string mesh = head.value("mesh", ""), isa = head.value("isa", ""),
              layout = head.value("layout", "");
  if (mesh != meshText(program))
    return invalidArgument("'", path, "' is packed for the mesh ", mesh,
                           ", the program has ", meshText(program));
  if (head.value("rank", int64_t(-1)) != rank)
    return invalidArgument("'", path, "' is the pack of rank ",
                           head.value("rank", int64_t(-1)), ", not of rank ",
                           rank);
  auto [there, here] =
      firstDifference(layout, program.layout ? program.layout : "");
  if (isa != isaName(program.isa))
    return invalidArgument("'", path, "' is packed for the CPU level ", isa,
                           ", this run uses ", isaName(program.isa),
                           "; pack the weights again, or set CLEAVE_ISA=", isa);
  if (there != here)
    return invalidArgument("'", path,
                           "' is packed for another program: it has ", there,
                           ", where this one has ", here);
  int64_t expected =
      roundUp(kPrefix + int64_t(length)) + roundUp(program.residentBytes);
  if (file.size() != expected)
    return invalidArgument("'", path, "' is cut off: it has ", file.size(),
                           " bytes instead of ", expected);
  return Status();
}

Status PackFile::open(const CleaveProgram &program, const std::string &folder,
                      int64_t rank) {
  path = packPath(folder, rank);
  CLEAVE_RETURN_IF_ERROR(file.open(path).within("--packed"));
  CLEAVE_RETURN_IF_ERROR(check(program, rank));
  areaAt = file.size() - roundUp(program.residentBytes);
  fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  return fd < 0 ? errnoStatus(concat("cannot open '", path, "'"), errno)
                : Status();
}

Status PackFile::place(const CleaveProgram &program, char *resident,
                       bool maps) const {
  for (auto [begin, end] : weightRanges(program)) {
    int64_t first = roundUp(begin);
    int64_t last =
        end == program.residentBytes ? roundUp(end) : end / kPage * kPage;
    auto copy = [&](int64_t from, int64_t to) {
      if (from < to)
        std::memcpy(resident + from, file.data() + areaAt + from,
                    size_t(to - from));
    };
    if (first >= last || !maps) {
      copy(begin, end);
      continue;
    }
    copy(begin, first);
    copy(last, end);
    if (mmap(resident + first, size_t(last - first), PROT_READ,
             MAP_SHARED | MAP_FIXED, fd, areaAt + first) == MAP_FAILED)
      return errnoStatus(concat("cannot map '", path, "'"), errno);
  }
  return Status();
}

} // namespace cleave::rt

//===- Machine.cpp - What the ranks run on and how they are linked --------===//
#include "passes/cost/Machine.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <unistd.h>

using namespace llvm;

namespace cleave {

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace {

/// Walks one machine file. The first mistake is kept; readers then return
/// neutral values, so that the code reads straight.
class Reader {
public:
  explicit Reader(StringRef file) : file(file) {}

  Machine read(const json::Value &root);
  Error takeError() {
    if (message.empty())
      return Error::success();
    return createStringError(inconvertibleErrorCode(), message);
  }

private:
  void fail(const Twine &text) {
    if (message.empty())
      message = (file + ": " + text).str();
  }
  /// The object at `path`, which has exactly these keys.
  const json::Object *object(const json::Value *value, const Twine &path,
                             ArrayRef<StringRef> keys);
  std::string string(const json::Object *in, StringRef key, const Twine &path);
  double positive(const json::Object *in, StringRef key, const Twine &path);
  bool boolean(const json::Object *in, StringRef key, const Twine &path);
  std::optional<int64_t> countOrNull(const json::Object *in, StringRef key,
                                     const Twine &path);
  void readDevice(const json::Value *value, Device &device);
  void readTiers(const json::Value *value, std::vector<Tier> &tiers);

  StringRef file;
  std::string message;
};

} // namespace

static std::string quotedList(ArrayRef<StringRef> keys) {
  std::string text;
  raw_string_ostream os(text);
  interleave(
      keys, [&](StringRef key) { os << '\'' << key << '\''; },
      [&] { os << ", "; });
  return text;
}

static std::string where(const Twine &path) {
  std::string text = path.str();
  return text.empty() ? "the machine" : "'" + text + "'";
}

static std::string member(const Twine &path, StringRef key) {
  std::string text = path.str();
  return text.empty() ? key.str() : text + "." + key.str();
}

const json::Object *Reader::object(const json::Value *value, const Twine &path,
                                   ArrayRef<StringRef> keys) {
  const json::Object *result = value ? value->getAsObject() : nullptr;
  if (!result) {
    fail(where(path) + " is not an object; it has the keys " +
         quotedList(keys));
    return nullptr;
  }
  SmallVector<StringRef> present;
  for (const auto &entry : *result)
    present.push_back(entry.first);
  sort(present);
  for (StringRef key : present)
    if (!is_contained(keys, key)) {
      fail("unknown key '" + member(path, key) + "'; " + where(path) +
           " has the keys " + quotedList(keys));
      return nullptr;
    }
  for (StringRef key : keys)
    if (!result->get(key)) {
      fail("'" + member(path, key) + "' is missing; " + where(path) +
           " has the keys " + quotedList(keys));
      return nullptr;
    }
  return result;
}

std::string Reader::string(const json::Object *in, StringRef key,
                           const Twine &path) {
  if (!in)
    return "";
  std::optional<StringRef> text = in->getString(key);
  if (!text || text->empty())
    fail("'" + member(path, key) + "' is not a non-empty string");
  return text.value_or("").str();
}

double Reader::positive(const json::Object *in, StringRef key,
                        const Twine &path) {
  if (!in)
    return 1;
  std::optional<double> number = in->getNumber(key);
  if (!number || !(*number > 0))
    fail("'" + member(path, key) + "' is not a number above 0");
  return number.value_or(1);
}

bool Reader::boolean(const json::Object *in, StringRef key, const Twine &path) {
  if (!in)
    return false;
  std::optional<bool> value = in->getBoolean(key);
  if (!value)
    fail("'" + member(path, key) + "' is not true or false");
  return value.value_or(false);
}

std::optional<int64_t> Reader::countOrNull(const json::Object *in,
                                           StringRef key, const Twine &path) {
  if (!in || in->getNull(key))
    return std::nullopt;
  std::optional<int64_t> number = in->getInteger(key);
  if (!number || *number < 1)
    fail("'" + member(path, key) + "' is not an integer above 0 or null");
  return number;
}

void Reader::readDevice(const json::Value *value, Device &device) {
  const json::Object *in = object(
      value, "device",
      {"name", "memory_bytes", "memory_shared", "memory_bandwidth", "flops"});
  if (!in)
    return;
  device.name = string(in, "name", "device");
  if (std::optional<int64_t> bytes = countOrNull(in, "memory_bytes", "device"))
    device.memoryBytes = *bytes;
  else
    device.memoryBytes =
        static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  device.memoryShared = boolean(in, "memory_shared", "device");
  device.memoryBandwidth = positive(in, "memory_bandwidth", "device");
  const json::Object *flops = in->getObject("flops");
  if (!flops || flops->empty())
    return fail("'device.flops' is not an object of element types and "
                "operations a second, such as {\"f32\": 1e12}");
  static constexpr StringRef kTypes[] = {"f64", "f32", "tf32", "bf16", "f16",
                                         "f8",  "i64", "i32",  "i16",  "i8"};
  for (const auto &entry : *flops) {
    StringRef type = entry.first;
    if (!is_contained(kTypes, type))
      return fail("unknown element type 'device.flops." + type.str() +
                  "'; known are " + quotedList(kTypes));
    device.flops[type] = positive(flops, type, "device.flops");
  }
}

void Reader::readTiers(const json::Value *value, std::vector<Tier> &tiers) {
  const json::Array *list = value ? value->getAsArray() : nullptr;
  if (!list || list->empty())
    return fail("'tiers' is not a list of at least one tier");
  for (auto [i, item] : enumerate(*list)) {
    std::string path = ("tiers[" + Twine(i) + "]").str();
    const json::Object *in =
        object(&item, path, {"name", "ranks", "latency", "bandwidth"});
    Tier tier;
    tier.name = string(in, "name", path);
    tier.ranks = countOrNull(in, "ranks", path).value_or(0);
    tier.latency = positive(in, "latency", path);
    tier.bandwidth = positive(in, "bandwidth", path);
    int64_t inner = tiers.empty() ? 1 : tiers.back().ranks;
    if (inner == 0 || (tier.ranks != 0 && (tier.ranks % inner != 0 ||
                                           (i > 0 && tier.ranks == inner))))
      fail("'" + path + ".ranks' is " + Twine(tier.ranks) +
           " after a tier of " + Twine(inner) +
           "; tiers go from near to far, each a multiple of the one before, "
           "and only the last may be null (any number of ranks)");
    tiers.push_back(tier);
  }
}

Machine Reader::read(const json::Value &root) {
  Machine machine;
  const json::Object *in = object(
      &root, "", {"name", "basis", "source", "device", "overhead", "tiers"});
  machine.tiers.clear();
  if (!in)
    return machine;
  machine.name = string(in, "name", "");
  machine.basis = string(in, "basis", "");
  if (machine.basis != "modelled" && machine.basis != "measured")
    fail("'basis' is not 'modelled' or 'measured'");
  machine.source = string(in, "source", "");
  readDevice(in->get("device"), machine.device);
  machine.overhead = positive(in, "overhead", "");
  readTiers(in->get("tiers"), machine.tiers);
  return machine;
}

Expected<Machine> parseMachine(StringRef text, StringRef file) {
  Expected<json::Value> root = json::parse(text);
  if (!root)
    return createStringError(inconvertibleErrorCode(),
                             file +
                                 ": not JSON: " + toString(root.takeError()));
  Reader reader(file);
  Machine machine = reader.read(*root);
  if (Error error = reader.takeError())
    return std::move(error);
  return machine;
}

//===----------------------------------------------------------------------===//
// Built-in machines: the files of machines/, embedded when configured
//===----------------------------------------------------------------------===//

namespace {
struct BuiltinFile {
  const char *name;
  const char *text;
};
} // namespace

static constexpr BuiltinFile kBuiltins[] = {
#include "passes/cost/BuiltinMachines.inc"
};

std::vector<std::string> builtinMachineNames() {
  std::vector<std::string> names;
  for (const BuiltinFile &file : kBuiltins)
    names.push_back(file.name);
  return names;
}

static std::string unknownMachine(StringRef name) {
  std::vector<std::string> names = builtinMachineNames();
  llvm::sort(names, [&](const std::string &a, const std::string &b) {
    auto distance = [&](StringRef known) {
      return std::pair(known.edit_distance_insensitive(name), known);
    };
    return distance(a) < distance(b);
  });
  std::string text;
  raw_string_ostream os(text);
  os << "no machine is named '" << name << "'; known are ";
  interleave(
      names, [&](const std::string &known) { os << '\'' << known << '\''; },
      [&] { os << ", "; });
  os << ", or the path of a .json file";
  return text;
}

Expected<Machine> findMachine(StringRef nameOrFile) {
  for (const BuiltinFile &file : kBuiltins)
    if (nameOrFile == file.name)
      return parseMachine(file.text, (nameOrFile + ".json").str());
  if (!nameOrFile.ends_with(".json") && !nameOrFile.contains('/'))
    return createStringError(inconvertibleErrorCode(),
                             unknownMachine(nameOrFile));
  ErrorOr<std::unique_ptr<MemoryBuffer>> buffer =
      MemoryBuffer::getFile(nameOrFile, /*IsText=*/true);
  if (!buffer)
    return createStringError(buffer.getError(),
                             "cannot read the machine file '" + nameOrFile +
                                 "': " + buffer.getError().message());
  return parseMachine((*buffer)->getBuffer(), nameOrFile);
}

const Machine &cpuLocalMachine() {
  static const Machine machine = cantFail(
      findMachine("cpu-local"), "machines/cpu-local.json is well-formed");
  return machine;
}

//===----------------------------------------------------------------------===//
// Topology
//===----------------------------------------------------------------------===//

Topology::Topology(const Mesh &mesh, const Machine &machine)
    : ourMesh(mesh), ourMachine(machine) {}

unsigned Topology::tierOf(AxisRef axis) const {
  auto [it, isNew] = tiers.try_emplace(axis, 0);
  if (isNew)
    it->second = computeTier(axis);
  return it->second;
}

unsigned Topology::tierOf(ArrayRef<AxisRef> axes) const {
  unsigned tier = 0;
  for (AxisRef axis : axes)
    tier = std::max(tier, tierOf(axis));
  return tier;
}

/// Whether the `size` ranks `stride` apart always share a run of `run` ranks.
static bool staysInside(const Mesh &mesh, int64_t stride, int64_t size,
                        int64_t run) {
  if (run == 0)
    return true;
  int64_t period = stride * size;
  if (mesh.ranks.empty() && run % period == 0)
    return true;
  auto rankAt = [&](int64_t i) {
    return mesh.ranks.empty() ? i : mesh.ranks[i];
  };
  for (int64_t i = 0, e = mesh.numRanks(); i < e; ++i) {
    int64_t first = i - (i % period) / stride * stride;
    if (rankAt(i) / run != rankAt(first) / run)
      return false;
  }
  return true;
}

unsigned Topology::computeTier(AxisRef axis) const {
  int64_t stride = ourMesh.axes[axis.axis].size / axis.next();
  for (size_t i = axis.axis + 1; i < ourMesh.axes.size(); ++i)
    stride *= ourMesh.axes[i].size;
  unsigned last = ourMachine.tiers.size() - 1;
  for (unsigned tier = 0; tier < last; ++tier)
    if (staysInside(ourMesh, stride, axis.size, ourMachine.tiers[tier].ranks))
      return tier;
  return last;
}

int64_t Topology::wireBytes(Collective kind, int64_t n, int64_t bytes) {
  switch (kind) {
  case Collective::AllReduce:
    return 2 * ceilDiv((n - 1) * bytes, n);
  case Collective::AllGather:
  case Collective::ReduceScatter:
  case Collective::AllToAll:
    return ceilDiv((n - 1) * bytes, n);
  case Collective::Permute:
    return n > 1 ? bytes : 0;
  }
  llvm_unreachable("all kinds are listed");
}

SmallVector<Topology::Part, 2> Topology::parts(AxisRef axis) const {
  SmallVector<Part, 2> result;
  while (axis.size > 1) {
    // The largest minor part that stays inside the fastest tier possible.
    AxisRef minor = axis;
    unsigned tier = tierOf(axis);
    for (int64_t size = axis.size - 1; size > 1 && tier > 0; --size) {
      AxisRef part = {axis.axis, axis.pre * (axis.size / size), size};
      if (axis.size % size == 0 && tierOf(part) < tier) {
        minor = part;
        tier = tierOf(part);
      }
    }
    result.insert(result.begin(), {tier, minor});
    axis.size /= minor.size;
  }
  return result;
}

double Topology::seconds(Collective kind, ArrayRef<AxisRef> axes,
                         int64_t wire) const {
  SmallVector<Part, 4> all;
  for (AxisRef axis : axes)
    append_range(all, parts(axis));
  return seconds(kind, all, wire);
}

double Topology::seconds(Collective kind, ArrayRef<Part> parts,
                         int64_t wire) const {
  // Rounds double the ranks that have met, so that one collective over two axes
  // is never slower than one over each: 3 rounds over 8 ranks, 1 more over 2
  // nodes. The bytes are those of a ring at the pace of its slowest link.
  unsigned slowest = 0;
  double latency = 0;
  for (const Part &part : parts) {
    slowest = std::max(slowest, part.tier);
    latency +=
        std::log2(part.digits.size) * ourMachine.tiers[part.tier].latency;
  }
  const Tier &link = ourMachine.tiers[slowest];
  if (kind == Collective::AllReduce)
    latency *= 2;
  if (kind == Collective::Permute)
    latency = link.latency;
  return ourMachine.overhead + latency + wire / link.bandwidth;
}

double Topology::exchangeSeconds(unsigned tier, int64_t peers,
                                 int64_t wire) const {
  return ourMachine.overhead +
         std::log2(1 + peers) * ourMachine.tiers[tier].latency +
         wire / ourMachine.tiers[tier].bandwidth;
}

} // namespace cleave

//===- Request.cpp - One run, checked before it starts --------------------===//
#include "runtime/launch/Request.h"
#include "runtime/support/Names.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>

namespace cleave::rt {

//===----------------------------------------------------------------------===//
// Checking, before anything is allocated
//===----------------------------------------------------------------------===//

static std::vector<std::string> namesOf(const CleaveTensor *tensors,
                                        int64_t count) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < count; ++i)
    names.push_back(tensors[i].name);
  return names;
}

/// By name; for state also by the name it is stored under.
static const CleaveTensor *findTensor(const std::string &name,
                                      const CleaveTensor *tensors,
                                      int64_t count) {
  for (int64_t i = 0; i < count; ++i)
    if (name == tensors[i].name)
      return &tensors[i];
  for (int64_t i = 0; i < count; ++i)
    if (tensors[i].role == CLEAVE_STATE && tensors[i].storeName &&
        name == tensors[i].storeName)
      return &tensors[i];
  return nullptr;
}

static Status unknownName(const char *role, const std::string &name,
                          const CleaveTensor *tensors, int64_t count) {
  return notFound("unknown ", role, " '", name, "'; known are ",
                  closestFirst(name, namesOf(tensors, count)));
}

Status Request::prepare() {
  CLEAVE_RETURN_IF_ERROR(checkProgram());
  CLEAVE_RETURN_IF_ERROR(findEntry());
  CLEAVE_RETURN_IF_ERROR(openInputs());
  CLEAVE_RETURN_IF_ERROR(openStates());
  CLEAVE_RETURN_IF_ERROR(findOutputs());
  return openWeights();
}

Status Request::checkProgram() const {
  for (int64_t i = 0; i < program.numWeights; ++i)
    CLEAVE_RETURN_IF_ERROR(
        checkTensor(program.weights[i], mesh, program.residentBytes));
  for (int64_t i = 0; i < program.numStates; ++i)
    CLEAVE_RETURN_IF_ERROR(
        checkTensor(program.states[i], mesh, program.residentBytes));
  for (int64_t e = 0; e < program.numEntries; ++e) {
    const CleaveEntry &each = program.entries[e];
    for (int64_t i = 0; i < each.numInputs; ++i)
      CLEAVE_RETURN_IF_ERROR(
          checkTensor(each.inputs[i], mesh, each.arenaBytes));
    for (int64_t i = 0; i < each.numOutputs; ++i)
      CLEAVE_RETURN_IF_ERROR(
          checkTensor(each.outputs[i], mesh, each.arenaBytes));
  }
  return Status();
}

Status Request::findEntry() {
  std::vector<std::string> names;
  for (int64_t e = 0; e < program.numEntries; ++e) {
    names.push_back(program.entries[e].name);
    if (options.entry == program.entries[e].name)
      entry = &program.entries[e];
  }
  if (options.entry.empty() && names.size() == 1)
    entry = &program.entries[0];
  if (entry)
    return Status();
  std::string known = closestFirst(options.entry, names);
  if (options.entry.empty())
    return invalidArgument("the program has several entries; give --entry, "
                           "one of ",
                           known);
  return notFound("unknown entry '", options.entry, "'; known are ", known);
}

static std::string fileText(const char *role, const NamedFile &file) {
  return concat(role, " '", file.name, "' from '", file.path, "'");
}

Status Request::openInputs() {
  for (const NamedFile &file : options.inputs) {
    const CleaveTensor *tensor =
        findTensor(file.name, entry->inputs, entry->numInputs);
    if (!tensor)
      return unknownName("input", file.name, entry->inputs, entry->numInputs);
    Read read{tensor, {}};
    CLEAVE_RETURN_IF_ERROR(
        read.file.open(file.path).within(concat("input '", file.name, "'")));
    CLEAVE_RETURN_IF_ERROR(
        checkNpy(read.file.array, *tensor, fileText("input", file)));
    inputs.push_back(std::move(read));
  }
  for (int64_t i = 0; i < entry->numInputs; ++i) {
    const CleaveTensor &tensor = entry->inputs[i];
    bool given = std::any_of(inputs.begin(), inputs.end(), [&](const Read &r) {
      return r.tensor == &tensor;
    });
    if (!given)
      return notFound("input '", tensor.name, "' (", typeText(tensor), ") of '",
                      entry->name, "' is missing; give --input ", tensor.name,
                      "=FILE.npy");
  }
  return Status();
}

Status Request::openStates() {
  for (const NamedFile &file : options.states) {
    const CleaveTensor *tensor =
        findTensor(file.name, program.states, program.numStates);
    if (!tensor)
      return unknownName("state", file.name, program.states, program.numStates);
    Read read{tensor, {}};
    CLEAVE_RETURN_IF_ERROR(
        read.file.open(file.path).within(concat("state '", file.name, "'")));
    CLEAVE_RETURN_IF_ERROR(
        checkNpy(read.file.array, *tensor, fileText("state", file)));
    states.push_back(std::move(read));
  }
  return Status();
}

Status Request::openWeights() {
  if (program.numWeights > 0 && options.weights.empty())
    return notFound("the program has ", program.numWeights,
                    program.numWeights == 1 ? " weight" : " weights", " ('",
                    program.weights[0].storeName,
                    program.numWeights == 1 ? "'" : "', ...",
                    "); give --weights FILE.safetensors");
  for (const std::string &path : options.weights)
    CLEAVE_RETURN_IF_ERROR(weights.add(path));
  for (int64_t i = 0; i < program.numWeights; ++i)
    CLEAVE_RETURN_IF_ERROR(weights.check(program.weights[i]));
  return Status();
}

Status Request::findOutputs() {
  for (const NamedFile &file : options.outputs)
    CLEAVE_RETURN_IF_ERROR(
        addWrite(file, "output", entry->outputs, entry->numOutputs));
  for (const NamedFile &file : options.savedStates)
    CLEAVE_RETURN_IF_ERROR(
        addWrite(file, "state", program.states, program.numStates));
  return Status();
}

Status Request::addWrite(const NamedFile &file, const char *role,
                         const CleaveTensor *tensors, int64_t count) {
  const CleaveTensor *tensor = findTensor(file.name, tensors, count);
  std::string name = file.name;
  int asked = -1;
  if (size_t colon = name.rfind(':'); !tensor && colon != std::string::npos) {
    asked = dtypeFromName(name.data() + colon + 1, name.size() - colon - 1);
    if (asked >= 0)
      tensor = findTensor(name.substr(0, colon), tensors, count);
  }
  if (!tensor)
    return unknownName(role, name, tensors, count);
  Write write{tensor, file.path, npyDtype(tensor->dtype), "", 0, {}};
  if (asked >= 0) {
    bool widens = asked == CLEAVE_F32 && canConvert(tensor->dtype, CLEAVE_F32);
    if (!widens && uint32_t(asked) != write.dtype)
      return invalidArgument(
          role, " '", tensor->name, "' has type ", dtypeName(tensor->dtype),
          ", which is not written as ", dtypeName(uint32_t(asked)));
    write.dtype = uint32_t(asked);
  }
  write.header = npyHeader(write.dtype, tensor->shape, tensor->rank);
  write.totalBytes = dtypeBytes(write.dtype);
  for (int64_t d = 0; d < tensor->rank; ++d)
    if (__builtin_mul_overflow(write.totalBytes, tensor->shape[d],
                               &write.totalBytes))
      return invalidArgument(role, " '", tensor->name, "' is too large");
  write.totalBytes += int64_t(write.header.size());
  writes.push_back(std::move(write));
  return Status();
}

//===----------------------------------------------------------------------===//
// Files to write
//===----------------------------------------------------------------------===//

Status Request::createOutputs(const std::string &suffix) {
  for (Write &write : writes) {
    std::string context = concat("output '", write.tensor->name, "'");
    CLEAVE_RETURN_IF_ERROR(
        write.file.create(write.path, write.totalBytes, suffix)
            .within(context));
    char *data;
    CLEAVE_RETURN_IF_ERROR(write.file.map(&data).within(context));
    std::memcpy(data, write.header.data(), write.header.size());
  }
  return Status();
}

Status Request::joinOutputs(const std::string &suffix) {
  for (Write &write : writes)
    CLEAVE_RETURN_IF_ERROR(
        write.file.join(write.path, suffix)
            .within(concat("output '", write.tensor->name, "'")));
  return Status();
}

Status Request::commit() {
  for (Write &write : writes)
    CLEAVE_RETURN_IF_ERROR(write.file.commit().within(
        concat("output '", write.tensor->name, "'")));
  return Status();
}

Status Request::writeOutputs(Rank &rank) {
  for (Write &write : writes) {
    const CleaveTensor &tensor = *write.tensor;
    if (!ownsBlock(tensor, mesh, rank.index))
      continue;
    char *data;
    CLEAVE_RETURN_IF_ERROR(write.file.map(&data));
    GlobalArray array;
    array.data = data + write.header.size();
    array.dtype = write.dtype;
    array.shape.assign(tensor.shape, tensor.shape + tensor.rank);
    array.setSteps(/*fortranOrder=*/false);
    char *base = tensor.role == CLEAVE_STATE ? rank.resident : rank.arena;
    writeBlock(tensor, BlockRange::of(tensor, mesh, rank.index),
               base + tensor.offset, array);
  }
  return Status();
}

//===----------------------------------------------------------------------===//
// Loading and running, in each rank
//===----------------------------------------------------------------------===//

Status Request::readInto(Rank &rank, const CleaveTensor &tensor,
                         const GlobalArray &array, char *block,
                         const std::string &what) {
  BlockRange range = BlockRange::of(tensor, mesh, rank.index);
  int64_t overflows = readBlock(tensor, range, array, block);
  if (overflows)
    return invalidArgument(what, " has ", overflows, " finite value",
                           overflows == 1 ? "" : "s", " that ",
                           dtypeName(tensor.dtype), " cannot hold (rank ",
                           rank.index, "'s part)");
  return Status();
}

Status Request::setInputs(Rank &rank) {
  for (const Read &read : inputs)
    CLEAVE_RETURN_IF_ERROR(readInto(rank, *read.tensor, read.file.array,
                                    rank.arena + read.tensor->offset,
                                    concat("input '", read.tensor->name, "'")));
  return Status();
}

/// A byte that neither zeros nor running indices look like.
static char patternAt(int64_t index) {
  uint64_t x = uint64_t(index) * 0x9e3779b97f4a7c15ull;
  return char(x >> 56);
}

static void fillPattern(char *data, int64_t size, char flip) {
  for (int64_t i = 0; i < size; ++i)
    data[i] = char(patternAt(i) ^ flip);
}

/// One past the last byte that no longer has the pattern.
static int64_t usedBytes(const char *data, int64_t size, char flip) {
  while (size > 0 && data[size - 1] == char(patternAt(size - 1) ^ flip))
    --size;
  return size;
}

/// One past the last byte of any of these blocks. A block counts whole, also on
/// a rank whose part of the tensor does not fill it.
static int64_t endOfBlocks(const CleaveTensor *tensors, int64_t count) {
  int64_t end = 0;
  for (int64_t i = 0; i < count; ++i)
    end = std::max(end, tensors[i].offset + tensors[i].bytes);
  return end;
}

Status Request::loadResident(Rank &rank) {
  used.weightBytes = 0;
  for (int64_t i = 0; i < program.numWeights; ++i) {
    const CleaveTensor &weight = program.weights[i];
    const GlobalArray &array = *weights.find(weight.storeName);
    CLEAVE_RETURN_IF_ERROR(readInto(rank, weight, array,
                                    rank.resident + weight.offset,
                                    concat("weight '", weight.storeName, "'")));
    used.weightBytes += BlockRange::of(weight, mesh, rank.index).numElements() *
                        dtypeBytes(array.dtype);
  }
  for (const Read &read : states)
    CLEAVE_RETURN_IF_ERROR(readInto(rank, *read.tensor, read.file.array,
                                    rank.resident + read.tensor->offset,
                                    concat("state '", read.tensor->name, "'")));
  return rank.init();
}

/// Measuring, it loads twice, into a pattern and into its complement: a byte
/// that was written differs from one of them.
Status Request::load(Rank &rank) {
  bool measures = !options.memoryFile.empty();
  used.resident = std::max(endOfBlocks(program.weights, program.numWeights),
                           endOfBlocks(program.states, program.numStates));
  for (char flip : {char(-1), char(0)}) {
    if (flip && !measures)
      continue;
    if (measures)
      fillPattern(rank.resident, program.residentBytes, flip);
    for (int64_t i = 0; measures && i < program.numStates; ++i)
      std::memset(rank.resident + program.states[i].offset, 0,
                  size_t(program.states[i].bytes));
    CLEAVE_RETURN_IF_ERROR(loadResident(rank));
    if (measures)
      used.resident = std::max(
          used.resident, usedBytes(rank.resident, program.residentBytes, flip));
  }
  if (options.verbose)
    std::fprintf(stderr, "rank %ld: read %ld bytes of weights\n",
                 long(rank.index), long(used.weightBytes));
  return Status();
}

/// Runs the entry twice on an arena full of a pattern and then of its
/// complement: a byte that was written differs from one of them. The state is
/// put back, so the calls that count start as if this had not been.
Status Request::measureArena(Rank &rank) {
  std::vector<char> saved(rank.resident, rank.resident + program.residentBytes);
  int64_t size = AreaLayout::of(program).arenaBytes + kGuardBytes;
  used.arena = std::max(endOfBlocks(entry->inputs, entry->numInputs),
                        endOfBlocks(entry->outputs, entry->numOutputs));
  for (char flip : {char(0), char(-1)}) {
    fillPattern(rank.arena, size, flip);
    CLEAVE_RETURN_IF_ERROR(setInputs(rank));
    CLEAVE_RETURN_IF_ERROR(rank.call(*entry));
    used.arena =
        std::max({used.arena, rank.commEnd, usedBytes(rank.arena, size, flip)});
    std::memcpy(rank.resident, saved.data(), saved.size());
  }
  return Status();
}

static double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

Status Request::run(Rank &rank) {
  if (!options.memoryFile.empty())
    CLEAVE_RETURN_IF_ERROR(measureArena(rank));
  if (!options.traceFile.empty())
    rank.trace = std::make_unique<Trace>();
  for (int64_t i = 0; i < options.repeat; ++i) {
    CLEAVE_RETURN_IF_ERROR(setInputs(rank));
    double start = now();
    CLEAVE_RETURN_IF_ERROR(rank.call(*entry));
    used.seconds.push_back(now() - start);
    if (options.verbose)
      std::fprintf(stderr, "rank %ld: call %ld took %.6f s\n", long(rank.index),
                   long(i), used.seconds.back());
  }
  return Status();
}

//===----------------------------------------------------------------------===//
// Reports
//===----------------------------------------------------------------------===//

static std::string partPath(const std::string &path, const std::string &suffix,
                            int64_t rank) {
  return concat(path, ".", suffix, ".", rank, ".tmp");
}

Status Request::writeReports(Rank &rank, const std::string &suffix) {
  if (rank.trace)
    CLEAVE_RETURN_IF_ERROR(
        writeTextFile(partPath(options.traceFile, suffix, rank.index),
                      rank.trace->json(rank.index)));
  if (options.memoryFile.empty())
    return Status();
  std::string seconds;
  for (double s : used.seconds)
    seconds += (seconds.empty() ? "" : ", ") + std::to_string(s);
  std::string text =
      concat("{\"rank\": ", rank.index,
             ", \"arena\": {\"planned\": ", entry->arenaBytes,
             ", \"used\": ", used.arena,
             "}, \"resident\": {\"planned\": ", program.residentBytes,
             ", \"used\": ", used.resident,
             "}, \"planned\": ", entry->arenaBytes + program.residentBytes,
             ", \"used\": ", used.arena + used.resident,
             ", \"weight_bytes_read\": ", used.weightBytes, ", \"seconds\": [",
             seconds, "]}");
  return writeTextFile(partPath(options.memoryFile, suffix, rank.index), text);
}

/// Joins the parts of all ranks into `path` and removes them.
static Status mergeParts(const std::string &path, const std::string &suffix,
                         int64_t numRanks, const char *head) {
  std::string text = head;
  for (int64_t r = 0; r < numRanks; ++r) {
    std::string part = partPath(path, suffix, r);
    MappedFile file;
    CLEAVE_RETURN_IF_ERROR(file.open(part));
    text += r ? ",\n" : "\n";
    text.append(file.data(), size_t(file.size()));
    std::remove(part.c_str());
  }
  return writeTextFile(path, text + "\n]}\n");
}

Status Request::mergeReports(const std::string &suffix) {
  if (!options.traceFile.empty())
    CLEAVE_RETURN_IF_ERROR(
        mergeParts(options.traceFile, suffix, program.numRanks,
                   "{\"displayTimeUnit\": \"ms\", \"traceEvents\": ["));
  if (!options.memoryFile.empty())
    CLEAVE_RETURN_IF_ERROR(mergeParts(options.memoryFile, suffix,
                                      program.numRanks, "{\"ranks\": ["));
  return Status();
}

void Request::discardReports(const std::string &suffix) {
  for (const std::string *path : {&options.traceFile, &options.memoryFile})
    for (int64_t r = 0; r < program.numRanks && !path->empty(); ++r)
      std::remove(partPath(*path, suffix, r).c_str());
}

} // namespace cleave::rt

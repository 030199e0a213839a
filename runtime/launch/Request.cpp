//===- Request.cpp - One run, checked before it starts --------------------===//
#include "runtime/launch/Request.h"
#include "runtime/support/Names.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

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

Status Request::prepare(int64_t onlyRank) {
  CLEAVE_RETURN_IF_ERROR(checkProgram());
  if (!options.packFolder.empty())
    return openWeights();
  CLEAVE_RETURN_IF_ERROR(findEntry());
  CLEAVE_RETURN_IF_ERROR(openInputs());
  CLEAVE_RETURN_IF_ERROR(openStates());
  CLEAVE_RETURN_IF_ERROR(findOutputs());
  return options.packedFolder.empty() ? openWeights() : openPacks(onlyRank);
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
  if (program.numWeights > 0 && options.weights.paths.empty())
    return notFound("the program has ", program.numWeights,
                    program.numWeights == 1 ? " weight" : " weights", " ('",
                    program.weights[0].storeName,
                    program.numWeights == 1 ? "'" : "', ...",
                    "); give --weights FILE.safetensors");
  return weights.open(program, options.weights);
}

Status Request::openPacks(int64_t onlyRank) {
  packs.resize(size_t(program.numRanks));
  for (int64_t r = 0; r < program.numRanks; ++r)
    if (onlyRank < 0 || r == onlyRank)
      CLEAVE_RETURN_IF_ERROR(packs[r].open(program, options.packedFolder, r));
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

Status Request::openPackWriters(const std::string &suffix, bool join) {
  if (options.packFolder.empty())
    return Status();
  packWriters.resize(size_t(program.numRanks));
  for (int64_t r = 0; r < program.numRanks; ++r)
    CLEAVE_RETURN_IF_ERROR(
        packWriters[r]
            .open(program, options.packFolder, r, suffix, join)
            .within("--pack"));
  return Status();
}

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
  return openPackWriters(suffix, /*join=*/false);
}

Status Request::joinOutputs(const std::string &suffix) {
  for (Write &write : writes)
    CLEAVE_RETURN_IF_ERROR(
        write.file.join(write.path, suffix)
            .within(concat("output '", write.tensor->name, "'")));
  return openPackWriters(suffix, /*join=*/true);
}

Status Request::commit() {
  for (PackWriter &writer : packWriters)
    CLEAVE_RETURN_IF_ERROR(writer.commit().within("--pack"));
  for (Write &write : writes)
    CLEAVE_RETURN_IF_ERROR(write.file.commit().within(
        concat("output '", write.tensor->name, "'")));
  return Status();
}

Status Request::writeOutputs(Rank &rank) {
  if (!packWriters.empty())
    CLEAVE_RETURN_IF_ERROR(
        packWriters[rank.index].write(program, rank.resident));
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
             ", \"weight_bytes_read\": ", used.weightBytes,
             ", \"weight_bytes_in_place\": ", used.inPlaceBytes,
             ", \"load_seconds\": ", std::to_string(used.loadSeconds),
             ", \"seconds\": [", seconds, "]}");
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

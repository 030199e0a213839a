//===- RequestRun.cpp - Loading and running, in each rank -----------------===//
#include "runtime/launch/Request.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>

namespace cleave::rt {

static double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

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

/// Copies a weight's block in, or uses it where it lies in the file.
Status Request::loadWeight(Rank &rank, int64_t i) {
  const CleaveTensor &weight = program.weights[i];
  const GlobalArray &array = weights.array(i);
  BlockRange range = BlockRange::of(weight, mesh, rank.index);
  int64_t bytes = range.numElements() * dtypeBytes(array.dtype);
  used.weightBytes += bytes;
  bool mayStay =
      !(program.flags & CLEAVE_SHARES_RESIDENT) && options.packFolder.empty();
  if (const char *place =
          mayStay ? blockInPlace(weight, range, array) : nullptr) {
    rank.placeWeight(i, place);
    used.inPlaceBytes += bytes;
    return Status();
  }
  CLEAVE_RETURN_IF_ERROR(readInto(rank, weight, array,
                                  rank.resident + weight.offset,
                                  concat("weight '", weight.storeName, "'")));
  // A column cut touches all pages of its tensor.
  constexpr int64_t kWorthReleasing = 1 << 20;
  if (bytes >= kWorthReleasing)
    weights.release();
  return Status();
}

Status Request::loadResident(Rank &rank) {
  used.weightBytes = used.inPlaceBytes = 0;
  for (int64_t i = 0; packs.empty() && i < program.numWeights; ++i)
    CLEAVE_RETURN_IF_ERROR(loadWeight(rank, i));
  if (!packs.empty())
    used.weightBytes = used.inPlaceBytes = packedBytes(program);
  for (const Read &read : states)
    CLEAVE_RETURN_IF_ERROR(readInto(rank, *read.tensor, read.file.array,
                                    rank.resident + read.tensor->offset,
                                    concat("state '", read.tensor->name, "'")));
  return packs.empty() ? rank.init() : Status();
}

Status Request::placePack(int64_t rank, char *resident) {
  return packs.empty() ? Status() : packs[rank].place(program, resident);
}

/// Measuring, it loads twice, into a pattern and into its complement: a byte
/// that was written differs from one of them.
Status Request::load(Rank &rank) {
  bool measures = !options.memoryFile.empty();
  used.resident = std::max(endOfBlocks(program.weights, program.numWeights),
                           endOfBlocks(program.states, program.numStates));
  // A mapped pack is not written; it ends where it was planned to.
  if (!packs.empty()) {
    used.resident = program.residentBytes;
    measures = false;
  }
  for (char flip : {char(-1), char(0)}) {
    if (flip && !measures)
      continue;
    if (measures)
      fillPattern(rank.resident, program.residentBytes, flip);
    for (int64_t i = 0; measures && i < program.numStates; ++i)
      std::memset(rank.resident + program.states[i].offset, 0,
                  size_t(program.states[i].bytes));
    double start = now();
    CLEAVE_RETURN_IF_ERROR(loadResident(rank));
    used.loadSeconds = now() - start;
    if (measures)
      used.resident = std::max(
          used.resident, usedBytes(rank.resident, program.residentBytes, flip));
  }
  if (options.verbose)
    std::fprintf(stderr,
                 "rank %ld: read %ld bytes of weights, %ld more in place, in "
                 "%.6f s\n",
                 long(rank.index), long(used.weightBytes - used.inPlaceBytes),
                 long(used.inPlaceBytes), used.loadSeconds);
  return Status();
}

/// Runs the entry twice on an arena full of a pattern and then of its
/// complement: a byte that was written differs from one of them. The state is
/// put back, so the calls that count start as if this had not been.
Status Request::measureArena(Rank &rank) {
  std::vector<std::string> saved;
  for (int64_t i = 0; i < program.numStates; ++i)
    saved.emplace_back(rank.resident + program.states[i].offset,
                       size_t(program.states[i].bytes));
  int64_t size = AreaLayout::of(program).arenaBytes + kGuardBytes;
  used.arena = std::max(endOfBlocks(entry->inputs, entry->numInputs),
                        endOfBlocks(entry->outputs, entry->numOutputs));
  for (char flip : {char(0), char(-1)}) {
    fillPattern(rank.arena, size, flip);
    CLEAVE_RETURN_IF_ERROR(setInputs(rank));
    CLEAVE_RETURN_IF_ERROR(rank.call(*entry));
    used.arena =
        std::max({used.arena, rank.commEnd, usedBytes(rank.arena, size, flip)});
    for (size_t i = 0; i < saved.size(); ++i)
      std::memcpy(rank.resident + program.states[i].offset, saved[i].data(),
                  saved[i].size());
  }
  return Status();
}

Status Request::run(Rank &rank) {
  if (!entry) // the weights are packed, no more
    return Status();
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

} // namespace cleave::rt

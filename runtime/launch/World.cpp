//===- World.cpp - All ranks of a model, called by one process ------------===//
#include "runtime/launch/World.h"
#include "runtime/comm/LocalBackend.h"
#include "runtime/io/Pack.h"
#include "runtime/launch/Rank.h"

#include <climits>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cleave::rt {

// Commands besides the indices of entries.
constexpr int32_t kInit = -1, kQuit = -2, kUsePlaces = -3, kMeasure = -4;
constexpr long kSleepNanoseconds = 50'000'000;

static void sleepOn(const std::atomic<uint32_t> &word, uint32_t value) {
  timespec limit{0, kSleepNanoseconds};
  syscall(SYS_futex, &word, FUTEX_WAIT, value, &limit, nullptr, 0);
}

static void wake(const std::atomic<uint32_t> &word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

World::~World() {
  if (!area)
    return;
  announce(kQuit);
  for (std::thread &thread : threads)
    thread.join();
  supervisor.reset(); // kills what is left
}

Status World::start(SharedArea::Kind kind) {
  CLEAVE_RETURN_IF_ERROR(SharedArea::create(program, kind, &area));
  if (kind == SharedArea::Kind::processes) {
    supervisor = std::make_unique<Supervisor>(*area, timeout);
    return supervisor->start([this](int64_t rank) { return serve(rank); });
  }
  for (int64_t rank = 0; rank < program.numRanks; ++rank)
    threads.emplace_back([this, rank] {
      Status status = serve(rank);
      if (!status.ok())
        area->fail(rank, status);
      area->rank(rank).state.store(status.ok() ? RankState::finished
                                               : RankState::failed);
    });
  return Status();
}

//===----------------------------------------------------------------------===//
// The ranks' side
//===----------------------------------------------------------------------===//

Status World::serve(int64_t index) {
  LocalBackend backend(*area, index, timeout);
  Rank rank(program, mesh, index, backend, area->arena(index),
            area->resident(index));
  rank.usage = &area->rank(index).usage;
  Control &control = area->control();
  std::atomic<uint32_t> &served = area->rank(index).served;
  uint32_t last = 0;
  while (true) {
    while (control.command.load(std::memory_order_acquire) == last)
      sleepOn(control.command, last);
    last = control.command.load(std::memory_order_acquire);
    int32_t entry = control.commandEntry.load();
    Status status;
    if (entry == kInit || entry == kUsePlaces)
      for (int64_t i = 0; i < program.numWeights && !supervisor; ++i)
        rank.placeWeight(i, inPlace[index][i]);
    if (entry == kInit)
      status = rank.init();
    else if (entry == kMeasure)
      rank.startMeasuring();
    else if (entry >= 0)
      status = rank.call(program.entries[entry]);
    if (!status.ok())
      area->fail(index, status);
    served.store(last, std::memory_order_release);
    wake(served);
    if (entry == kQuit || !status.ok())
      return status;
  }
}

//===----------------------------------------------------------------------===//
// The caller's side
//===----------------------------------------------------------------------===//

void World::announce(int32_t entry) {
  Control &control = area->control();
  control.commandEntry.store(entry);
  control.command.fetch_add(1, std::memory_order_release);
  wake(control.command);
}

Status World::awaitServed() {
  uint32_t number = area->control().command.load();
  for (int64_t r = 0; r < program.numRanks; ++r) {
    std::atomic<uint32_t> &served = area->rank(r).served;
    while (served.load(std::memory_order_acquire) != number) {
      // A thread that fails still serves; a process may be gone.
      if (supervisor)
        CLEAVE_RETURN_IF_ERROR(supervisor->poll());
      else if (area->rank(r).state.load() == RankState::failed)
        break;
      sleepOn(served, served.load());
    }
  }
  return area->failure();
}

Status World::command(int32_t entry) {
  Status earlier = area->failure();
  if (!earlier.ok())
    return failedPrecondition("the ranks have stopped: ", earlier.message());
  announce(entry);
  return awaitServed();
}

Status World::loadRank(int64_t rank, const std::vector<BoundArray> &weights,
                       bool mayStay) {
  std::vector<const char *> &places = inPlace[rank];
  places.assign(size_t(program.numWeights), nullptr);
  for (const BoundArray &weight : weights) {
    const CleaveTensor &tensor = *weight.tensor;
    const char *&place = places[&tensor - program.weights];
    if (mayStay)
      place = blockInPlace(tensor, BlockRange::of(tensor, mesh, rank),
                           weight.array);
    if (!place)
      CLEAVE_RETURN_IF_ERROR(
          scatter(mesh, rank, weight, area->resident(rank), "weight"));
  }
  return Status();
}

Status World::load(const std::vector<BoundArray> &weights,
                   std::shared_ptr<const Weights> from) {
  if (isMapped)
    return failedPrecondition("the ranks use mapped packs, which cannot be "
                              "replaced; make another world");
  bool mayStay = from && !supervisor;
  std::vector<Status> statuses(size_t(program.numRanks));
  inPlace.resize(size_t(program.numRanks));
  std::vector<std::thread> readers;
  for (int64_t r = 0; r < program.numRanks; ++r)
    readers.emplace_back(
        [&, r] { statuses[r] = loadRank(r, weights, mayStay); });
  for (std::thread &reader : readers)
    reader.join();
  if (from)
    from->release();
  for (const Status &status : statuses)
    CLEAVE_RETURN_IF_ERROR(status);
  CLEAVE_RETURN_IF_ERROR(command(kInit));
  files = std::move(from); // what was loaded before is not used any more
  isLoaded = true;
  return Status();
}

Status World::loadPacked(const std::string &folder) {
  std::vector<PackFile> packs(size_t(program.numRanks));
  for (int64_t r = 0; r < program.numRanks; ++r)
    CLEAVE_RETURN_IF_ERROR(packs[r].open(program, folder, r));
  for (int64_t r = 0; r < program.numRanks; ++r)
    CLEAVE_RETURN_IF_ERROR(
        packs[r].place(program, area->resident(r), /*maps=*/!supervisor));
  isMapped = !supervisor;
  inPlace.assign(size_t(program.numRanks),
                 std::vector<const char *>(size_t(program.numWeights)));
  CLEAVE_RETURN_IF_ERROR(command(kUsePlaces));
  files = nullptr;
  isLoaded = true;
  return Status();
}

Status World::call(const CleaveEntry &entry,
                   const std::vector<BoundArray> &inputs,
                   const std::vector<BoundArray> &outputs) {
  if (!isLoaded)
    return failedPrecondition("the weights are not loaded yet");
  for (const BoundArray &input : inputs)
    for (int64_t r = 0; r < program.numRanks; ++r)
      CLEAVE_RETURN_IF_ERROR(scatter(mesh, r, input, area->arena(r), "input"));
  CLEAVE_RETURN_IF_ERROR(command(int32_t(&entry - program.entries)));
  for (const BoundArray &output : outputs)
    for (int64_t r = 0; r < program.numRanks; ++r)
      gather(mesh, r, output, area->arena(r));
  return Status();
}

void World::measure() { (void)command(kMeasure); }

Status World::setState(const BoundArray &state) {
  for (int64_t r = 0; r < program.numRanks; ++r)
    CLEAVE_RETURN_IF_ERROR(scatter(mesh, r, state, area->resident(r), "state"));
  return Status();
}

void World::getState(const BoundArray &state) {
  for (int64_t r = 0; r < program.numRanks; ++r)
    gather(mesh, r, state, area->resident(r));
}

} // namespace cleave::rt

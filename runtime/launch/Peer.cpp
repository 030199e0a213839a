//===- Peer.cpp - This process as a rank among others ---------------------===//
#include "runtime/launch/Peer.h"
#include "runtime/io/Pack.h"

#include <cstdlib>

namespace cleave::rt {

Peer::~Peer() {
  if (backend && !hasFailed)
    backend->finish();
}

Status Peer::joinEnv(double timeoutSeconds) {
  RankEnvironment environment;
  CLEAVE_RETURN_IF_ERROR(readEnvironment(std::getenv, &environment));
  CLEAVE_RETURN_IF_ERROR(checkEnvironment(program, environment));
  CLEAVE_RETURN_IF_ERROR(rendezvous.meet(program, environment, timeoutSeconds));
  int64_t index = environment.rank;
  SharedArea &area = rendezvous.area();
  backend = std::make_unique<LocalBackend>(
      area, index, timeoutSeconds,
      [this](int64_t r) { return rendezvous.isAlive(r); });
  rank = std::make_unique<Rank>(program, mesh, index, *backend,
                                area.arena(index), area.resident(index));
  return Status();
}

Status Peer::joinMpi(double timeoutSeconds) {
  const CleaveCommPlugin *plugin = nullptr;
  CLEAVE_RETURN_IF_ERROR(loadMpiPlugin(&plugin));
  auto mpi = std::make_unique<PluginBackend>(*plugin);
  CLEAVE_RETURN_IF_ERROR(mpi->join(program, timeoutSeconds));
  char *arena = nullptr, *resident = nullptr;
  CLEAVE_RETURN_IF_ERROR(mapRankMemory(program, &arena, &resident));
  rank =
      std::make_unique<Rank>(program, mesh, mpi->rank(), *mpi, arena, resident);
  backend = std::move(mpi);
  return Status();
}

Status Peer::report(Status status) {
  if (!status.ok() && !hasFailed)
    backend->fail(status);
  hasFailed |= !status.ok();
  return status;
}

Status Peer::load(const std::vector<BoundArray> &weights,
                  std::shared_ptr<const Weights> from) {
  if (isMapped)
    return failedPrecondition("the rank uses a mapped pack, which cannot be "
                              "replaced");
  bool mayStay = from && !(program.flags & CLEAVE_SHARES_RESIDENT);
  for (const BoundArray &weight : weights) {
    const CleaveTensor &tensor = *weight.tensor;
    BlockRange range = BlockRange::of(tensor, mesh, index());
    const char *place =
        mayStay ? blockInPlace(tensor, range, weight.array) : nullptr;
    rank->placeWeight(&tensor - program.weights, place);
    if (!place)
      CLEAVE_RETURN_IF_ERROR(
          report(scatter(mesh, index(), weight, rank->resident, "weight")));
  }
  if (from)
    from->release();
  CLEAVE_RETURN_IF_ERROR(report(rank->init()));
  files = std::move(from);
  return Status();
}

Status Peer::loadPacked(const std::string &folder) {
  for (int64_t i = 0; i < program.numWeights; ++i)
    rank->placeWeight(i, nullptr);
  PackFile pack;
  CLEAVE_RETURN_IF_ERROR(report(pack.open(program, folder, index())));
  // What other ranks read must be where they see it.
  bool maps = !(program.flags & CLEAVE_SHARES_RESIDENT);
  isMapped |= maps;
  return report(pack.place(program, rank->resident, maps));
}

Status Peer::call(const CleaveEntry &entry,
                  const std::vector<BoundArray> &inputs,
                  const std::vector<BoundArray> &outputs) {
  for (const BoundArray &input : inputs)
    CLEAVE_RETURN_IF_ERROR(
        report(scatter(mesh, index(), input, rank->arena, "input")));
  CLEAVE_RETURN_IF_ERROR(report(rank->call(entry)));
  for (const BoundArray &output : outputs)
    writeBlock(*output.tensor, BlockRange::of(*output.tensor, mesh, index()),
               rank->arena + output.tensor->offset, output.array);
  return Status();
}

} // namespace cleave::rt

//===- Env.cpp - Ranks that a launcher has started on this machine --------===//
#include "runtime/comm/LocalBackend.h"
#include "runtime/launch/Launch.h"
#include "runtime/launch/Peer.h"

#include <cstdlib>
#include <unistd.h>

namespace cleave::rt {

Status runPeer(Request &request, Rank &rank, const std::string &suffix) {
  bool isFirst = rank.index == 0;
  if (isFirst)
    printWarnings(request);
  if (isFirst)
    CLEAVE_RETURN_IF_ERROR(request.createOutputs(suffix));
  CLEAVE_RETURN_IF_ERROR(rank.backend.barrier(kOutputsCreated));
  if (!isFirst)
    CLEAVE_RETURN_IF_ERROR(request.joinOutputs(suffix));
  CLEAVE_RETURN_IF_ERROR(request.load(rank));
  CLEAVE_RETURN_IF_ERROR(request.run(rank));
  CLEAVE_RETURN_IF_ERROR(request.writeOutputs(rank));
  CLEAVE_RETURN_IF_ERROR(request.writeReports(rank, suffix));
  CLEAVE_RETURN_IF_ERROR(rank.backend.barrier(kOutputsWritten));
  if (!isFirst)
    return Status();
  CLEAVE_RETURN_IF_ERROR(request.mergeReports(suffix));
  return request.commit();
}

Status checkEnvironment(const CleaveProgram &program,
                        const RankEnvironment &environment) {
  if (environment.size != program.numRanks)
    return invalidArgument("the program has ", program.numRanks, " ranks, ",
                           environment.launcher, " has started ",
                           environment.size);
  if (environment.localSize >= 0 && environment.localSize < environment.size)
    return invalidArgument("the ranks are on several machines, which "
                           "--launch=env cannot join; use --launch=mpi");
  return Status();
}

Outcome launchEnv(const CleaveProgram &program, const Mesh &mesh,
                  const Options &options) {
  RankEnvironment environment;
  Status status = readEnvironment(std::getenv, &environment);
  if (!status.ok())
    return {2, status.message()};
  status = checkEnvironment(program, environment);
  if (!status.ok()) // each process sees it; one says it
    return {1, environment.rank == 0 ? status.message() : ""};
  Rendezvous rendezvous;
  status = rendezvous.meet(program, environment, options.timeoutSeconds);
  if (!status.ok())
    return {4, status.code() == Code::aborted ? "" : status.message()};
  SharedArea &area = rendezvous.area();
  int64_t index = environment.rank;
  LocalBackend backend(area, index, options.timeoutSeconds,
                       [&](int64_t r) { return rendezvous.isAlive(r); });
  Rank rank(program, mesh, index, backend, area.arena(index),
            area.resident(index));
  Request request(program, mesh, options);
  std::string suffix = std::to_string(area.rank(0).pid.load());
  status = request.prepare();
  if (status.ok())
    status = prepareResident(area, request, index);
  if (status.ok())
    status = runPeer(request, rank, suffix);
  if (status.ok()) {
    backend.finish();
    return {};
  }
  bool isFirst = backend.fail(status);
  if (index == 0)
    request.discardReports(suffix);
  return {exitStatusOf(area.failure()), isFirst ? status.message() : ""};
}

} // namespace cleave::rt

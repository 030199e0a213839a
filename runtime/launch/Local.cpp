//===- Local.cpp - Ranks forked by this process ---------------------------===//
#include "runtime/comm/LocalBackend.h"
#include "runtime/launch/Launch.h"
#include "runtime/launch/Supervisor.h"

#include <cstdio>
#include <unistd.h>

namespace cleave::rt {

int exitStatusOf(const Status &status) {
  switch (status.code()) {
  case Code::ok:
    return 0;
  case Code::invalidArgument:
  case Code::notFound:
    return 1;
  default:
    return 4;
  }
}

Status prepareResident(SharedArea &area, Request &request, int64_t index) {
  bool shares = area.program().flags & CLEAVE_SHARES_RESIDENT;
  if (!shares)
    CLEAVE_RETURN_IF_ERROR(area.ownResident(index));
  for (int64_t r = 0; r < area.program().numRanks; ++r)
    if (shares || r == index)
      CLEAVE_RETURN_IF_ERROR(request.placePack(r, area.resident(r)));
  return Status();
}

void printWarnings(const Request &request) {
  for (const std::string &warning : request.warnings())
    std::fprintf(stderr, "warning: %s\n", warning.c_str());
}

static Status runRank(SharedArea &area, const Mesh &mesh, Request &request,
                      const Options &options, int64_t index,
                      const std::string &suffix) {
  CLEAVE_RETURN_IF_ERROR(prepareResident(area, request, index));
  LocalBackend backend(area, index, options.timeoutSeconds);
  Rank rank(area.program(), mesh, index, backend, area.arena(index),
            area.resident(index));
  CLEAVE_RETURN_IF_ERROR(request.load(rank));
  CLEAVE_RETURN_IF_ERROR(request.run(rank));
  CLEAVE_RETURN_IF_ERROR(request.writeOutputs(rank));
  return request.writeReports(rank, suffix);
}

Outcome launchLocal(const CleaveProgram &program, const Mesh &mesh,
                    const Options &options) {
  Request request(program, mesh, options);
  std::string suffix = std::to_string(getpid());
  Status status = request.prepare();
  if (status.ok())
    status = request.createOutputs(suffix);
  if (!status.ok())
    return {1, status.message()};
  printWarnings(request);
  std::unique_ptr<SharedArea> area;
  status = SharedArea::create(program, SharedArea::Kind::processes, &area);
  if (!status.ok())
    return {4, status.message()};
  Supervisor::handleSignals();
  Supervisor supervisor(*area, options.timeoutSeconds);
  status = supervisor.start([&](int64_t rank) {
    return runRank(*area, mesh, request, options, rank, suffix);
  });
  if (status.ok())
    status = supervisor.join();
  if (!status.ok()) {
    request.discardReports(suffix);
    return {exitStatusOf(status), status.message()};
  }
  status = request.mergeReports(suffix);
  if (status.ok())
    status = request.commit();
  return {status.ok() ? 0 : 1, status.message()};
}

} // namespace cleave::rt

//===- Mpi.cpp - Ranks that mpirun has started ----------------------------===//
#include "runtime/launch/Mpi.h"
#include "runtime/launch/Launch.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

namespace cleave::rt {

//===----------------------------------------------------------------------===//
// Finding the plugin
//===----------------------------------------------------------------------===//

constexpr char kPluginName[] = "libcleave_rt_mpi.so";

static std::string folderOfThisFile() {
  Dl_info info;
  std::string path;
  if (dladdr(reinterpret_cast<const void *>(&folderOfThisFile), &info) &&
      info.dli_fname)
    path = info.dli_fname;
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

/// Named by the user, beside the program, where Cleave was built, or wherever
/// the dynamic linker looks.
static std::vector<std::string> pluginPlaces() {
  std::vector<std::string> places;
  if (const char *path = std::getenv("CLEAVE_RT_MPI"))
    return {path};
  std::string folder = folderOfThisFile();
  places.push_back(concat(folder, "/", kPluginName));
  places.push_back(concat(folder, "/../lib/", kPluginName));
  places.push_back(concat(CLEAVE_PLUGIN_DIR, "/", kPluginName));
  places.push_back(kPluginName);
  return places;
}

Status loadMpiPlugin(const CleaveCommPlugin **plugin) {
  std::string reason;
  for (const std::string &place : pluginPlaces()) {
    bool isPath = place.find('/') != std::string::npos;
    if (isPath && access(place.c_str(), F_OK) != 0)
      continue;
    // Global, because MPI loads parts of itself that need its symbols.
    void *handle = dlopen(place.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (!handle) {
      reason = dlerror();
      continue;
    }
    auto get = reinterpret_cast<const CleaveCommPlugin *(*)()>(
        dlsym(handle, "cleave_comm_plugin"));
    if (get && get()->version == CLEAVE_COMM_PLUGIN_VERSION) {
      *plugin = get();
      return Status();
    }
    reason = concat("'", place, "' is of another version");
  }
  return failedPrecondition("--launch=mpi needs '", kPluginName,
                            "' beside the program or in CLEAVE_RT_MPI",
                            reason.empty() ? "" : ": ", reason);
}

//===----------------------------------------------------------------------===//
// PluginBackend
//===----------------------------------------------------------------------===//

Status PluginBackend::check(int32_t code) const {
  return code ? Status(Code(code), error.text) : Status();
}

Status PluginBackend::join(const CleaveProgram &program, double timeout) {
  return check(plugin.create(&program, timeout, &self, &index, &error));
}

PluginBackend::~PluginBackend() {
  if (self)
    plugin.destroy(self);
}

Status PluginBackend::run(const CommPlan &plan, const char *in, char *out) {
  return check(plugin.run(self, plan.comm, in, out, &error));
}

Status PluginBackend::barrier(const CleaveComm &where) {
  return check(plugin.barrier(self, where.name, &error));
}

Status PluginBackend::agree(const Status &mine, int64_t *failedRank) {
  return check(plugin.agree(self, int32_t(mine.code()), failedRank, &error));
}

/// Ranks that wait for the same one come to their deadline together, and both
/// sides see a mismatch. The first may speak for all: its abort ends the others
/// while they hold back.
bool PluginBackend::fail(const Status &status) {
  constexpr useconds_t kStagger = 50'000;
  if (status.code() == Code::deadlineExceeded ||
      status.code() == Code::failedPrecondition)
    usleep(useconds_t(std::min<int64_t>(index, 19)) * kStagger);
  std::fprintf(stderr, "error: %s\n", status.message().c_str());
  std::fflush(stderr);
  plugin.abort(self, exitStatusOf(status));
  return true;
}

//===----------------------------------------------------------------------===//
// The launch
//===----------------------------------------------------------------------===//

static Status mapPrivate(int64_t bytes, char **memory) {
  void *mapped = mmap(nullptr, size_t(bytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED)
    return errnoStatus(concat("cannot map ", bytes, " bytes"), errno);
  constexpr int64_t kHugePage = 2 << 20;
  if (bytes >= kHugePage)
    madvise(mapped, size_t(bytes), MADV_HUGEPAGE);
  *memory = static_cast<char *>(mapped);
  return Status();
}

Status mapRankMemory(const CleaveProgram &program, char **arena,
                     char **resident) {
  AreaLayout layout = AreaLayout::of(program);
  CLEAVE_RETURN_IF_ERROR(mapPrivate(layout.arenaBytes + kGuardBytes, arena));
  return mapPrivate(layout.residentBytes + kGuardBytes, resident);
}

static Status runMpi(PluginBackend &backend, const CleaveProgram &program,
                     const Mesh &mesh, Request &request) {
  char *arena = nullptr, *resident = nullptr;
  CLEAVE_RETURN_IF_ERROR(mapRankMemory(program, &arena, &resident));
  CLEAVE_RETURN_IF_ERROR(request.placePack(backend.rank(), resident));
  Rank rank(program, mesh, backend.rank(), backend, arena, resident);
  return runPeer(request, rank, "mpi");
}

Outcome launchMpi(const CleaveProgram &program, const Mesh &mesh,
                  const Options &options) {
  const CleaveCommPlugin *plugin = nullptr;
  Status status = loadMpiPlugin(&plugin);
  if (!status.ok())
    return {2, status.message()};
  PluginBackend backend(*plugin);
  status = backend.join(program, options.timeoutSeconds);
  Request request(program, mesh, options);
  if (status.ok())
    status = request.prepare(backend.rank());
  // A wrong input is seen by all ranks, or by those of one machine: one says
  // so, and all end with the same status.
  int64_t failedRank = -1;
  Status agreed = backend.agree(status, &failedRank);
  if (failedRank >= 0)
    return {1, failedRank == backend.rank() ? status.message() : ""};
  if (agreed.ok())
    agreed = runMpi(backend, program, mesh, request);
  if (!agreed.ok()) {
    if (backend.rank() == 0)
      request.discardReports("mpi");
    backend.fail(agreed);
  }
  return {agreed.ok() ? 0 : exitStatusOf(agreed), ""};
}

} // namespace cleave::rt

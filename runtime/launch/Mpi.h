//===- Mpi.h - The backend of a plugin --------------------------*- C++ -*-===//
#ifndef CLEAVE_RUNTIME_LAUNCH_MPI_H
#define CLEAVE_RUNTIME_LAUNCH_MPI_H

#include "runtime/comm/Backend.h"
#include "runtime/comm/Plugin.h"

namespace cleave::rt {

/// Loads libcleave_rt_mpi.so.
Status loadMpiPlugin(const CleaveCommPlugin **plugin);

/// Maps the memory of a rank that shares none; it stays for the process's life.
Status mapRankMemory(const CleaveProgram &program, char **arena,
                     char **resident);

/// A backend that lives in a plugin.
class PluginBackend : public Backend {
public:
  explicit PluginBackend(const CleaveCommPlugin &plugin) : plugin(plugin) {}
  ~PluginBackend() override;

  Status join(const CleaveProgram &program, double timeoutSeconds);
  int64_t rank() const { return index; }

  Status run(const CommPlan &plan, const char *in, char *out) override;
  Status barrier(const CleaveComm &where) override;
  /// Prints the error and ends all ranks.
  bool fail(const Status &status) override;
  void finish() override {}
  /// The lowest rank with an error, -1 when none has one.
  Status agree(const Status &mine, int64_t *failedRank);

private:
  Status check(int32_t code) const;

  const CleaveCommPlugin &plugin;
  void *self = nullptr;
  int64_t index = 0;
  CleaveCommError error = {};
};

} // namespace cleave::rt

#endif // CLEAVE_RUNTIME_LAUNCH_MPI_H

//===- Environment.cpp - Which rank somebody started us as ----------------===//
#include "runtime/launch/Environment.h"

#include <cstdlib>

namespace cleave::rt {

namespace {

/// The variables of one launcher. `local` is the number of ranks on this
/// machine; `nodes` the number of machines. Absent ones are null.
struct Launcher {
  const char *name, *rank, *size, *local, *nodes;
  const char *job[4];
};

} // namespace

static constexpr Launcher kLaunchers[] = {
    {"torchrun",
     "RANK",
     "WORLD_SIZE",
     "LOCAL_WORLD_SIZE",
     nullptr,
     {"TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT",
      "TORCHELASTIC_RESTART_COUNT"}},
    {"OpenMPI",
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     nullptr,
     {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid", "PMIX_SERVER_URI2",
      nullptr}},
    {"PMI",
     "PMI_RANK",
     "PMI_SIZE",
     "MPI_LOCALNRANKS",
     nullptr,
     {"PMI_JOBID", "HYDI_CONTROL_FD", nullptr, nullptr}},
    {"Slurm",
     "SLURM_PROCID",
     "SLURM_NTASKS",
     nullptr,
     "SLURM_NNODES",
     {"SLURM_JOB_ID", "SLURM_STEP_ID", nullptr, nullptr}},
};

static bool readNumber(const char *text, int64_t *value) {
  if (!text || !*text)
    return false;
  char *end;
  *value = std::strtoll(text, &end, 10);
  return *end == 0 && *value >= 0;
}

static Status readLauncher(const Launcher &launcher, const GetVariable &get,
                           RankEnvironment *result) {
  auto number = [&](const char *variable, int64_t *value) {
    if (readNumber(get(variable), value))
      return Status();
    const char *text = get(variable);
    return invalidArgument(launcher.name, "'s variable ", variable, " is ",
                           text ? concat("'", text, "', not a whole number")
                                : "not set");
  };
  result->launcher = launcher.name;
  CLEAVE_RETURN_IF_ERROR(number(launcher.rank, &result->rank));
  CLEAVE_RETURN_IF_ERROR(number(launcher.size, &result->size));
  if (result->rank >= result->size)
    return invalidArgument(launcher.name, " says rank ", result->rank, " of ",
                           result->size);
  int64_t nodes = 1;
  if (launcher.nodes && readNumber(get(launcher.nodes), &nodes) && nodes > 1)
    result->localSize = 0; // fewer than all; how many does not matter
  if (launcher.local)
    readNumber(get(launcher.local), &result->localSize);
  result->job = launcher.name;
  for (const char *variable : launcher.job)
    if (const char *text = variable ? get(variable) : nullptr)
      result->job += concat("|", text);
  return Status();
}

Status readEnvironment(const GetVariable &get, RankEnvironment *result) {
  for (const Launcher &launcher : kLaunchers)
    if (get(launcher.rank))
      return readLauncher(launcher, get, result);
  return invalidArgument(
      "--launch=env finds none of RANK (torchrun), OMPI_COMM_WORLD_RANK "
      "(OpenMPI), PMI_RANK and SLURM_PROCID in the environment; start the "
      "program with one of these launchers, or use --launch=local");
}

} // namespace cleave::rt

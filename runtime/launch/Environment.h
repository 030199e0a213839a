//===- Environment.h - Which rank somebody started us as --------*- C++ -*-===//
#ifndef CLEAVE_RUNTIME_LAUNCH_ENVIRONMENT_H
#define CLEAVE_RUNTIME_LAUNCH_ENVIRONMENT_H

#include "runtime/support/Status.h"
#include <functional>

namespace cleave::rt {

/// What a launcher's variables say.
struct RankEnvironment {
  std::string launcher; // "torchrun", "OpenMPI", "PMI", "Slurm"
  int64_t rank = 0, size = 1;
  int64_t localSize = -1; // ranks on this machine, where that is said
  std::string job;        // equal on all ranks of a run, different otherwise
};

/// Reads a variable: null when it is not set.
using GetVariable = std::function<const char *(const char *)>;

/// Looks for torchrun's variables first (they are set on purpose, also inside
/// of a Slurm job), then OpenMPI's, PMI's and Slurm's.
Status readEnvironment(const GetVariable &get, RankEnvironment *result);

} // namespace cleave::rt

#endif // CLEAVE_RUNTIME_LAUNCH_ENVIRONMENT_H

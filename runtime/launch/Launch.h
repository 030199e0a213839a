//===- Launch.h - The ways to start the ranks of a run ----------*- C++ -*-===//
#ifndef CLEAVE_RUNTIME_LAUNCH_LAUNCH_H
#define CLEAVE_RUNTIME_LAUNCH_LAUNCH_H

#include "runtime/launch/Request.h"

namespace cleave::rt {

/// What a run has come to: the exit status and, where it is not 0, what to
/// print on stderr (nothing when another rank prints it).
struct Outcome {
  int exitStatus = 0;
  std::string message;
};

/// 1 for a wrong input, 4 for a rank that failed or a deadline.
int exitStatusOf(const Status &status);

/// Forks the ranks and runs the request on them.
Outcome launchLocal(const CleaveProgram &program, const Mesh &mesh,
                    const Options &options);

/// This process is one of the ranks that torchrun, Slurm, OpenMPI's mpirun or a
/// PMI launcher has started on this machine.
Outcome launchEnv(const CleaveProgram &program, const Mesh &mesh,
                  const Options &options);

/// This process is one of mpirun's; loads the MPI plugin.
Outcome launchMpi(const CleaveProgram &program, const Mesh &mesh,
                  const Options &options);

/// Makes a rank's resident area ready in its process: its own where no other
/// rank reads it, with the packs in place.
Status prepareResident(SharedArea &area, Request &request, int64_t index);

/// One line each on stderr.
void printWarnings(const Request &request);

/// The whole work of a rank that is a process of its own among others which
/// somebody else started: create the outputs (rank 0), load, run, write. The
/// request is prepared.
Status runPeer(Request &request, Rank &rank, const std::string &suffix);

/// The main function of every executable.
int runMain(int argc, const char *const *argv,
            const CleaveProgram *const *programs, int64_t numPrograms);

} // namespace cleave::rt

#endif // CLEAVE_RUNTIME_LAUNCH_LAUNCH_H

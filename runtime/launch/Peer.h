//===- Peer.h - This process as a rank among others -------------*- C++ -*-===//
#ifndef CLEAVE_RUNTIME_LAUNCH_PEER_H
#define CLEAVE_RUNTIME_LAUNCH_PEER_H

#include "runtime/comm/LocalBackend.h"
#include "runtime/io/Weights.h"
#include "runtime/launch/Arrays.h"
#include "runtime/launch/Mpi.h"
#include "runtime/launch/Rank.h"
#include "runtime/launch/Rendezvous.h"

namespace cleave::rt {

/// A rank that a launcher has started, for programs that embed a model.
class Peer {
public:
  explicit Peer(const CleaveProgram &program)
      : program(program), mesh(program) {}
  ~Peer();

  Status joinEnv(double timeoutSeconds);
  Status joinMpi(double timeoutSeconds);
  /// `files` are what the arrays are mapped from; null for the caller's memory.
  Status load(const std::vector<BoundArray> &weights,
              std::shared_ptr<const Weights> files);
  Status loadPacked(const std::string &folder);
  Status call(const CleaveEntry &entry, const std::vector<BoundArray> &inputs,
              const std::vector<BoundArray> &outputs);
  int64_t index() const { return rank->index; }

  const CleaveProgram &program;

private:
  /// Tells the others about a failure.
  Status report(Status status);

  Mesh mesh;
  Rendezvous rendezvous;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Rank> rank;
  std::shared_ptr<const Weights> files; // that blocks are used in
  bool hasFailed = false, isMapped = false;
};

/// Checks a launcher's variables against the program.
Status checkEnvironment(const CleaveProgram &program,
                        const RankEnvironment &environment);

} // namespace cleave::rt

#endif // CLEAVE_RUNTIME_LAUNCH_PEER_H

//===- Peers.cpp - Ranks that somebody else has started -------------------===//
#include "runtime/launch/Launch.h"

namespace cleave::rt {

Outcome launchEnv(const CleaveProgram &, const Mesh &, const Options &) {
  return {2, "this build has no --launch=env"};
}
Outcome launchMpi(const CleaveProgram &, const Mesh &, const Options &) {
  return {2, "this build has no --launch=mpi"};
}

} // namespace cleave::rt

//===- Plan.h - One communication as one rank sees it -----------*- C++ -*-===//
// A CleaveComm is static data, equal on all ranks. The first time a rank comes
// to one, this is derived from it once and kept: who the group is, and which
// pieces of whose input make up this rank's output. Every backend works from
// it, so the geometry of the collectives exists in one place.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_RUNTIME_COMM_PLAN_H
#define CLEAVE_RUNTIME_COMM_PLAN_H

#include "runtime/comm/Mesh.h"
#include "runtime/cpu/Reduce.h"
#include <array>

namespace cleave::rt {

/// Rows of `bytes` contiguous bytes, in up to three nested loops.
struct Region {
  std::array<int64_t, 3> count = {1, 1, 1};
  std::array<int64_t, 3> sourceStep = {0, 0, 0};
  std::array<int64_t, 3> targetStep = {0, 0, 0};
  int64_t sourceOffset = 0, targetOffset = 0;
  int64_t bytes = 0;

  int64_t totalBytes() const { return count[0] * count[1] * count[2] * bytes; }
};

/// Copies the region out of `source` (a whole input) into `target` (a whole
/// output). `streams`: past the cache, where the rows are long.
void copyRegion(const Region &region, char *target, const char *source,
                bool streams = false);
/// Copies the region of an input to contiguous memory, and from there.
void packRegion(const Region &region, char *packed, const char *source);
void unpackRegion(const Region &region, char *target, const char *packed);

/// A rank of the group.
struct Member {
  int64_t rank;
  int64_t axesIndex;   // index over the comm's `axes`
  int64_t sourceIndex; // index over its `source`
};

/// A piece of this rank's output: `region` of the input of members[member].
struct Pull {
  int64_t member;
  Region region;
};

struct CommPlan {
  const CleaveComm *comm = nullptr;
  std::vector<Member> members; // by axesIndex, then sourceIndex
  int64_t self = 0;            // this rank in `members`
  uint64_t groupKey = 0;       // equal for the groups over the same axes
  int64_t peer = -1;           // send, recv: the other rank
  int64_t elementBytes = 0;
  int64_t inBytes = 0, outBytes = 0;
  ReduceFn reduce = nullptr;
  /// What this rank takes from each member (also from itself). Empty for
  /// all_reduce, send and recv. For reduce_scatter the pieces lie on top of
  /// each other and are reduced.
  std::vector<Pull> pulls;
  /// What the others take from this rank: member and region, as there.
  std::vector<Pull> pushes;
  /// Where the local backend keeps the group's cells; -1 until asked.
  mutable int64_t slot = -1;
};

/// Derives the plan of `comm` for `rank`. An error is a fault of the compiler.
Status planComm(const Mesh &mesh, int64_t rank, const CleaveComm &comm,
                CommPlan *plan);

/// Bytes that this rank sends, by the conventions of rings: what the plan of a
/// program counts, whatever algorithm runs.
int64_t sentBytes(const CommPlan &plan);

/// "all_reduce over 'tp' in '%y' (model.mlir:12:8)".
std::string describe(const CleaveComm &comm);

/// "256 f32, sum": what must be equal on all members besides the name.
std::string signatureText(const CleaveComm &comm);

/// True when both are the same communication of the same group shape; `name`
/// and `cause` may differ.
bool sameSignature(const CleaveComm &a, const CleaveComm &b);

} // namespace cleave::rt

#endif // CLEAVE_RUNTIME_COMM_PLAN_H

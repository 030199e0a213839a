//===- Arrays.h - Tensors of a program and arrays in memory -----*- C++ -*-===//
#ifndef CLEAVE_RUNTIME_LAUNCH_ARRAYS_H
#define CLEAVE_RUNTIME_LAUNCH_ARRAYS_H

#include "cleave/runtime.h"
#include "runtime/io/Blocks.h"

namespace cleave::rt {

/// A list of tensors of one role, as the program has them.
struct TensorList {
  const char *role; // "input", "output", "weight", "state"
  const CleaveTensor *tensors;
  int64_t count;
};

/// An array of the caller and the tensor it is for.
struct BoundArray {
  const CleaveTensor *tensor;
  GlobalArray array;
};

/// The entry of that name.
Status findEntry(const CleaveProgram &program, const std::string &name,
                 const CleaveEntry **entry);

/// Finds the tensor of each array and checks shape and type. With `needsAll`,
/// every tensor of the list must be there.
Status bindArrays(const TensorList &list, const CleaveArray *arrays,
                  int64_t numArrays, bool needsAll,
                  std::vector<BoundArray> *bound);

/// Copies a rank's block in; a finite value that becomes infinite is an error.
Status scatter(const Mesh &mesh, int64_t rank, const BoundArray &bound,
               char *memory, const char *role);
/// Copies a rank's block out, if it is the one that writes it.
void gather(const Mesh &mesh, int64_t rank, const BoundArray &bound,
            const char *memory);

} // namespace cleave::rt

#endif // CLEAVE_RUNTIME_LAUNCH_ARRAYS_H

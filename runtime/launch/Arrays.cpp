//===- Arrays.cpp - Tensors of a program and arrays in memory -------------===//
#include "runtime/launch/Arrays.h"
#include "runtime/io/Npy.h"
#include "runtime/support/Names.h"

namespace cleave::rt {

Status findEntry(const CleaveProgram &program, const std::string &name,
                 const CleaveEntry **entry) {
  std::vector<std::string> names;
  for (int64_t e = 0; e < program.numEntries; ++e) {
    names.push_back(program.entries[e].name);
    if (name == names.back()) {
      *entry = &program.entries[e];
      return Status();
    }
  }
  return notFound("unknown entry '", name, "'; known are ",
                  closestFirst(name, names));
}

/// Weights and state go by the name they have in files.
static const char *keyOf(const CleaveTensor &tensor) {
  bool isStored = tensor.role == CLEAVE_WEIGHT || tensor.role == CLEAVE_STATE;
  return isStored && tensor.storeName ? tensor.storeName : tensor.name;
}

static Status bindArray(const TensorList &list, const CleaveArray &given,
                        BoundArray *bound) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < list.count; ++i) {
    names.push_back(keyOf(list.tensors[i]));
    if (names.back() == given.name)
      bound->tensor = &list.tensors[i];
  }
  if (!bound->tensor)
    return notFound("unknown ", list.role, " '", given.name, "'; known are ",
                    closestFirst(given.name, names));
  if (given.dtype >= kNumDtypes)
    return invalidArgument(list.role, " '", given.name,
                           "' has the unknown "
                           "type ",
                           given.dtype);
  bound->array.data = static_cast<char *>(given.data);
  bound->array.dtype = given.dtype;
  bound->array.shape.assign(given.shape, given.shape + given.rank);
  bound->array.setSteps(/*fortranOrder=*/false);
  return checkNpy(bound->array, *bound->tensor,
                  concat(list.role, " '", given.name, "'"));
}

Status bindArrays(const TensorList &list, const CleaveArray *arrays,
                  int64_t numArrays, bool needsAll,
                  std::vector<BoundArray> *bound) {
  for (int64_t i = 0; i < numArrays; ++i) {
    BoundArray one{nullptr, {}};
    CLEAVE_RETURN_IF_ERROR(bindArray(list, arrays[i], &one));
    for (const BoundArray &other : *bound)
      if (other.tensor == one.tensor)
        return invalidArgument(list.role, " '", arrays[i].name,
                               "' is given twice");
    bound->push_back(std::move(one));
  }
  for (int64_t t = 0; needsAll && t < list.count; ++t) {
    bool given = false;
    for (const BoundArray &one : *bound)
      given |= one.tensor == &list.tensors[t];
    if (!given)
      return notFound(list.role, " '", keyOf(list.tensors[t]), "' (",
                      typeText(list.tensors[t]), ") is missing");
  }
  return Status();
}

Status scatter(const Mesh &mesh, int64_t rank, const BoundArray &bound,
               char *memory, const char *role) {
  const CleaveTensor &tensor = *bound.tensor;
  BlockRange range = BlockRange::of(tensor, mesh, rank);
  int64_t overflows =
      readBlock(tensor, range, bound.array, memory + tensor.offset);
  if (overflows)
    return invalidArgument(role, " '", keyOf(tensor), "' has ", overflows,
                           " finite value", overflows == 1 ? "" : "s", " that ",
                           dtypeName(tensor.dtype), " cannot hold (rank ", rank,
                           "'s part)");
  return Status();
}

void gather(const Mesh &mesh, int64_t rank, const BoundArray &bound,
            const char *memory) {
  const CleaveTensor &tensor = *bound.tensor;
  if (ownsBlock(tensor, mesh, rank))
    writeBlock(tensor, BlockRange::of(tensor, mesh, rank),
               memory + tensor.offset, bound.array);
}

} // namespace cleave::rt

//===- Mesh.cpp - Ranks, coordinates and blocks ---------------------------===//
#include "runtime/comm/Mesh.h"

namespace cleave::rt {

Status Mesh::check(const CleaveProgram &program) {
  int64_t product = 1;
  for (int64_t a = 0; a < program.numAxes; ++a)
    if (program.axisSizes[a] < 1 ||
        __builtin_mul_overflow(product, program.axisSizes[a], &product))
      return internalError("mesh axis '", program.axisNames[a], "' has size ",
                           program.axisSizes[a]);
  if (product != program.numRanks)
    return internalError("the mesh has ", product, " positions, the program ",
                         program.numRanks, " ranks");
  std::vector<bool> seen(product);
  for (int64_t p = 0; p < product; ++p) {
    int64_t rank = program.ranks[p];
    if (rank < 0 || rank >= product || seen[rank])
      return internalError("the mesh's table of ranks is no permutation");
    seen[rank] = true;
  }
  return Status();
}

Mesh::Mesh(const CleaveProgram &program)
    : sizes(program.axisSizes, program.axisSizes + program.numAxes),
      strides(program.numAxes),
      rankAt(program.ranks, program.ranks + program.numRanks),
      positionOf(program.numRanks) {
  int64_t stride = 1;
  for (int64_t a = program.numAxes; a-- > 0;) {
    strides[a] = stride;
    stride *= sizes[a];
  }
  for (int64_t p = 0; p < numRanks(); ++p)
    positionOf[rankAt[p]] = p;
}

Status Mesh::check(const CleaveAxes &axes) const {
  for (int64_t i = 0; i < axes.count; ++i) {
    const CleaveAxisRef &ref = axes.refs[i];
    if (ref.axis < 0 || ref.axis >= numAxes())
      return internalError("axis ", ref.axis, " is not one of the mesh's ",
                           numAxes());
    if (ref.pre < 1 || ref.size < 1 ||
        sizes[ref.axis] % (ref.pre * ref.size) != 0)
      return internalError("sub-axis (", ref.pre, ")", ref.size,
                           " does not divide axis ", ref.axis, " of size ",
                           sizes[ref.axis]);
  }
  return Status();
}

int64_t Mesh::index(int64_t position, const CleaveAxes &axes) const {
  int64_t result = 0;
  for (int64_t i = 0; i < axes.count; ++i) {
    const CleaveAxisRef &ref = axes.refs[i];
    int64_t stride = sizes[ref.axis] / (ref.pre * ref.size);
    int64_t digit = coordinate(position, ref.axis) / stride % ref.size;
    result = result * ref.size + digit;
  }
  return result;
}

int64_t Mesh::withoutDigits(int64_t position, const CleaveAxes &axes) const {
  for (int64_t i = 0; i < axes.count; ++i) {
    const CleaveAxisRef &ref = axes.refs[i];
    int64_t stride = sizes[ref.axis] / (ref.pre * ref.size);
    int64_t digit = coordinate(position, ref.axis) / stride % ref.size;
    position -= digit * stride * strides[ref.axis];
  }
  return position;
}

int64_t Mesh::neighbour(int64_t position, int64_t axis, int64_t delta) const {
  int64_t moved = coordinate(position, axis) + delta;
  if (moved < 0 || moved >= sizes[axis])
    return -1;
  return position + delta * strides[axis];
}

int64_t numBlocks(const CleaveAxes &axes) {
  int64_t product = 1;
  for (int64_t i = 0; i < axes.count; ++i)
    product *= axes.refs[i].size;
  return product;
}

} // namespace cleave::rt

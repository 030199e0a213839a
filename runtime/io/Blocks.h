//===- Blocks.h - Between global arrays and the ranks' blocks ---*- C++ -*-===//
#ifndef CLEAVE_RUNTIME_IO_BLOCKS_H
#define CLEAVE_RUNTIME_IO_BLOCKS_H

#include "runtime/comm/Mesh.h"
#include "runtime/support/Dtype.h"
#include <vector>

namespace cleave::rt {

/// A whole array in memory or in a mapped file.
struct GlobalArray {
  char *data = nullptr;
  uint32_t dtype = 0;
  bool swapBytes = false;
  std::vector<int64_t> shape;
  std::vector<int64_t> steps; // bytes between neighbours along each dim
  /// Of a dim whose neighbours have no common distance, the place of each
  /// index, in bytes from `data`; empty for the others, and may be shorter than
  /// `shape`. Such a dim is made of several of a file's, or of several files.
  std::vector<std::vector<int64_t>> places;

  /// Sets `steps` for the last dim (or, for Fortran order, the first) varying
  /// fastest.
  void setSteps(bool fortranOrder);

  bool isListed(int64_t d) const {
    return d < int64_t(places.size()) && !places[d].empty();
  }
  int64_t place(int64_t d, int64_t index) const {
    return isListed(d) ? places[d][index] : index * steps[d];
  }
};

/// The part of a global tensor that one rank has: along dim d the indices
/// [start[d], start[d] + size[d]); the rest of its block is padding.
struct BlockRange {
  std::vector<int64_t> start, size;

  static BlockRange of(const CleaveTensor &tensor, const Mesh &mesh,
                       int64_t rank);
  int64_t numElements() const;
};

/// True for the one rank, among those with the same block, that writes it.
bool ownsBlock(const CleaveTensor &tensor, const Mesh &mesh, int64_t rank);

/// Reads a rank's block out of a global array; padding becomes zero. Returns
/// how many finite values became infinite on the way.
int64_t readBlock(const CleaveTensor &tensor, const BlockRange &range,
                  const GlobalArray &global, char *block);

/// Where a rank's block lies in a global array as the program wants it: one
/// run of elements of its type, whole, at a multiple of the element's size.
/// Null where it must be copied.
char *blockInPlace(const CleaveTensor &tensor, const BlockRange &range,
                   const GlobalArray &global);

/// Writes a rank's block into a global array.
void writeBlock(const CleaveTensor &tensor, const BlockRange &range,
                const char *block, const GlobalArray &global);

/// Checks what the runtime relies on: rank, sizes, offsets within the memory.
Status checkTensor(const CleaveTensor &tensor, const Mesh &mesh,
                   int64_t areaBytes);

/// "4x8xf32".
std::string typeText(const CleaveTensor &tensor);

} // namespace cleave::rt

#endif // CLEAVE_RUNTIME_IO_BLOCKS_H

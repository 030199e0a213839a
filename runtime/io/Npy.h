//===- Npy.h - NumPy's .npy files -------------------------------*- C++ -*-===//
#ifndef CLEAVE_RUNTIME_IO_NPY_H
#define CLEAVE_RUNTIME_IO_NPY_H

#include "runtime/io/Blocks.h"
#include "runtime/io/File.h"

namespace cleave::rt {

/// An array in a mapped .npy file (versions 1, 2 and 3, both byte orders, both
/// storage orders).
struct NpyFile {
  MappedFile file;
  GlobalArray array;

  Status open(const std::string &path);
  /// Reads the header out of memory.
  Status parse(const char *data, int64_t size);
};

/// Whether an array can be given for a tensor: same shape; same type, or f32
/// for bf16 and f16. `what` names it: "input 'x' from 'x.npy'".
Status checkNpy(const GlobalArray &array, const CleaveTensor &tensor,
                const std::string &what);

/// The header of a file that holds an array of this type; the data follow.
std::string npyHeader(uint32_t dtype, const int64_t *shape, int64_t rank);

/// The type a tensor has in a file: bf16 is f32 there.
uint32_t npyDtype(uint32_t dtype);

} // namespace cleave::rt

#endif // CLEAVE_RUNTIME_IO_NPY_H

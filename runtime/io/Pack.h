//===- Pack.h - One rank's weights, ready to map ----------------*- C++ -*-===//
// What `--pack FOLDER` writes and `--packed FOLDER` maps: the resident area of
// one rank as the program wants it after loading. A file is: 8 bytes of magic,
// 8 bytes with the length of the text, the text (a JSON object that says which
// program, mesh and CPU level it is for), and from the next page on the area.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_RUNTIME_IO_PACK_H
#define CLEAVE_RUNTIME_IO_PACK_H

#include "cleave/abi.h"
#include "runtime/io/File.h"
#include <vector>

namespace cleave::rt {

/// Bytes of the resident area that a pack holds.
int64_t packedBytes(const CleaveProgram &program);

/// The file of one rank in a folder.
std::string packPath(const std::string &folder, int64_t rank);

/// A pack that is being written.
class PackWriter {
public:
  /// Creates the file, or with `join` opens it after another process has. The
  /// folder is made if it is missing.
  Status open(const CleaveProgram &program, const std::string &folder,
              int64_t rank, const std::string &suffix, bool join);
  /// Copies the weights out of the rank's resident area.
  Status write(const CleaveProgram &program, const char *resident);
  Status commit() { return file.commit(); }

private:
  OutputFile file;
  std::string head; // up to the area
};

/// A pack that is used. Moves, does not copy.
class PackFile {
public:
  PackFile() = default;
  PackFile(PackFile &&other) noexcept { *this = std::move(other); }
  PackFile &operator=(PackFile &&other) noexcept;
  ~PackFile();

  /// Opens the file of a rank; one of another program, mesh or CPU level is
  /// an error.
  Status open(const CleaveProgram &program, const std::string &folder,
              int64_t rank);
  /// Maps the weights over a rank's resident area; nothing is read yet. Pages
  /// that hold state too are copied, and all where it may not map.
  Status place(const CleaveProgram &program, char *resident,
               bool maps = true) const;

private:
  Status check(const CleaveProgram &program, int64_t rank) const;

  std::string path;
  int fd = -1;
  MappedFile file;
  int64_t areaAt = 0;
};

} // namespace cleave::rt

#endif // CLEAVE_RUNTIME_IO_PACK_H

//===- Safetensors.h - Weight files -----------------------------*- C++ -*-===//
#ifndef CLEAVE_RUNTIME_IO_SAFETENSORS_H
#define CLEAVE_RUNTIME_IO_SAFETENSORS_H

#include "runtime/io/Blocks.h"
#include "runtime/io/File.h"
#include <map>

namespace cleave::rt {

/// One or several .safetensors files, mapped: reading a tensor's block touches
/// the pages of that block only.
class Safetensors {
public:
  /// Maps a file and checks its whole header: lengths, offsets within the
  /// file, no overlaps, no name twice (also not in an earlier file).
  Status add(const std::string &path);

  /// The tensor of that name, or null.
  const GlobalArray *find(const std::string &name) const;
  std::vector<std::string> names() const;

  /// Of all files; see MappedFile::release().
  void release() const;

  /// The type of a tensor that is there, as messages name it.
  std::string typeText(const std::string &name) const;

private:
  Status parse(const std::string &path, const MappedFile &file);

  std::vector<MappedFile> files;
  std::map<std::string, GlobalArray> tensors;
  std::map<std::string, std::string> otherTypes; // of tensors of no program
};

} // namespace cleave::rt

#endif // CLEAVE_RUNTIME_IO_SAFETENSORS_H

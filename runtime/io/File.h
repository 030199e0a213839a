//===- File.h - Mapped input files and replaced output files ----*- C++ -*-===//
#ifndef CLEAVE_RUNTIME_IO_FILE_H
#define CLEAVE_RUNTIME_IO_FILE_H

#include "runtime/support/Status.h"
#include <cstdint>
#include <string>
#include <utility>

namespace cleave::rt {

/// A file mapped for reading. Moves, does not copy.
class MappedFile {
public:
  MappedFile() = default;
  MappedFile(MappedFile &&other) noexcept { *this = std::move(other); }
  MappedFile &operator=(MappedFile &&other) noexcept;
  ~MappedFile();

  /// Maps the whole file; an empty file has no data.
  Status open(const std::string &path);

  const char *data() const { return bytes; }
  int64_t size() const { return length; }

  /// Forgets the pages that were read, which then count as nobody's memory.
  /// They stay in the page cache, and come back when they are read again.
  void release() const;

private:
  char *bytes = nullptr;
  int64_t length = 0;
};

/// A file that replaces another one when it is complete: until commit() the
/// old file stays as it was, and without commit() it stays for ever.
class OutputFile {
public:
  OutputFile() = default;
  OutputFile(OutputFile &&other) noexcept { *this = std::move(other); }
  OutputFile &operator=(OutputFile &&other) noexcept;
  ~OutputFile();

  /// Creates the new file of `size` bytes beside `path` and reserves its room
  /// on the disk, so that a full disk is noticed here. `path` may also be a
  /// device or a pipe, which is written at commit. `suffix` tells the new files
  /// of several runs apart.
  Status create(const std::string &path, int64_t size,
                const std::string &suffix);
  /// Opens the file that another process has created with these arguments.
  Status join(const std::string &path, const std::string &suffix);

  /// The new file as memory; valid until commit or destruction.
  Status map(char **data);
  Status commit();

private:
  void close();

  std::string target, temporary;
  int fd = -1;
  int64_t length = 0;
  char *bytes = nullptr;
  bool isStream = false;
  bool isCreator = false;
};

/// Writes text to `path` by way of an OutputFile.
Status writeTextFile(const std::string &path, const std::string &text);

} // namespace cleave::rt

#endif // CLEAVE_RUNTIME_IO_FILE_H

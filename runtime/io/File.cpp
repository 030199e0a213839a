//===- File.cpp - Mapped input files and replaced output files ------------===//
#include "runtime/io/File.h"

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace cleave::rt {

//===----------------------------------------------------------------------===//
// MappedFile
//===----------------------------------------------------------------------===//

MappedFile &MappedFile::operator=(MappedFile &&other) noexcept {
  std::swap(bytes, other.bytes);
  std::swap(length, other.length);
  return *this;
}

MappedFile::~MappedFile() {
  if (bytes)
    munmap(bytes, size_t(length));
}

Status MappedFile::open(const std::string &path) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return errnoStatus(concat("cannot open '", path, "'"), errno);
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    return invalidArgument("'", path, "' is not a regular file");
  }
  length = info.st_size;
  if (length > 0) {
    void *memory = mmap(nullptr, size_t(length), PROT_READ, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) {
      int number = errno;
      ::close(fd);
      return errnoStatus(concat("cannot map '", path, "'"), number);
    }
    bytes = static_cast<char *>(memory);
  }
  ::close(fd);
  return Status();
}

void MappedFile::release() const {
  if (bytes)
    madvise(bytes, size_t(length), MADV_DONTNEED);
}

//===----------------------------------------------------------------------===//
// OutputFile
//===----------------------------------------------------------------------===//

OutputFile &OutputFile::operator=(OutputFile &&other) noexcept {
  std::swap(target, other.target);
  std::swap(temporary, other.temporary);
  std::swap(fd, other.fd);
  std::swap(length, other.length);
  std::swap(bytes, other.bytes);
  std::swap(isStream, other.isStream);
  std::swap(isCreator, other.isCreator);
  return *this;
}

OutputFile::~OutputFile() {
  close();
  if (isCreator && !temporary.empty())
    unlink(temporary.c_str());
}

void OutputFile::close() {
  if (bytes)
    munmap(bytes, size_t(length));
  if (fd >= 0)
    ::close(fd);
  bytes = nullptr;
  fd = -1;
}

/// A link stays one: what it points to is replaced.
static std::string resolved(const std::string &path) {
  char buffer[PATH_MAX];
  return realpath(path.c_str(), buffer) ? buffer : path;
}

static int reserve(int fd, int64_t size) {
  if (size == 0)
    return 0;
  int error = posix_fallocate(fd, 0, size);
  // Some file systems cannot reserve; then a hole must do.
  if (error == EOPNOTSUPP || error == EINVAL)
    error = ftruncate(fd, size) == 0 ? 0 : errno;
  return error;
}

static std::string temporaryFor(const std::string &target,
                                const std::string &suffix) {
  return concat(target, ".", suffix, ".tmp");
}

Status OutputFile::create(const std::string &path, int64_t size,
                          const std::string &suffix) {
  struct stat info;
  length = size;
  target = resolved(path);
  isStream = stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode);
  std::string context = concat("cannot write '", path, "'");
  if (isStream && S_ISDIR(info.st_mode))
    return errnoStatus(context, EISDIR);
  if (isStream) {
    fd = memfd_create("cleave-output", MFD_CLOEXEC);
  } else {
    if (access(target.c_str(), F_OK) == 0 && access(target.c_str(), W_OK) != 0)
      return errnoStatus(context, errno);
    temporary = temporaryFor(target, suffix);
    unlink(temporary.c_str()); // of a run that was killed
    fd = ::open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) {
      int number = errno;
      temporary.clear();
      return errnoStatus(context, number);
    }
    isCreator = true;
  }
  if (fd < 0)
    return errnoStatus(context, errno);
  if (int error = reserve(fd, size))
    return errnoStatus(context, error);
  return Status();
}

Status OutputFile::join(const std::string &path, const std::string &suffix) {
  target = resolved(path);
  temporary = temporaryFor(target, suffix);
  fd = ::open(temporary.c_str(), O_RDWR | O_CLOEXEC);
  struct stat info;
  if (fd < 0 || fstat(fd, &info) != 0)
    return errnoStatus(concat("cannot open '", temporary,
                              "', which rank 0 has created; all ranks need the "
                              "same file system"),
                       errno);
  length = info.st_size;
  return Status();
}

Status OutputFile::map(char **data) {
  if (!bytes && length > 0) {
    void *memory = mmap(nullptr, size_t(length), PROT_READ | PROT_WRITE,
                        MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
      return errnoStatus(concat("cannot map '", temporary, "'"), errno);
    bytes = static_cast<char *>(memory);
  }
  *data = bytes;
  return Status();
}

static int writeAll(int fd, const char *data, int64_t size) {
  while (size > 0) {
    ssize_t written = ::write(fd, data, size_t(size));
    if (written < 0 && errno != EINTR)
      return errno;
    if (written > 0) {
      data += written;
      size -= written;
    }
  }
  return 0;
}

Status OutputFile::commit() {
  std::string context = concat("cannot write '", target, "'");
  if (!isStream) {
    if (rename(temporary.c_str(), target.c_str()) != 0)
      return errnoStatus(context, errno);
    temporary.clear();
    close();
    return Status();
  }
  char *data;
  CLEAVE_RETURN_IF_ERROR(map(&data));
  int out = ::open(target.c_str(), O_WRONLY | O_CLOEXEC);
  if (out < 0)
    return errnoStatus(context, errno);
  int error = writeAll(out, data, length);
  if (::close(out) != 0 && !error)
    error = errno;
  close();
  return error ? errnoStatus(context, error) : Status();
}

Status writeTextFile(const std::string &path, const std::string &text) {
  OutputFile file;
  char *data = nullptr;
  CLEAVE_RETURN_IF_ERROR(
      file.create(path, int64_t(text.size()), std::to_string(getpid())));
  CLEAVE_RETURN_IF_ERROR(file.map(&data));
  if (!text.empty())
    std::memcpy(data, text.data(), text.size());
  return file.commit();
}

} // namespace cleave::rt

//===- ObjectCache.cpp - Compiled kernels on disk -------------------------===//
#include "passes/lower/ObjectCache.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Support/xxhash.h"

using namespace llvm;
using namespace cleave;

static constexpr size_t kChecksumBytes = 8;

ObjectCache::ObjectCache(std::string dir, uint64_t maxBytes)
    : directory(std::move(dir)), maxBytes(maxBytes) {
  if (directory.empty())
    return;
  std::error_code error = sys::fs::create_directories(directory);
  if (!error && !sys::fs::can_write(directory))
    error = std::make_error_code(std::errc::permission_denied);
  if (!error)
    return;
  failure =
      "cannot use the kernel cache '" + directory + "': " + error.message();
  directory.clear();
}

ObjectCache::~ObjectCache() {
  if (grown)
    trim();
}

std::string ObjectCache::defaultDirectory() {
  if (auto own = sys::Process::GetEnv("CLEAVE_CACHE_DIR"))
    return *own;
  SmallString<128> path;
  if (auto xdg = sys::Process::GetEnv("XDG_CACHE_HOME"); xdg && !xdg->empty())
    path = *xdg;
  else if (auto home = sys::Process::GetEnv("HOME"); home && !home->empty())
    sys::path::append(path, *home, ".cache");
  else
    return "";
  sys::path::append(path, "cleave");
  return std::string(path);
}

std::string ObjectCache::pathOf(StringRef key) const {
  SmallString<128> path(directory);
  sys::path::append(path, key + ".o");
  return std::string(path);
}

std::optional<SmallVector<char, 0>> ObjectCache::lookup(StringRef key) const {
  if (directory.empty())
    return std::nullopt;
  std::string path = pathOf(key);
  int file;
  if (sys::fs::openFileForRead(path, file))
    return std::nullopt;
  auto buffer = MemoryBuffer::getOpenFile(sys::fs::convertFDToNativeFile(file),
                                          path, /*FileSize=*/-1,
                                          /*RequiresNullTerminator=*/false);
  // The oldest by use go first.
  auto now = std::chrono::system_clock::now();
  (void)sys::fs::setLastAccessAndModificationTime(
      file, std::chrono::time_point_cast<std::chrono::nanoseconds>(now));
  sys::Process::SafelyCloseFileDescriptor(file);
  if (!buffer || (*buffer)->getBufferSize() < kChecksumBytes)
    return std::nullopt;
  StringRef content = (*buffer)->getBuffer();
  StringRef object = content.drop_back(kChecksumBytes);
  uint64_t sum = support::endian::read64le(object.end());
  if (sum != xxh3_64bits(arrayRefFromStringRef(object)))
    return std::nullopt;
  return SmallVector<char, 0>(object.begin(), object.end());
}

void ObjectCache::store(StringRef key, ArrayRef<char> object) {
  if (directory.empty())
    return;
  std::string path = pathOf(key);
  Expected<sys::fs::TempFile> file =
      sys::fs::TempFile::create(path + ".%%%%%%%%.tmp");
  if (!file) {
    consumeError(file.takeError());
    return;
  }
  bool written;
  {
    raw_fd_ostream stream(file->FD, /*shouldClose=*/false);
    StringRef text(object.data(), object.size());
    char sum[kChecksumBytes];
    support::endian::write64le(sum, xxh3_64bits(arrayRefFromStringRef(text)));
    stream << text << StringRef(sum, kChecksumBytes);
    stream.flush();
    written = !stream.has_error();
    stream.clear_error();
  }
  // A full disk costs only the time to compile again.
  Error error = written ? file->keep(path) : file->discard();
  grown = true;
  consumeError(std::move(error));
}

void ObjectCache::trim() const {
  struct Entry {
    sys::TimePoint<> used;
    uint64_t bytes;
    std::string path;
  };
  std::vector<Entry> entries;
  uint64_t total = 0;
  std::error_code error;
  for (sys::fs::directory_iterator it(directory, error), end;
       !error && it != end; it.increment(error)) {
    ErrorOr<sys::fs::basic_file_status> status = it->status();
    if (!status || !StringRef(it->path()).ends_with(".o"))
      continue;
    total += status->getSize();
    entries.push_back({status->getLastModificationTime(), status->getSize(),
                       std::string(it->path())});
  }
  if (total <= maxBytes)
    return;
  llvm::sort(entries,
             [](const Entry &a, const Entry &b) { return a.used < b.used; });
  for (const Entry &entry : entries) {
    if (total <= maxBytes / 2)
      break;
    (void)sys::fs::remove(entry.path);
    total -= entry.bytes;
  }
}

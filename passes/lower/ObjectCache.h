//===- ObjectCache.h - Compiled kernels on disk ----------------*- C++ -*-===//
// One file per object, named by what it was made from. Several compilers may
// use a cache at once: a file appears whole, by renaming, or not at all. A
// checksum at the end of the file makes a damaged one be ignored. The oldest
// files go when the cache has grown too large.
//===----------------------------------------------------------------------===//
#ifndef CLEAVE_PASSES_LOWER_OBJECTCACHE_H
#define CLEAVE_PASSES_LOWER_OBJECTCACHE_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <atomic>
#include <optional>
#include <string>

namespace cleave {

class ObjectCache {
public:
  /// `directory` is created; empty means no cache.
  explicit ObjectCache(std::string directory, uint64_t maxBytes = uint64_t(1)
                                                                  << 30);
  /// Removes the oldest files if the cache has grown past its limit.
  ~ObjectCache();

  /// $CLEAVE_CACHE_DIR, or `cleave` in $XDG_CACHE_HOME or ~/.cache; empty if
  /// none of them is set, or if $CLEAVE_CACHE_DIR is.
  static std::string defaultDirectory();

  std::optional<llvm::SmallVector<char, 0>> lookup(llvm::StringRef key) const;
  void store(llvm::StringRef key, llvm::ArrayRef<char> object);

  /// Why the cache could not be used; empty if it could.
  std::string problem() const { return failure; }

private:
  std::string pathOf(llvm::StringRef key) const;
  void trim() const;

  std::string directory;
  uint64_t maxBytes;
  std::string failure;
  std::atomic<bool> grown = false;
};

} // namespace cleave

#endif // CLEAVE_PASSES_LOWER_OBJECTCACHE_H

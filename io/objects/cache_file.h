// CacheFile: a file in a cache's folder, read and written at offsets.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "core/descriptor.h"

namespace stoker {

// pwrite(2), or in tests one that fails.
using WriteCall = std::function<ssize_t(int, const void*, size_t, off_t)>;

// Errors are numbers of errno. Thread-safe after Open. Move-only.
class CacheFile {
 public:
  // Opens a file of the folder, or makes it if `flags` say so, readable by its owner only. EPERM if
  // it is not believed: it must be a regular file with one name, of this process' user or root, to
  // which nobody else may write. A file that loses its name meanwhile is ENOENT. 0: success.
  int Open(int folder, const std::string& name, int flags);
  bool open() const { return file_.open(); }
  void Close() { file_.Close(); }
  int descriptor() const { return *file_; }

  struct State {
    uint64_t bytes = 0;
    int64_t modified = 0;  // seconds since 1970
    bool removed = false;  // it has no name any more
  };
  State Look() const;  // a removed file if the system does not say

  // Returns the bytes that were read, fewer than requested only at the end of the file; below 0:
  // minus the error.
  int64_t Read(uint64_t offset, std::span<uint8_t> to) const;
  int Write(const WriteCall& write, uint64_t offset, std::span<const uint8_t> bytes) const;
  int Resize(uint64_t bytes) const;

 private:
  Descriptor file_;
};

}  // namespace stoker

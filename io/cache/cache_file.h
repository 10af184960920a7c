// CacheFile: a file in a cache's folder, read and written at offsets.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "core/system/descriptor.h"

namespace stoker {

// pwrite(2); in tests a function that fails.
using WriteCall = std::function<ssize_t(int, const void*, size_t, off_t)>;

// Errors are errno values. Thread-safe after Open. Move-only.
class CacheFile {
 public:
  // Opens a file of the folder, or creates it if `flags` say so, readable by its owner only.
  // Returns 0 on success. EPERM: the file is not trusted, because it is not a regular file with one
  // name that belongs to this process' user or root and that nobody else may write to. ENOENT: the
  // file was removed meanwhile.
  int Open(int folder, const std::string& name, int flags);
  bool open() const { return file_.open(); }
  void Close() { file_.Close(); }
  int descriptor() const { return *file_; }

  struct State {
    uint64_t bytes = 0;
    int64_t modified = 0;  // seconds since 1970
    bool removed = false;  // it no longer has a name
  };
  State Stat() const;  // reports a removed file if fstat fails

  // Returns the number of bytes read, which is less than requested only at the end of the file; on
  // failure minus the errno.
  int64_t Read(uint64_t offset, std::span<uint8_t> to) const;
  int Write(const WriteCall& write, uint64_t offset, std::span<const uint8_t> bytes) const;
  int Resize(uint64_t bytes) const;

 private:
  Descriptor file_;
};

}  // namespace stoker

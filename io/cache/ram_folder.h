// RamFolder: a folder in the machine's memory (tmpfs) that a user's processes share as long as one
// of them uses it.
//
// The last one that closes it removes it, with its files. After kill -9 of the last one it stays:
// the next process that opens it takes it over.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <string>

#include "core/result/result.h"
#include "core/system/descriptor.h"
#include "io/cache/cache_file.h"

namespace stoker {

class RamFolder {
 public:
  // Opens this user's folder in `root`, or makes it, for its owner only. Errors name the folder:
  // it belongs to somebody else, or others may use it (PermissionDenied); there is no such root.
  static Result<std::unique_ptr<RamFolder>> Open(const std::string& root = "/dev/shm");

  // Closes it. All files in it must be closed by this process. Does nothing in a forked child.
  ~RamFolder();
  RamFolder(const RamFolder&) = delete;
  RamFolder& operator=(const RamFolder&) = delete;

  const std::string& path() const { return path_; }

  // The memory that its files take, and the memory that they may take at most, which the size of
  // the tmpfs limits. In bytes.
  struct Room {
    uint64_t taken = 0;
    uint64_t most = 0;
  };
  Result<Room> FindRoom() const;

 private:
  explicit RamFolder(std::string path) : path_(std::move(path)) {}
  Status TryOpen(bool& again);
  Status CheckOwner() const;
  void Remove();

  const std::string path_;
  const pid_t process_ = getpid();
  Descriptor folder_;
  CacheFile users_;  // processes that use the folder hold a shared flock on it
};

}  // namespace stoker

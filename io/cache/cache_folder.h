// CacheFolder: the files of a cache, which several processes share.
//
//   v1.lock                        locked (flock) by the process that adds or removes segments;
//                                  8 bytes: the number of the last segment that was made
//   v1-NUMBER-CAPACITY.data        a segment: ranges of objects, one after the other
//   v1-NUMBER-CAPACITY.index       its records (cache_record.h), in the order in which ranges came
//
// Numbers are hexadecimal. A segment's two files never take more than CAPACITY bytes of the disk,
// so the capacities of all segments are the bound of the cache. Files with other names are not
// touched.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result/result.h"
#include "core/system/descriptor.h"
#include "io/cache/cache_file.h"

namespace stoker {

inline constexpr uint64_t kCacheBlockBytes = 4096;  // the unit in which file systems allocate

// Makes a folder and those above it that do not exist, for their owner only. Returns false, with
// errno set, if it cannot.
bool MakeFolders(const std::string& path);

// The name of a segment. Numbers grow.
struct SegmentName {
  uint64_t number = 0;
  uint64_t capacity = 0;

  std::string Data() const;
  std::string Index() const;
  // Returns nullopt for the name of another file.
  static std::optional<SegmentName> OfData(std::string_view file);
  static std::optional<SegmentName> OfIndex(std::string_view file);

  friend bool operator==(const SegmentName&, const SegmentName&) = default;
};

// Holds the lock of the cache, which excludes other processes and other threads that ask for it.
class CacheLock {
 public:
  explicit CacheLock(int descriptor) : descriptor_(descriptor) {}
  CacheLock(CacheLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  CacheLock& operator=(CacheLock&&) = delete;
  ~CacheLock();
  bool held() const { return descriptor_ >= 0; }

 private:
  int descriptor_;  // below 0 if there is none
};

// Thread-safe, except that one thread at a time may lock. Functions without a Result return an
// errno; 0 means success.
class CacheFolder {
 public:
  // Makes the folder if it does not exist, for its owner only. Errors name it.
  static Result<CacheFolder> Open(const std::string& path);

  const std::string& path() const { return path_; }
  int descriptor() const { return *folder_; }
  bool writable() const { return writable_; }
  // Whether somebody has removed the cache's files.
  bool removed() const { return lock_.Stat().removed; }

  // Waits up to a second for other processes; longer waits are avoided because a stopped process
  // may hold the lock. Returns nullopt if the lock was not free in that time. The kernel releases
  // the lock of a process that is killed.
  std::optional<CacheLock> Lock() const;

  uint64_t last_number() const;  // of the last segment made; a hint: a kill may leave an old one

  // Replaces `segments` by all segments, ordered by number, and `leftovers` by the segments that a
  // killed process left with an index only. On failure both lists are incomplete.
  int List(std::vector<SegmentName>& segments, std::vector<SegmentName>& leftovers) const;

  // Makes a segment, with a number above all others. Precondition: the lock is held.
  int Add(uint64_t capacity, SegmentName& name) const;

  // Returns when a segment was last used, in seconds since 1970; 0 means unknown.
  int64_t LastUse(const SegmentName& name) const;

  // Removes a segment that no process uses, or has used for `idle` seconds: readers and writers of
  // a segment hold a shared flock on its data. Returns false if it is in use or cannot be removed.
  // Precondition: the lock is held.
  bool Remove(const SegmentName& name, int64_t idle) const;
  void RemoveLeftover(const SegmentName& name) const;

 private:
  CacheFolder(std::string path, Descriptor folder)
      : path_(std::move(path)), folder_(std::move(folder)) {}
  Status OpenLock();

  std::string path_;
  Descriptor folder_;
  CacheFile lock_;
  bool writable_ = true;
};

}  // namespace stoker

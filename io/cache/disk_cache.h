// DiskCache: keeps ranges of remote objects on a local disk. object store → cache → reader.
//
// A sample is the same range of the same object in every epoch, so ranges are kept as they were
// read: exactly this range of this version of the object, in the order in which ranges came, in
// large files (io/cache/cache_folder.h). Processes of one machine share a folder, at the same
// time or one after another: each finds what the others have kept.
//
// Bytes are verified by their checksum whenever they are read. So neither kill -9 nor a crash of
// the machine, a full disk, another process, or bits that flip on the disk can cause wrong bytes:
// the range is missed, and is read from the store again.
//
// The files of all processes together never take more of the disk than the bytes given to Open (if
// processes give different numbers, the largest counts), apart from the file system's own overhead.
// A full cache keeps what it has: with orders that are shuffled again in each epoch, the ranges
// used last say nothing about those that come next. Only files that no running process has used,
// and nobody for an hour, make room for others; until then they also keep the ranges of old
// versions of objects.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <vector>

#include "core/result/result.h"
#include "io/cache/cache_folder.h"
#include "io/cache/cache_segment.h"
#include "io/cache/cache_table.h"
#include "io/cache/cached_object.h"

namespace stoker {

// Counts of a DiskCache since it was opened.
struct DiskCacheCounts {
  uint64_t hits = 0, hit_bytes = 0;   // ranges that were read from the cache
  uint64_t misses = 0;                // ranges that it did not have
  uint64_t kept = 0, kept_bytes = 0;  // ranges that were added
  uint64_t refused = 0;               // ranges that were not added: the cache is full or paused
  uint64_t damaged = 0;               // ranges whose checksum was wrong; also misses
  uint64_t removed = 0;               // unused files that made room
  uint64_t disk_errors = 0;           // failures of the disk or the folder
  std::string last_error;             // the last disk error: file, cause and advice in a sentence
  uint64_t ranges = 0, range_bytes = 0;  // in the cache, as far as this process knows
  uint64_t memory_bytes = 0;             // of the table of ranges: 27 to 42 for each
};

// For tests; other callers use the defaults.
struct DiskCacheSettings {
  std::chrono::seconds idle{3600};          // files unused for this long may be removed
  std::chrono::milliseconds pause{10'000};  // before a full cache or disk is tried again
  WriteCall write = pwrite;
};

// Thread-safe. Opens at most 513 files: about 66, if all processes give the same number of bytes.
class DiskCache {
 public:
  // Makes the folder if it does not exist, readable by its owner only, and loads the list of its
  // ranges, 32 bytes for each. Files of users other than root and this one are not trusted.
  // `bytes`: at least 64 KiB; if the existing files take more, files unused for an hour are
  // removed, now or later. Errors name the folder.
  static Result<std::shared_ptr<DiskCache>> Open(const std::string& folder, uint64_t bytes,
                                                 DiskCacheSettings settings = {});

  // Fills `to` from `offset` on and returns true, if the cache has exactly this range. Otherwise
  // the content of `to` is undefined. A hit allocates nothing, takes no lock that another process
  // may hold, and is one `pread` for each 256 KiB. A miss looks for ranges that other processes
  // have kept meanwhile.
  bool Read(const CachedObject& object, uint64_t offset, std::span<uint8_t> to);

  // Begins to bring a range into memory without waiting for it, so that a later Read waits less:
  // all ranges that a thread has announced are then in flight at once. Returns false, and counts a
  // miss, if the cache does not have this range.
  bool Prefetch(const CachedObject& object, uint64_t offset, uint64_t length);

  // Keeps a range, unless the cache has it. Failures are only counted: if the cache or the disk is
  // full, or the folder was removed, the call returns early. It may wait for the disk, and a second
  // or two for a process that was stopped while it added something. In a forked child it does
  // nothing.
  void Write(const CachedObject& object, uint64_t offset, std::span<const uint8_t> bytes);

  // The same for bytes with their own key (cached_object.h), whose length readers do not know:
  // Prefetch returns it.
  bool Read(const RangeKey& key, std::span<uint8_t> to);
  std::optional<uint64_t> Prefetch(const RangeKey& key);
  bool Write(const RangeKey& key, std::span<const uint8_t> bytes);  // whether it was added

  // Whether Write would try to keep this many bytes now; false if the cache or the disk was full a
  // moment ago, or nothing can be added.
  bool MayWrite(uint64_t bytes) const;

  DiskCacheCounts counts() const;
  const std::string& folder() const { return folder_.path(); }
  uint64_t bytes() const { return bytes_; }

  // A warning for the users of the cache, to be shown once; empty if there is none.
  std::string Warning() const;

  // Public for std::make_shared; call Open instead.
  DiskCache(CacheFolder folder, uint64_t bytes, DiskCacheSettings settings);

 private:
  using Clock = std::chrono::steady_clock;

  // The extent reserved for a range that is being written.
  struct Reserved {
    std::shared_ptr<CacheSegment> segment;
    uint32_t slot = 0;
    uint64_t position = 0;
  };

  std::shared_ptr<CacheSegment> SegmentAt(uint32_t slot) const;
  void Forget(uint32_t slot);
  std::optional<CacheExtent> ExtentOf(const RangeKey& key);
  enum class ReadResult { kYes, kNo, kBroken };
  ReadResult TryRead(const RangeKey& key, std::span<uint8_t> to);

  // These functions require writing_.
  void Refresh();
  void LoadSegments();
  void LoadSegment(const SegmentName& name);
  void ForgetRemoved();
  void LoadNewest();
  void Detach();
  // These also require the folder's lock.
  void Trim();
  int ReserveAnywhere(uint64_t length, Reserved& reserved);
  int AddSegment(uint64_t length);
  int MakeRoom(uint64_t most, std::chrono::seconds idle, uint64_t& taken,
               size_t files = ~size_t{0});

  std::optional<Reserved> Reserve(const RangeKey& key, uint64_t length);
  bool Commit(const Reserved& reserved, const CacheRecord& record, int failed);
  bool IsPaused(uint64_t length) const;
  void Pause(uint64_t length);
  void Fail(int error_number, const std::string& what);

  CacheFolder folder_;
  const uint64_t bytes_;
  const DiskCacheSettings settings_;
  const int process_;
  CacheTable table_;

  mutable std::shared_mutex segments_mutex_;
  std::vector<std::shared_ptr<CacheSegment>> segments_;  // by slot; null means the segment is gone

  std::mutex writing_;
  std::shared_ptr<CacheSegment> newest_;  // the segment to which ranges are added
  uint32_t newest_slot_ = 0;
  std::vector<SegmentName> found_;     // the segments that the folder had when it was last listed
  std::vector<uint64_t> pending_;      // numbers of the keys for which an extent is reserved
  std::optional<uint64_t> last_seen_;  // the folder's last number at that time
  bool detached_ = false;              // the folder was removed

  // Until `full_until_`, no range of this length or a longer one is tried.
  std::atomic<uint64_t> full_from_{~uint64_t{0}};
  std::atomic<Clock::rep> full_until_{0};

  std::atomic<uint64_t> hits_{0}, hit_bytes_{0}, misses_{0}, kept_{0}, kept_bytes_{0}, refused_{0},
      damaged_{0}, removed_{0}, disk_errors_{0};
  mutable std::mutex error_mutex_;
  std::string last_error_;
};

}  // namespace stoker

// CacheSegment: an open segment of a cache (io/objects/cache_folder.h).
//
// Bytes are only added at its end, and never changed: a place is reserved by making the file
// longer, filled without a lock, and known to others once its record is in the index. So what a
// kill or a crash of the machine leaves behind is a place without a record, or a record whose
// checksum is not that of the bytes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "io/objects/cache_file.h"
#include "io/objects/cache_folder.h"
#include "io/objects/cache_record.h"

namespace stoker {

// The disk space that a segment needs at least to keep a range of `length` bytes.
uint64_t SegmentBytesFor(uint64_t length);

// The size that a file may have (RLIMIT_FSIZE). To exceed it is a signal, which ends the process.
uint64_t FileSizeLimit();

// Errors are numbers of errno; 0: success.
class CacheSegment {
 public:
  // `failed`: why there is none.
  static std::shared_ptr<CacheSegment> Open(const CacheFolder& folder, const SegmentName& name,
                                            int& failed);
  explicit CacheSegment(const SegmentName& name) : name_(name) {}

  const SegmentName& name() const { return name_; }

  enum class Outcome {
    kRead,
    kDamaged,  // these are not the bytes that were kept
    kGone,     // the segment has been removed
    kFailed,   // errno says why
  };
  // Fills `to` from `position` on, if the bytes have this checksum, which begins with `check`.
  // Thread-safe.
  Outcome Read(uint64_t position, std::span<uint8_t> to, uint32_t check, uint32_t checksum);

  // Begins to read this part into the page cache. Thread-safe.
  void Prefetch(uint64_t position, uint64_t length) const;

  // Keeps the segment from being removed as long as this object lives. False: it is gone.
  // Thread-safe.
  bool Use();

  // Fills a reserved place. Thread-safe.
  int Write(const WriteCall& write, uint64_t position, std::span<const uint8_t> bytes) const {
    return data_.Write(write, position, bytes);
  }

  // These are called by one thread at a time; by those that change something, the folder's lock is
  // held, and the segment is in use.

  // Calls `take` for each record that has come since the last call. `key` may be of any range.
  void Load(const std::function<void(const CacheRecord&)>& take);
  // EFBIG: there is no room.
  int Reserve(uint64_t length, uint64_t& position) const;
  // A place is not filled. It is free again if it is the last one.
  void GiveBack(uint64_t position, uint64_t length) const;
  int Append(const WriteCall& write, const CacheFolder& folder, const CacheRecord& record);
  // The records of others are not loaded any more.
  void CloseIndex() { index_.Close(); }

 private:
  void Touch();

  const SegmentName name_;
  CacheFile data_, index_;
  uint64_t loaded_ = 0;              // bytes of the index behind which no sound record was seen
  uint64_t seen_ = 0;                // its size then
  std::atomic<bool> in_use_{false};  // the flock is held
  std::atomic<int64_t> touched_{0};  // seconds of a steady clock
};

}  // namespace stoker

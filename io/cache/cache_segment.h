// CacheSegment: an open segment of a cache (io/cache/cache_folder.h).
//
// Bytes are only added at its end, and never changed. An extent is reserved by making the file
// longer, then filled without a lock, and others learn of it once its record is in the index. So a
// killed process or a crash of the machine leaves, at worst, an extent without a record, or a
// record whose checksum does not match the bytes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "io/cache/cache_file.h"
#include "io/cache/cache_folder.h"
#include "io/cache/cache_record.h"

namespace stoker {

// Returns the disk space that a segment needs at least to keep a range of `length` bytes.
uint64_t SegmentBytesFor(uint64_t length);

// Returns the largest size that a file may have (RLIMIT_FSIZE). Exceeding it raises a signal that
// ends the process.
uint64_t FileSizeLimit();

// Errors are errno values; 0 means success.
class CacheSegment {
 public:
  // Returns null on failure; `failed` is then the errno.
  static std::shared_ptr<CacheSegment> Open(const CacheFolder& folder, const SegmentName& name,
                                            int& failed);
  explicit CacheSegment(const SegmentName& name) : name_(name) {}

  const SegmentName& name() const { return name_; }

  enum class Outcome {
    kRead,
    kDamaged,  // the bytes differ from those that were kept
    kGone,     // the segment has been removed
    kFailed,   // errno says why
  };
  // Fills `to` from `position` on, if the bytes have this checksum, which starts from `check`.
  // Thread-safe.
  Outcome Read(uint64_t position, std::span<uint8_t> to, uint32_t check, uint32_t checksum);

  // Begins to read this range into the page cache. Thread-safe.
  void Prefetch(uint64_t position, uint64_t length) const;

  // Keeps the segment from being removed as long as this object lives. Returns false if it is gone.
  // Thread-safe.
  bool Use();

  // Fills a reserved extent. Thread-safe.
  int Write(const WriteCall& write, uint64_t position, std::span<const uint8_t> bytes) const {
    return data_.Write(write, position, bytes);
  }

  // The functions below are called by one thread at a time. For those that change something, the
  // folder's lock must be held and the segment be in use.

  // Calls `take` for each record added since the last call. A record's `key` may belong to any
  // range.
  void Load(const std::function<void(const CacheRecord&)>& take);
  // Returns EFBIG if there is no room.
  int Reserve(uint64_t length, uint64_t& position) const;
  // Gives back an extent that was not filled. It is free again if it is the last one.
  void GiveBack(uint64_t position, uint64_t length) const;
  int Append(const WriteCall& write, const CacheFolder& folder, const CacheRecord& record);
  // Stops loading the records of other processes.
  void CloseIndex() { index_.Close(); }

 private:
  void Touch();

  const SegmentName name_;
  CacheFile data_, index_;
  uint64_t loaded_ = 0;              // end of the sound records seen so far, in the index
  uint64_t seen_ = 0;                // size of the index at that time
  std::atomic<bool> in_use_{false};  // the flock is held
  std::atomic<int64_t> touched_{0};  // seconds of a steady clock
};

}  // namespace stoker

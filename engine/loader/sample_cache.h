// SampleCache: keeps the photographs that a loader has decoded, for its next epochs and for other
// processes.
//
// Baseline JPEGs are kept packed (transforms/packed/pack.h): they have the same pixels and take
// less than half of the time to decode. Everything else is kept as it is in its file. With either,
// batches and errors are those that the files give.
//
// Kept are photographs that are files of their own, and those of objects of known versions. The key
// is the file's path, size, inode and times, or the object's version, so that a photograph of a
// file that has changed is not found. Every use looks at the file's times (one stat). Only a change
// that leaves the size and, within a tick of the file system's clock, the times as they are goes
// unnoticed.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/result.h"
#include "engine/loader/cache_choice.h"
#include "engine/watching/stats.h"
#include "io/objects/disk_cache.h"
#include "io/objects/ram_folder.h"
#include "io/readers/reader.h"
#include "io/sources/source.h"
#include "transforms/packed/pack.h"

namespace stoker {

// Says whether the cache has a sample in flight, or is to get it.
struct CachedSample {
  enum class State : uint8_t {
    kNone,     // it is read from its file, and not kept
    kMissing,  // it is read from its file, and to be kept
    kPacked,   // the same, and it has been packed: its bytes are no longer the file's
    kKept,     // it is read from the cache
  };

  State state = State::kNone;
  RangeKey key;
  uint64_t length = 0;  // of what is kept

  bool has_bytes_of_file() const { return state == State::kNone || state == State::kMissing; }
};

// Thread-safe. The source must outlive it.
class SampleCache {
 public:
  // Opens the cache; null if the choice is none. `working_memory`: how many bytes the loaders may
  // take beside a cache in memory.
  //
  // InvalidArgument: the samples are in memory, or the source is called; Unimplemented: they are in
  // records. ResourceExhausted: the machine has not so much memory. Errors of
  // DiskCache::Open and RamFolder::Open.
  static Result<std::shared_ptr<SampleCache>> Open(const CacheChoice& choice,
                                                   const SampleSource& source,
                                                   uint64_t working_memory);

  // Before a sample is read: says what the cache has of it. `read` names the file and the range. A
  // kept sample begins to be brought into memory.
  void Find(const ReadRequest& read, CachedSample& cached);

  // Reads a kept sample, which is then as if it had been read from its file, but for its bytes:
  // `image` lies in the buffer of `read`, and has kBufferPadding readable bytes behind it. False:
  // the sample must be read from its file, and be kept again.
  bool Read(ReadRequest& read, CachedSample& cached, std::span<const uint8_t>& image);

  // Packs a missing sample, if there is room to keep it: `image`, which has kBufferPadding readable
  // bytes behind it, is then the packed image in the buffer of `read`. It is faster to decode,
  // which makes up for a part of the time for packing.
  void Pack(ReadRequest& read, CachedSample& cached, std::span<const uint8_t>& image,
            JpegPacker& packer);

  // Keeps a missing sample, packed or not, that was decoded without an error.
  void Keep(const CachedSample& cached, std::span<const uint8_t> image);

  CacheCounts counts() const;
  // A warning for the users of the cache, to be shown once; empty if there is none.
  std::string Warning() const;

  SampleCache(std::unique_ptr<RamFolder> ram, std::shared_ptr<DiskCache> store,
              const SampleSource& source, std::string place);

 private:
  std::optional<RangeKey> KeyOf(const ReadRequest& read) const;

  const std::unique_ptr<RamFolder> ram_;  // null: the store is on disk. Declared before the store
  const std::shared_ptr<DiskCache> store_;
  const SampleSource& source_;
  const std::string place_;        // CacheChoice::ToString
  const RangeKey working_folder_;  // of relative paths
  std::atomic<uint64_t> hits_{0}, hit_bytes_{0}, misses_{0}, kept_{0}, kept_bytes_{0}, packed_{0},
      refused_{0}, unused_{0};
};

}  // namespace stoker

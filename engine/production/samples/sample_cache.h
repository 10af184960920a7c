// SampleCache: keeps the photographs that a loader has decoded, for its next epochs and for other
// processes.
//
// JPEGs and PNGs are kept packed (image_packer.h): they have the same pixels and take less than
// half of the time to decode. Everything else is kept as it is in its file. Either way batches and
// errors are the same as from the files.
//
// Photographs are kept if each is its own file, or an object of known version. The key is the
// file's path and stamp (core/system/file_stamp.h), or the object's version, so that a changed file
// is not found. Every use looks at the file's times (one stat). Where these are not proof, the
// first use also reads parts of the file and keeps their hash in memory, some 50 bytes for each
// photograph; this concerns file systems in user space, where a cache saves most. After that, while
// the loaders exist, its stamp alone identifies it. A file that has only just changed is not kept,
// because a further change may get the same stamp.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>

#include "core/result/result.h"
#include "core/system/file_stamp.h"
#include "engine/metrics/stats.h"
#include "engine/options/cache_choice.h"
#include "engine/production/samples/image_packer.h"
#include "io/cache/disk_cache.h"
#include "io/cache/ram_folder.h"
#include "io/readers/reader.h"
#include "io/source/source.h"

namespace stoker {

// Whether a sample in flight comes from the cache, or is to be added to it.
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
  // Opens the cache; returns null if `choice` names no cache. `working_memory`: how many bytes the
  // loaders may take in addition to a cache in memory.
  //
  // InvalidArgument: the samples are in memory, or the source has calls; Unimplemented: they are in
  // records. ResourceExhausted: the machine has too little memory. Errors of DiskCache::Open and
  // RamFolder::Open.
  static Result<std::shared_ptr<SampleCache>> Open(const CacheChoice& choice,
                                                   const SampleSource& source,
                                                   uint64_t working_memory);

  // Called before a sample is read: looks it up. `read` names the file and the range. If it is
  // kept, bringing it into memory begins.
  void Find(const ReadRequest& read, CachedSample& cached);

  // Reads a kept sample, as if from its file, except for its bytes: `image` is in the buffer of
  // `read`, followed by kBufferPadding readable bytes. Returns false if the sample must be read
  // from its file, and kept again.
  bool Read(ReadRequest& read, CachedSample& cached, std::span<const uint8_t>& image);

  // Packs a missing sample, if there is room to keep it: `image`, which has kBufferPadding readable
  // bytes after it, is then the packed image in the buffer of `read`. Faster decoding then makes up
  // for a part of the time for packing.
  void Pack(ReadRequest& read, CachedSample& cached, std::span<const uint8_t>& image,
            ImagePacker& packer);

  // Keeps a missing sample, packed or not, after it was decoded without an error.
  void Keep(const CachedSample& cached, std::span<const uint8_t> image);

  CacheCounts counts() const;
  // A warning for the users of the cache, to be shown once; empty if there is none.
  std::string Warning() const;

  SampleCache(std::unique_ptr<RamFolder> ram, std::shared_ptr<DiskCache> store,
              const SampleSource& source, std::string place);

 private:
  struct FileKey {
    RangeKey key;
    bool at_rest = true;  // whether it may be kept under this key
  };

  // The hashes of parts of files whose stamps are not proof, by hashes of path and stamp.
  class Contents {
   public:
    std::optional<uint64_t> Find(uint64_t key) const;
    void Set(uint64_t key, uint64_t hash);

   private:
    mutable std::mutex mutex_;
    std::unordered_map<uint64_t, uint64_t> hashes_;
  };

  // kAgain: compare parts of its content again, because the file has just been read.
  enum class Pass { kFirst, kAgain };
  std::optional<FileKey> KeyOf(const ReadRequest& read, Pass pass);
  std::optional<FileStamp> StampAt(const std::string& path);

  const std::unique_ptr<RamFolder> ram_;  // null if the store is on disk. Declared before the store
  const std::shared_ptr<DiskCache> store_;
  const SampleSource& source_;
  const std::string place_;        // CacheChoice::ToString
  const RangeKey working_folder_;  // of relative paths
  // The device, plus one, of the file system that was looked at last, and whether it keeps times of
  // changes, so that statfs need not be called for each photograph; 0 if no file was looked at yet.
  std::atomic<uint64_t> known_device_{0};
  Contents contents_;
  std::atomic<uint64_t> hits_{0}, hit_bytes_{0}, misses_{0}, kept_{0}, kept_bytes_{0}, packed_{0},
      refused_{0}, unused_{0};
};

}  // namespace stoker

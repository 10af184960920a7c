// Simulated ranges of objects for tests of the cache, and the size of its folder.
#pragma once

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "io/cache/disk_cache.h"
#include "tests/testing/storage/temp_folder.h"

namespace stoker::testing {

inline constexpr uint64_t kMiB = 1 << 20;

inline CachedObject ObjectOf(int number, const std::string& version = "\"v1\"") {
  return {"https://store/bucket/shard-" + std::to_string(number) + ".tar", version,
          uint64_t{1} << 32};
}

// Returns the content of a range, which differs for each object, version, offset and length.
inline std::vector<uint8_t> ContentOf(const CachedObject& object, uint64_t offset, size_t length) {
  const RangeKey key = object.KeyOf(offset, length);
  return Pattern(length, static_cast<uint32_t>(key.number) ^ key.check);
}

// Keeps the range.
inline void Keep(DiskCache& cache, const CachedObject& object, uint64_t offset, size_t length) {
  cache.Write(object, offset, ContentOf(object, offset, length));
}

enum class Hit { kNo, kRight, kWrong };

inline Hit Lookup(DiskCache& cache, const CachedObject& object, uint64_t offset, size_t length) {
  std::vector<uint8_t> got(length);
  if (!cache.Read(object, offset, got)) return Hit::kNo;
  return got == ContentOf(object, offset, length) ? Hit::kRight : Hit::kWrong;
}

// Returns the disk space of the folder's files.
inline uint64_t AllocatedBytes(const std::string& folder) {
  constexpr uint64_t kUnit = 512;  // of st_blocks
  uint64_t sum = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    struct stat info {};
    if (lstat(entry.path().c_str(), &info) == 0)
      sum += static_cast<uint64_t>(info.st_blocks) * kUnit;
  }
  return sum;
}

// Returns the folder's files with this ending, sorted by name.
inline std::vector<std::string> FilesOf(const std::string& folder, const std::string& ending) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ending) files.push_back(entry.path().string());
  }
  std::ranges::sort(files);
  return files;
}

inline std::shared_ptr<DiskCache> OpenCache(const std::string& folder, uint64_t bytes,
                                            DiskCacheSettings settings = {}) {
  return DiskCache::Open(folder, bytes, std::move(settings)).value();
}

}  // namespace stoker::testing

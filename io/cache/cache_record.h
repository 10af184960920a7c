// The records of a cache's index files: one for each range of an object that is kept.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace stoker {

// The extent of a range in a segment, and the checksum of its bytes (Crc32c, starting from the
// key's `check`).
struct CacheRecord {
  uint64_t key = 0;  // RangeKey::number (cached_object.h)
  uint64_t position = 0;
  uint64_t length = 0;
  uint32_t checksum = 0;

  friend bool operator==(const CacheRecord&, const CacheRecord&) = default;
};

inline constexpr uint64_t kCacheRecordBytes = 32;
using PackedCacheRecord = std::array<uint8_t, kCacheRecordBytes>;

// Returns the record's form in a file: little-endian, with a checksum that holds in this segment
// only.
PackedCacheRecord PackCacheRecord(const CacheRecord& record, uint64_t segment);

// Returns nullopt for bytes that are torn, damaged or of another segment, and for a range that is
// empty or does not lie in a segment of `capacity` bytes.
std::optional<CacheRecord> UnpackCacheRecord(std::span<const uint8_t, kCacheRecordBytes> bytes,
                                             uint64_t segment, uint64_t capacity);

}  // namespace stoker

#include "io/cache/cache_record.h"

#include <bit>
#include <cstddef>
#include <cstring>

#include "core/hash/crc32c.h"

namespace stoker {

namespace {

static_assert(std::endian::native == std::endian::little);

// A record, laid out in memory as in a file.
struct StoredRecord {
  uint64_t key = 0;
  uint64_t position = 0;
  uint64_t length = 0;
  uint32_t checksum = 0;  // of the range
  uint32_t own = 0;       // of this record, starting from the segment's number
};
static_assert(sizeof(StoredRecord) == kCacheRecordBytes);

uint32_t OwnChecksum(std::span<const uint8_t, kCacheRecordBytes> bytes, uint64_t segment) {
  std::array<uint8_t, sizeof(segment)> number{};
  std::memcpy(number.data(), &segment, sizeof(segment));
  return Crc32c(bytes.first(offsetof(StoredRecord, own)), Crc32c(number));
}

}  // namespace

PackedCacheRecord PackCacheRecord(const CacheRecord& record, uint64_t segment) {
  StoredRecord stored{.key = record.key,
                      .position = record.position,
                      .length = record.length,
                      .checksum = record.checksum};
  PackedCacheRecord bytes{};
  std::memcpy(bytes.data(), &stored, sizeof(stored));
  stored.own = OwnChecksum(bytes, segment);
  std::memcpy(bytes.data(), &stored, sizeof(stored));
  return bytes;
}

std::optional<CacheRecord> UnpackCacheRecord(std::span<const uint8_t, kCacheRecordBytes> bytes,
                                             uint64_t segment, uint64_t capacity) {
  StoredRecord stored;
  std::memcpy(&stored, bytes.data(), sizeof(stored));
  if (stored.own != OwnChecksum(bytes, segment)) return std::nullopt;
  if (stored.length == 0 || stored.length > capacity) return std::nullopt;
  if (stored.position > capacity - stored.length) return std::nullopt;
  return CacheRecord{.key = stored.key,
                     .position = stored.position,
                     .length = stored.length,
                     .checksum = stored.checksum};
}

}  // namespace stoker

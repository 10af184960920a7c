// CachedObject: makes the keys under which a cache keeps the ranges of an object.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/hash/sha256.h"

namespace stoker {

// The key of a range of an object. Two ranges with equal numbers are taken for the same one; the
// checksum of the bytes starts from `check`, so that 96 bits distinguish ranges. Both come from a
// SHA-256, so that someone who chooses the names in one store cannot forge ranges of another.
struct RangeKey {
  RangeKey() = default;
  explicit RangeKey(const Sha256Digest& digest);

  uint64_t number = 0;
  uint32_t check = 0;

  friend bool operator==(const RangeKey&, const RangeKey&) = default;
};

// One version of an object. Objects that differ in URL, version or size share no keys.
class CachedObject {
 public:
  // `version`: the ETag, or another text that changes when the object does.
  CachedObject(std::string_view url, std::string_view version, uint64_t bytes);

  RangeKey KeyOf(uint64_t offset, uint64_t length) const;

 private:
  Sha256Digest digest_;
};

}  // namespace stoker

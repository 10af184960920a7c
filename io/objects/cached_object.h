// CachedObject: what a cache finds the ranges of an object by.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/sha256.h"

namespace stoker {

// What a range of an object is found by. Two ranges with equal numbers are taken for the same; the
// checksum of the bytes begins with `check`, so that 96 bits tell ranges apart. They are of a
// SHA-256: who chooses the names in one store cannot make its ranges pass for those of another.
struct RangeKey {
  uint64_t number = 0;
  uint32_t check = 0;
};

// A version of an object. Objects that differ in URL, version or size have nothing in common.
class CachedObject {
 public:
  // `version`: the ETag, or what else changes when the object does.
  CachedObject(std::string_view url, std::string_view version, uint64_t bytes);

  RangeKey KeyOf(uint64_t offset, uint64_t length) const;

 private:
  Sha256Digest digest_;
};

}  // namespace stoker

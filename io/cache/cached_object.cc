#include "io/cache/cached_object.h"

#include <array>
#include <bit>
#include <cstring>
#include <string>

namespace stoker {

namespace {

static_assert(std::endian::native == std::endian::little);

// Returns a different digest for all arguments that differ: each number says where a text ends.
Sha256Digest DigestOf(std::string_view url, std::string_view version, uint64_t bytes) {
  std::string all = std::to_string(bytes) + " " + std::to_string(url.size()) + " ";
  return Sha256(all.append(url).append(version));
}

}  // namespace

RangeKey::RangeKey(const Sha256Digest& digest) {
  std::memcpy(&number, digest.data(), sizeof(number));
  std::memcpy(&check, digest.data() + sizeof(number), sizeof(check));
}

CachedObject::CachedObject(std::string_view url, std::string_view version, uint64_t bytes)
    : digest_(DigestOf(url, version, bytes)) {}

RangeKey CachedObject::KeyOf(uint64_t offset, uint64_t length) const {
  std::array<char, sizeof(digest_) + 2 * sizeof(uint64_t)> range{};
  std::memcpy(range.data(), digest_.data(), sizeof(digest_));
  std::memcpy(range.data() + sizeof(digest_), &offset, sizeof(offset));
  std::memcpy(range.data() + sizeof(digest_) + sizeof(offset), &length, sizeof(length));
  return RangeKey(Sha256({range.data(), range.size()}));
}

}  // namespace stoker

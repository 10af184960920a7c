// Multiply and shift, after A. Appleby's MurmurHash, in four lanes so that the multiplications
// overlap.
#include "core/hash/hash.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

namespace stoker {

namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint64_t kOdd = 0x9FB21C651E98DF25;  // any odd number with well-distributed bits

uint64_t Step(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * kOdd;
  return hash ^ hash >> 32;
}

// Loads up to 8 bytes, padded with zeros.
uint64_t Word(const uint8_t* at, size_t bytes = sizeof(uint64_t)) {
  uint64_t word = 0;
  std::memcpy(&word, at, bytes);
  return word;
}

}  // namespace

uint64_t Hash64(std::span<const uint8_t> bytes, uint64_t seed) {
  const uint8_t* at = bytes.data();
  size_t left = bytes.size();
  uint64_t hash = Step(seed, left);
  if (left >= 32) {
    std::array<uint64_t, 4> lane{hash, hash + 1, hash + 2, hash + 3};
    for (; left >= 32; at += 32, left -= 32) {
      __builtin_prefetch(at + 1024);  // hardware stops at the end of a page
      for (size_t i = 0; i < 4; ++i) lane[i] = Step(lane[i], Word(at + 8 * i));
    }
    for (const uint64_t each : lane) hash = Step(hash, each);
  }
  for (; left >= 8; at += 8, left -= 8) hash = Step(hash, Word(at));
  if (left > 0) hash = Step(hash, Word(at, left));
  return Step(Step(hash, 0), 0);
}

uint64_t Hash64(std::string_view text, uint64_t seed) {
  return Hash64(std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size()), seed);
}

}  // namespace stoker

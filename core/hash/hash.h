// A 64-bit hash for checksums and keys. Not cryptographic: collisions can be constructed.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace stoker {

// The hash depends on the bytes, their number and the seed only, and is the same on every machine
// and in every version, because files store it. If two sequences of equal length differ in a single
// aligned 8-byte word, their hashes differ: each step is a bijection of the word and of the hash so
// far.
uint64_t Hash64(std::span<const uint8_t> bytes, uint64_t seed = 0);
uint64_t Hash64(std::string_view text, uint64_t seed = 0);

}  // namespace stoker

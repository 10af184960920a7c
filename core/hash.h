// A 64-bit hash for checksums and keys. Not for secrets: whoever wants to can make collisions.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace stoker {

// A function of the bytes, their number and the seed; the same on every machine, today and later:
// files hold it. Of two sequences of one length that differ in a single aligned 8-byte word the
// hashes always differ: each step is a bijection, of the word and of the hash so far.
uint64_t Hash64(std::span<const uint8_t> bytes, uint64_t seed = 0);
uint64_t Hash64(std::string_view text, uint64_t seed = 0);

}  // namespace stoker

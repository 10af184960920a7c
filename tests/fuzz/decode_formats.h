// What the fuzzers of PNG and WebP do with one input; the replay test does the same with the
// corpus.
#pragma once

#include <cstdint>
#include <span>

namespace stoker::testing {

// Decode a region that the input itself chooses, under tight limits, and abort when a promise is
// broken: an error without an offset, a sink left incomplete, pixels that differ from those of the
// plain full decode, or one that is refused although the plain decode takes it. (A changed checksum
// is mended for PNG first, so that the fuzzer gets past it.)
void DecodeFuzzedPng(std::span<const uint8_t> input);
void DecodeFuzzedWebp(std::span<const uint8_t> input);

}  // namespace stoker::testing

// The functions that the fuzzers of PNG, WebP and the formats that are decoded whole run on an
// input; the replay test runs them on the corpus.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace stoker::testing {

// Decode a region that the input itself chooses, under tight limits, and abort if an invariant is
// violated: an error without an offset, an incomplete sink, pixels that differ from those of the
// reference decoder, or a refused file that the reference decoder accepts. (For PNG, changed
// checksums are corrected first, so that the fuzzer gets past them. It is also decoded as a mask,
// and its row made and compared with the reference's.)
void DecodeFuzzedPng(std::span<const uint8_t> input);
void DecodeFuzzedWebp(std::span<const uint8_t> input);

// Does the same with an input of a format of transforms/whole/, and compares the region with the
// image that was decoded whole, and its alpha and 16 bits with their absence.
void DecodeFuzzedWhole(std::span<const uint8_t> input);

// Gives each chunk that is whole the checksum of its bytes. `png`: any bytes.
void MendPngChecksums(std::vector<uint8_t>& png);

}  // namespace stoker::testing

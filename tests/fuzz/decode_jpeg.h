// What the JPEG fuzzer does with one input; the replay test does the same with the corpus.
#pragma once

#include <cstdint>
#include <span>

namespace stoker::testing {

// Decodes a region that the input itself chooses, under tight limits, by our decoder and by
// libjpeg-turbo alone, and aborts when a promise is broken: one of them accepts what the other
// refuses or gives another error, an error without an offset, a sink left incomplete, or pixels
// that differ from each other or from those of the plain full decode (where that succeeds).
void DecodeFuzzedJpeg(std::span<const uint8_t> input);

}  // namespace stoker::testing

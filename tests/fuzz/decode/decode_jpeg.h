// The function that the JPEG fuzzer runs on an input; the replay test runs it on the corpus.
#pragma once

#include <cstdint>
#include <span>

namespace stoker::testing {

// Decodes a region that the input itself chooses, under tight limits, with the fast decoder and
// with libjpeg-turbo alone, and aborts if an invariant is violated: one of them accepts what the
// other refuses or gives another error, an error without an offset, an incomplete sink, or pixels
// that differ from each other or from those of the reference decoder (if that succeeds). Then does
// the same with truncated files accepted, which must not change a result that was a success
// without.
void DecodeFuzzedJpeg(std::span<const uint8_t> input);

}  // namespace stoker::testing

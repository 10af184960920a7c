// The function that the crop index fuzzer runs on an input; the replay test runs it on the corpus.
#pragma once

#include <cstdint>
#include <span>

namespace stoker::testing {

// `input`: the number of changes (its lowest four bits) and how many bytes are cut off the index;
// three bytes per change (two for the offset, one for the value); and a photograph. The
// photograph's index, changed in this way and signed again, is used to decode a region that the
// input chooses. Aborts if an invariant is violated: if the index was not used, any difference from
// decoding without one; if it was used, an incomplete sink, or for a valid photograph other pixels
// although at most one entry point is wrong (two can confirm each other); and if the index takes
// changed bytes of the photograph for intact ones, or bytes outside of it. Crops for devices have
// the CPU's pixels by the index as it was made, and by the changed one the samples of the
// reference.
void DecodeFuzzedIndex(std::span<const uint8_t> input);

}  // namespace stoker::testing

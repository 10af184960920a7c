// What the crop index fuzzer does with one input; the replay test does the same with the corpus.
#pragma once

#include <cstdint>
#include <span>

namespace stoker::testing {

// `input`: how many lies (its lowest four bits) and how many bytes are cut off the index; three
// bytes a lie (where, two bytes, and what); and a photograph. Its index, changed so and signed
// again, is used to decode a region that the input chooses. Aborts when a promise is broken:
// where the index was not used, anything is other than without one; where it was used, a sink left
// incomplete, or for a sound photograph other pixels although no more than one place is wrong. (Two
// can confirm each other.)
void DecodeFuzzedIndex(std::span<const uint8_t> input);

}  // namespace stoker::testing

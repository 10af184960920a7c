// The function that the fuzzer of packed JPEGs runs on an input; the replay test runs it on the
// corpus.
#pragma once

#include <cstdint>
#include <span>

namespace stoker::testing {

// Aborts if an invariant is violated.
//
// A JPEG: if it can be packed, it is restored to the byte, and a region that the input chooses has
// the pixels that JpegDecoder gives.
//
// A packed JPEG, as it is and with its checksums mended: a region is decoded completely, or the
// error has an offset; and it is restored, or not.
//
// And of any bytes as a run: the references unpack and transform them to the same numbers.
void DecodeFuzzedPacked(std::span<const uint8_t> input);

}  // namespace stoker::testing

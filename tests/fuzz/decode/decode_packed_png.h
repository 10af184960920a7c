// The function that the fuzzer of packed PNGs runs on an input; the replay test runs it on the
// corpus.
#pragma once

#include <cstdint>
#include <span>

namespace stoker::testing {

// Aborts if an invariant is violated.
//
// A packed PNG, as it is and with its checksums mended: a region that the input chooses has the
// pixels of the whole image, or the error has an offset in the file. If it can be restored, the PNG
// has the same pixels.
//
// A PNG: packed, it has the same pixels, and it is restored. And any bytes as a tile: they are
// unpacked as by the reference.
void DecodeFuzzedPackedPng(std::span<const uint8_t> input);

}  // namespace stoker::testing

// The function that the fuzzer of packed masks runs on an input; the replay test runs it on the
// corpus.
#pragma once

#include <cstdint>
#include <span>

namespace stoker::testing {

// Aborts if an invariant is violated.
//
// A packed mask: a region that the input chooses has the values that the reference decodes, or the
// error has an offset in the file.
//
// A PNG: if it can be packed as a mask, the result has its values. And any bytes as values: they
// are those that are decoded again.
void DecodeFuzzedMask(std::span<const uint8_t> input);

}  // namespace stoker::testing

// The function that the fuzzer of .npy files runs on an input; the replay test runs it on the
// corpus.
#pragma once

#include <cstdint>
#include <span>

namespace stoker::testing {

// Parses, and aborts if an invariant is violated: a header describes an array that memory may have,
// its array is copied as it is, and errors lie in the file and are safe to print.
void ParseFuzzedNpy(std::span<const uint8_t> input);

}  // namespace stoker::testing

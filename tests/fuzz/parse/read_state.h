// The function that the fuzzer of loaders' states runs on an input; the replay test runs it on the
// corpus.
#pragma once

#include <cstdint>
#include <span>

namespace stoker::testing {

// Reads the input as a state of several loaders, and aborts if an invariant is violated: an error
// of the wrong kind, or one that is long or unsafe to print, a place outside its epoch, or one that
// its own state does not give back.
void ReadFuzzedState(std::span<const uint8_t> input);

}  // namespace stoker::testing

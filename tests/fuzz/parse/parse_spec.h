// The function that the fuzzer of loader specs and of processors' configurations runs on an input;
// the replay test runs it on the corpus.
#pragma once

#include <cstdint>
#include <span>

namespace stoker::testing {

// Parses the input as each of the two, and aborts if an invariant is violated: an error of the
// wrong kind, or with a cause that is not one line of moderate length, or options outside their
// ranges.
void ParseFuzzedSpec(std::span<const uint8_t> input);

}  // namespace stoker::testing

// The function that the loader spec's fuzzer runs on an input; the replay test runs it on the
// corpus.
#pragma once

#include <cstdint>
#include <span>

namespace stoker::testing {

// Parses, and aborts if an invariant is violated: an error of the wrong kind, or with a cause that
// is not one line of moderate length, or options outside their ranges.
void ParseFuzzedSpec(std::span<const uint8_t> input);

}  // namespace stoker::testing

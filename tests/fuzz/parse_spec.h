// What the loader spec's fuzzer does with one input; the replay test does the same with the corpus.
#pragma once

#include <cstdint>
#include <span>

namespace stoker::testing {

// Parses, and aborts when a promise is broken: an error of the wrong kind, or with a cause that is
// not one line of moderate length, or options outside of their ranges.
void ParseFuzzedSpec(std::span<const uint8_t> input);

}  // namespace stoker::testing

// The function that the fuzzer of record texts runs on an input; the replay test runs it on the
// corpus.
#pragma once

#include <cstdint>
#include <span>

namespace stoker::testing {

// Parses, and aborts if an invariant is violated: the text of what was parsed is parsed to the
// same, and fields have names and types.
void ParseFuzzedRecord(std::span<const uint8_t> input);

}  // namespace stoker::testing

// The function that the fuzzer of responses and URLs runs on an input; the replay test runs it on
// the corpus.
#pragma once

#include <cstdint>
#include <span>

namespace stoker::testing {

// Takes the input as headers of a response, as a file of AWS' tools and as a URL, and aborts if an
// invariant is violated: a range is not empty, a URL has a host or a bucket and a key, and the
// parts of it that are sent have no line break.
void ParseFuzzedHttp(std::span<const uint8_t> input);

}  // namespace stoker::testing

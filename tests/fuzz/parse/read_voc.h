// The function that the fuzzer of Pascal VOC's annotations runs on an input; the replay test runs
// it on the corpus.
#pragma once

#include <cstdint>
#include <span>

namespace stoker::testing {

// Reads `bytes` as an annotation, and aborts if a promise is broken: sizes are positive, and boxes
// finite and not reversed; or the error names the file and a line of it, is one line, and is of a
// kind that a file can cause.
void ReadFuzzedVoc(std::span<const uint8_t> bytes);

}  // namespace stoker::testing

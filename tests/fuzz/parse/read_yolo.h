// The function that the fuzzer of YOLO's files runs on an input; the replay test runs it on the
// corpus.
#pragma once

#include <cstdint>
#include <span>

namespace stoker::testing {

// Reads `bytes` as a file of labels if they begin with a digit or a blank, otherwise as a YAML
// file, and aborts if a promise is broken: boxes are complete, classes have names, and names are
// those of the file; or the error names the file, is one line, and is of a kind that a file can
// cause.
void ReadFuzzedYolo(std::span<const uint8_t> bytes);

}  // namespace stoker::testing

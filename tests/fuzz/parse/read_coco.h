// The function that the fuzzer of COCO's files runs on an input; the replay test runs it on the
// corpus.
#pragma once

#include <cstdint>
#include <span>

namespace stoker::testing {

// Reads `bytes` as a JSON file of COCO's format, and aborts if a promise is broken: each object is
// of an image and of a category, boxes are finite and have no negative sizes, and the source that
// Coco() makes has as many objects; or the error names the file, is one line, and is of a kind that
// a file can cause.
void ReadFuzzedCoco(std::span<const uint8_t> bytes);

}  // namespace stoker::testing

// The function that the index fuzzer runs on an input that is an index file; the replay test runs
// it on the corpus.
#pragma once

#include <cstdint>
#include <span>

namespace stoker::testing {

// Whether the input begins as an index file does.
bool IsIndexFile(std::span<const uint8_t> bytes);

// Opens `bytes` as an index file with corrected checksums, because otherwise they would detect
// every change. An index that opens is read from end to end: nothing may point outside the list, a
// record's section, or the folder, and memory must be bounded by the input.
void OpenFuzzedIndex(std::span<const uint8_t> bytes);

}  // namespace stoker::testing

// What the index fuzzer does with an input that is an index file; the replay test does the same
// with the corpus.
#pragma once

#include <cstdint>
#include <span>

namespace stoker::testing {

// Whether the input is one: it begins as such files do.
bool IsIndexFile(std::span<const uint8_t> bytes);

// Opens `bytes` as an index file, with checksums that are right: else no change would be seen but
// by them. What opens is looked through from end to end: nothing leads out of the list, of a
// record's section, or of the folder, and memory is bounded by the input.
void OpenFuzzedIndex(std::span<const uint8_t> bytes);

}  // namespace stoker::testing

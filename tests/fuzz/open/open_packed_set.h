// The function that the fuzzer of packed sets runs on an input; the replay test runs it on the
// corpus.
#pragma once

#include <cstdint>
#include <span>

namespace stoker::testing {

// Opens `bytes` as a packed set's index, or as a shard if they begin as one does, with corrected
// checksums. What opens is read from end to end: nothing may point outside of the file, its shards
// or the folder, and memory must be bounded by the input.
void OpenFuzzedPackedSet(std::span<const uint8_t> bytes);

}  // namespace stoker::testing

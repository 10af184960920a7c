// The function that the cache's fuzzer runs on an input; the replay test runs it on the corpus.
#pragma once

#include <cstdint>
#include <span>

namespace stoker::testing {

// Opens a cache whose lock and index are `bytes`, and aborts if a promise is broken: each record
// counts for one range at most, bytes that are read lie in the data, and a missed range can be kept
// and then read. The lowest bit of the first byte says whether records are signed, so that a fuzzer
// reaches the code past their checksums; eight bytes of the lock follow it.
void OpenFuzzedCache(std::span<const uint8_t> bytes);

}  // namespace stoker::testing

// The function that the cache's fuzzer runs on an input; the replay test runs it on the corpus.
#pragma once

#include <cstdint>
#include <span>

namespace stoker::testing {

// Opens a cache whose lock and index are `bytes`, and aborts if a promise is broken: each record
// counts for one range at most, what is read lies in the data, and what was missed can be kept and
// is read then. The first byte says by its lowest bit whether records are signed, so that a fuzzer
// reaches what lies behind their checksums; eight bytes of the lock follow it.
void OpenFuzzedCache(std::span<const uint8_t> bytes);

}  // namespace stoker::testing

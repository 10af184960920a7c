// The function that the manifests' fuzzer runs on an input; the replay test runs it on the corpus.
#pragma once

#include <cstdint>
#include <span>

namespace stoker::testing {

// Reads `bytes` as a manifest, and aborts if a promise is broken: every column has a row for each
// path, and memory is bounded by the input; or the error names the file, is one line, and is of a
// kind that a file can cause.
void ReadFuzzedManifest(std::span<const uint8_t> bytes);

}  // namespace stoker::testing

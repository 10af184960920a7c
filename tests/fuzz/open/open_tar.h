// The functions that the tar fuzzer and the shards fuzzer run on an input; the replay test runs
// them on the corpus.
#pragma once

#include <cstdint>
#include <span>

namespace stoker::testing {

// Indexes `bytes` as a tar archive or, if they begin as an index file does, reads them as one, with
// a corrected checksum. Members lie in the archive, the index file of an archive's members gives
// them back, and errors name the archive.
void OpenFuzzedTar(std::span<const uint8_t> bytes);

// Expands `bytes` as a shard pattern, without looking for files, and matches its first line with
// the rest.
void ExpandFuzzedShards(std::span<const uint8_t> bytes);

}  // namespace stoker::testing

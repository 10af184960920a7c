// Makes a source of a packed set: the photographs of a folder, in a few large shards.
#pragma once

#include <memory>
#include <string>

#include "core/result/result.h"
#include "io/cache/cache_options.h"
#include "io/source/source.h"

namespace stoker {

struct PackedOptions {
  int threads = 0;       // for looking at the shards; 0 means the cores allotted
  CacheOptions cache{};  // of objects
};

// Opens the output of `stoker pack` for a folder: the same samples that ImageFolder lists for that
// folder, in the same order, with the same labels, classes and fingerprint, so that a loader's
// state continues on either. `folder` may be a URL of objects.
//
// The index is read at once, 72 bytes a sample and its name, and stays in memory. Each shard's
// header is read, too, so that a missing or wrong shard is an error of this call. FactsOf knows
// sizes and orientations of photographs.
//
// A sample is read, when it is needed, as one range of a shard, and its checksum is checked; for a
// packed JPEG the range is only the rows that the crop needs, and the decoder checks them. A fault
// is the error of its batch: DataLoss with the shard, the offset and the photograph's path
// (SampleSource::NameOf).
//
// A later `stoker pack --append` changes nothing for a source that is open.
//
// Errors: NotFound (no such folder; no index in it, perhaps because packing has not finished; no
// such shard), and those of PackedIndex::Open (packed_index.h) and of the shards' headers.
Result<std::shared_ptr<const SampleSource>> Packed(const std::string& folder,
                                                   const PackedOptions& options = {});

}  // namespace stoker

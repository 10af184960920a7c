// Checks a packed set completely, for `stoker pack --verify`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "bindings/cli/for_each_sample.h"
#include "bindings/cli/pack/restore_file.h"
#include "core/result/result.h"

namespace stoker {

struct SetCheckOptions {
  int threads = 0;           // 0 means the cores allotted
  size_t most_listed = 100;  // the number of damaged parts to list in the report
};

struct SetCheck {
  std::string source;  // "packed(OUT)"
  uint64_t samples = 0;
  uint64_t images = 0;       // of all samples
  uint64_t bytes = 0;        // of the files that were restored
  EqualPngs equal;           // restored, but not to the byte: nothing to compare them with
  uint64_t damaged = 0;      // shards with a damaged list, and damaged photographs
  std::vector<Error> first;  // of these: of shards, then of photographs in their order
  double seconds = 0;
};

// Reads every byte of the packed set in `folder`: the index, the entries of each shard, and each
// record, whose file is restored and compared with its original checksum. Damage is in the report;
// errors are those of opening the set, of the machine, and Cancelled.
Result<SetCheck> CheckSet(const std::string& folder, const SetCheckOptions& options = {},
                          const SampleProgress& progress = {});

}  // namespace stoker

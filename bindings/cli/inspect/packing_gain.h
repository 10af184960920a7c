// Measures what `stoker pack` would gain for a folder, on a sample of its files.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "core/result/result.h"
#include "io/source/source.h"

namespace stoker {

struct PackingGain {
  uint64_t measured = 0;      // files of which a random crop was decoded
  uint64_t packed = 0;        // those of them that are not stored unchanged
  uint64_t too_large = 0;     // files above 64 MiB, which are not read
  uint64_t failed = 0;        // files that could not be read, packed or decoded
  uint64_t file_bytes = 0;    // of the measured files
  uint64_t packed_bytes = 0;  // of their forms in a packed set
  double file_seconds = 0;    // CPU time of a random crop of each, decoded from its file's bytes
  double packed_seconds = 0;  // likewise, from its packed form
};

// Packs `files` samples, spread evenly over the source, and applies RandomResizedCrop(224) to both
// forms in memory as a loader does (transforms/plan/plan_run.h), with the same draws in every run.
// The least time of several runs counts. One thread. `source`: a folder. `progress`: as that of
// Inspect; called after each file. Nullopt without files; Cancelled.
Result<std::optional<PackingGain>> MeasurePacking(
    const SampleSource& source, uint64_t files,
    const std::function<bool(uint64_t done, uint64_t total)>& progress = {});

}  // namespace stoker

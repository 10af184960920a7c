// PatchCounts: how many rows of pixel_values a processor makes of each sample: patches or tiles.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/result/result.h"
#include "engine/options/options.h"

namespace stoker {

struct PatchCounts {
  // By sample: of the size that the source knows (FactsOf), 0 if the processor refuses it; where no
  // size is known, the most that the processor makes of any image. Takes 4 bytes a sample in any
  // case, which are not charged to the budget.
  std::vector<uint32_t> of;
  uint32_t most = 0;                        // of a sample
  uint64_t unknown = 0, first_unknown = 0;  // samples whose sizes are not known
  // Whether all places in a batch have room for `most`, so that any sample can be a substitute.
  bool alike = false;

  uint32_t PlaceOf(uint64_t sample) const { return alike ? most : of[sample]; }
};

// Counts the rows that the options' processor makes, within `memory_budget` bytes.
// FailedPrecondition: batch_tokens counts patches, and sizes are not known; the message says how
// many samples, and names the first. ResourceExhausted: there are too many samples.
Result<std::shared_ptr<const PatchCounts>> PatchCountsOf(const LoaderOptions& options,
                                                         uint64_t memory_budget);

// ResourceExhausted: a batch of this many bytes is too large to be reserved for images whose sizes
// are not known.
Status CheckRoomForUnknown(const LoaderOptions& options, uint64_t bytes);

}  // namespace stoker

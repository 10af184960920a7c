// Plans batches by the numbers of tokens in one of a source's fields.
#pragma once

#include <cstdint>
#include <memory>

#include "core/result/result.h"
#include "engine/options/options.h"
#include "engine/order/token_batches.h"

namespace stoker {

// Returns the batches of options that have batch_tokens, of the numbers in a kFixed field of single
// integers, or without `tokens` of their patch_counts. InvalidArgument: there is no such field, or
// a number is negative or above batch_tokens; the message names the first such sample, its number,
// and how many there are. Unimplemented: the numbers come with the images (Field::kLoaded), or
// there are more than TokenBatches::kMostSamples samples. ResourceExhausted: planning takes more
// than `memory_budget`.
Result<std::shared_ptr<const TokenBatches>> TokenBatchesOf(const LoaderOptions& options,
                                                           uint64_t memory_budget);

}  // namespace stoker

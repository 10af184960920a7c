// What a job waits for, in words.
#pragma once

#include <string>

#include "engine/watching/stats.h"

namespace stoker {

// A few plain sentences with advice, from the counters since the loader's opening. The first one
// begins "The consumer is the limit", "The consumer waited 41% of the time: " and why, or, where
// the consumer only takes batches, "Decoding is the limit" (or "Storage", …):
// "The consumer waited 41% of the time: decoding needs 6.2 cores and has 4. Add cores, build a crop
// index (`stoker index`), or decode smaller photographs." No advice sets what
// is tuned, for that would end its tuning. Empty before the second batch.
std::string Advice(const LoaderStats& stats);

}  // namespace stoker

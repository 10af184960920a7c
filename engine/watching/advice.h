// Advice: what limits a job, in a few sentences.
#pragma once

#include <string>

#include "engine/watching/stats.h"

namespace stoker {

// A few sentences with advice, from the counters since the loader was opened. The first one starts
// with "The consumer is the limit", "The consumer waited 41% of the time: " and the reason, or, if
// the consumer only takes batches, "Decoding is the limit" (or "Storage", …). For example: "The
// consumer waited 41% of the time: decoding needs 6.2 cores and has 4. Add cores, build a crop
// index (`stoker index`), or decode smaller photographs." Never advises to set a tuned option,
// because that would end its tuning. Empty before the second batch.
std::string Advice(const LoaderStats& stats);

}  // namespace stoker

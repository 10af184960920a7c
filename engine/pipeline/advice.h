// What a job waits for, in words.
#pragma once

#include <string>

#include "engine/pipeline/stats.h"

namespace stoker {

// One or two plain sentences with advice, from the counters since the loader's opening:
// "The consumer waited 41% of the time: decoding needs 6.2 cores and has 4. Add cores, build a crop
// index, or decode smaller." Empty before the second batch.
std::string Advice(const LoaderStats& stats);

}  // namespace stoker

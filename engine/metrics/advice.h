// Advice with a rate that the caller has measured.
#pragma once

#include <string>

#include "engine/metrics/stats.h"

namespace stoker {

// Like Advice(stats), but with `samples_per_second` as the overall rate, which is the one in the
// surrounding report.
std::string Advice(const LoaderStats& stats, double samples_per_second);

}  // namespace stoker

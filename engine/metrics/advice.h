// Advice that names a rate which its caller has measured.
#pragma once

#include <string>

#include "engine/metrics/stats.h"

namespace stoker {

// Does what Advice(stats) does, and gives `samples_per_second` as the rate of the whole: that of
// the report in which the advice stands.
std::string Advice(const LoaderStats& stats, double samples_per_second);

}  // namespace stoker

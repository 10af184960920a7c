// PrometheusText: a loader's statistics as Prometheus metrics.
#pragma once

#include <string>
#include <string_view>

#include "engine/watching/stats.h"

namespace stoker {

// Text exposition format 0.0.4: the HELP, TYPE and samples of each metric, one line each. All
// metrics begin with "stoker_" and have the label `loader`, which may be any UTF-8 text; counters
// end in "_total"; units are seconds and bytes. Covers one loader: a page of several must contain
// HELP and TYPE once.
std::string PrometheusText(const LoaderStats& stats, std::string_view loader_name);

}  // namespace stoker

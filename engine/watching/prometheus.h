// What a loader has done, as Prometheus reads it.
#pragma once

#include <string>
#include <string_view>

#include "engine/watching/stats.h"

namespace stoker {

// Text exposition format 0.0.4: a metric's HELP and TYPE, and its samples, a line each. All metrics
// begin with "stoker_" and carry the label `loader`, which may be any UTF-8 text; counters end in
// "_total"; units are seconds and bytes. Of one loader: a page that has several of them must have
// HELP and TYPE once.
std::string PrometheusText(const LoaderStats& stats, std::string_view loader_name);

}  // namespace stoker

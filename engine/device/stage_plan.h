// What of a loader's batches is made on the host, and what on the device that they go to.
#pragma once

#include <vector>

#include "core/column_spec.h"
#include "core/result.h"
#include "engine/loader/options.h"
#include "engine/loader/producer_options.h"
#include "gpu/stager.h"

namespace stoker {

// `host`: the columns of a producer with these options. Errors: Plan::Compile's.
Result<StagePlan> StagePlanOf(const LoaderOptions& options, const ProducerOptions& producer,
                              const std::vector<ColumnSpec>& host);

}  // namespace stoker

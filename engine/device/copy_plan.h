// Decides which operations of a loader's batches run on the host and which are deferred to the
// device.
#pragma once

#include <vector>

#include "core/batch/batch.h"
#include "core/result/result.h"
#include "engine/options/options.h"
#include "engine/production/producer_options.h"
#include "gpu/staging/device_copier.h"

namespace stoker {

// The plan of each device's part. `host`: the columns of a producer with these options. Errors:
// those of Plan::Compile.
Result<CopyPlan> CopyPlanOf(const LoaderOptions& options, const ProducerOptions& producer,
                            const std::vector<ColumnSpec>& host);

}  // namespace stoker

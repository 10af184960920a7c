// What of a loader's batches is made on the host, and what on the device that they go to.
#pragma once

#include <vector>

#include "engine/core/column_spec.h"
#include "engine/core/result.h"
#include "engine/pipeline/options.h"
#include "gpu/stager.h"

namespace stoker {

// Whether something is left to the device: where that spares bytes on the way, or the host work.
// What LoaderOptions::finish_on_device should be.
bool FinishesOnDevice(const LoaderOptions& options);

// `host`: the columns of a loader with these options. Errors: Plan::Compile's.
Result<StagePlan> StagePlanOf(const LoaderOptions& options, const std::vector<ColumnSpec>& host);

}  // namespace stoker

// What of a loader's batches is made on the host, and what on the device that they go to.
#pragma once

#include <memory>
#include <vector>

#include "core/column_spec.h"
#include "core/result.h"
#include "engine/loader/options.h"
#include "gpu/stager.h"

namespace stoker {

// The options of a loader whose batches a stager takes to a device through a ring of `buffers`: its
// slots are pinned, as many as the stager holds at once; a batch lies in one piece; and what spares
// bytes on the way, or the host work, is left to the device. InvalidArgument: device or buffers.
Result<LoaderOptions> ForDevice(LoaderOptions options, std::shared_ptr<Device> device, int buffers);

// `host`: the columns of a loader with these options. Errors: Plan::Compile's.
Result<StagePlan> StagePlanOf(const LoaderOptions& options, const std::vector<ColumnSpec>& host);

}  // namespace stoker

// Issues the work that decodes the crops of a batch on a device.
#pragma once

#include <cstdint>

#include "core/result.h"
#include "gpu/device_ring.h"

namespace stoker {

// Copies the entry's rows of entry.host's first column that the host has decoded, on the copy
// stream. Returns the copied bytes.
Result<uint64_t> CopyAroundCrops(const DeviceRing& ring, const StagedBatch& entry);

// Decodes the crops that were copied to the rows of `entry.raw`, on the deferred stream.
Status IssueCrops(const DeviceRing& ring, const StagedBatch& entry);

}  // namespace stoker

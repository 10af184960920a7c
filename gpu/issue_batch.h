// Issues the work that makes a batch on a device.
#pragma once

#include <cstdint>

#include "core/result.h"
#include "gpu/device_ring.h"

namespace stoker {

// Copies entry.host, finishes it, and records the entry's events after either. Returns the bytes
// that were copied. Precondition: nobody uses the entry, or the copy stream waits for its users.
Result<uint64_t> IssueBatch(const DeviceRing& ring, const StagedBatch& entry);

}  // namespace stoker

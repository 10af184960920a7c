// What makes a batch on a device, issued.
#pragma once

#include <cstdint>

#include "core/result.h"
#include "gpu/device_ring.h"

namespace stoker {

// Copies entry.host, finishes it, and records the entry's events behind either. Gives the bytes
// that were copied. Precondition: nobody uses the entry, or the copy stream waits for who does.
Result<uint64_t> IssueBatch(const DeviceRing& ring, const StagedBatch& entry);

}  // namespace stoker

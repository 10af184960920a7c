// Issues the work that makes a batch on a device.
#pragma once

#include <cstdint>

#include "core/result.h"
#include "gpu/device_ring.h"

namespace stoker {

// Copies the entry's rows of entry.host, finishes them, and records the entry's events after
// either. Returns the bytes that were copied to the device. Precondition: the entry's last batch
// has arrived, or the copy stream waits for that; and nobody uses it, or the deferred stream waits
// for its users.
Result<uint64_t> IssueBatch(const DeviceRing& ring, const StagedBatch& entry);

}  // namespace stoker

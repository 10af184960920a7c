// Issues the work that makes a batch on a device.
#pragma once

#include <cstdint>

#include "core/result/result.h"
#include "gpu/ops/deferred_ops_job.h"
#include "gpu/staging/device_ring.h"

namespace stoker {

// Copies the entry's rows of entry.host, finishes them, and records the entry's events after each
// step. Returns the bytes that were copied to the device. On the device, the work waits before it
// overwrites memory: the copies until the entry's last batch has arrived, and the writes to
// delivered columns for its last users. After an error the entry still has all of these users,
// unless the deferred stream waits for all of them.
Result<uint64_t> IssueBatch(const DeviceRing& ring, RingEntry& entry);

// The job that finishes the entry's rows.
DeferredOpsJob JobOf(const DeviceRing& ring, const RingEntry& entry);

}  // namespace stoker

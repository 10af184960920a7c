// The bytes of batches, by columns, so that batches in different memory can be compared.
#pragma once

#include <cstdint>
#include <vector>

#include "core/batch/batch.h"
#include "gpu/backend/device.h"
#include "gpu/staging/device_batch.h"

namespace stoker::testing {

using ColumnBytes = std::vector<std::vector<uint8_t>>;

ColumnBytes BytesOf(const Batch& batch);

// Waits for the batch, and reads it by a stream, as a consumer does: the host may not read a
// device's memory. Expects that no call fails.
ColumnBytes BytesOf(const DeviceBatch& batch, Device& device);

}  // namespace stoker::testing

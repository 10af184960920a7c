// SplitBatch: a batch whose rows are split among devices, each of which has a DeviceBatch of them.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/batch/batch.h"
#include "gpu/staging/device_batch.h"

namespace stoker {

// A default-constructed one is empty and converts to false: the epoch has ended.
struct SplitBatch {
  // In order of the rows, divided by FirstRowOfPart (core/batch/batch_parts.h). All have the name
  // of the whole batch.
  std::vector<DeviceBatch> parts;

  explicit operator bool() const { return !parts.empty(); }

  // Preconditions: the batch is not empty.
  BatchName name() const { return parts[0].name(); }
  uint64_t issued_ns() const { return parts.back().issued_ns(); }  // of all parts
  int64_t rows() const {
    int64_t rows = 0;
    for (const DeviceBatch& part : parts) rows += part.rows();
    return rows;
  }

  // The batch, if there is one device.
  DeviceBatch Whole() && { return parts.empty() ? DeviceBatch() : std::move(parts[0]); }
};

}  // namespace stoker

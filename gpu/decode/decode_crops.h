// Decodes the crops of a batch on the CPU, by the templates that the kernels are made of: for the
// device "host", and for tests.
#pragma once

#include <cstdint>

#include "core/buffer.h"
#include "core/device_crop.h"
#include "core/memory_budget.h"
#include "core/result.h"

namespace stoker {

// Writes the row of each crop; the others stay as they are.
void DecodeCropsOnHost(const decode::CropBatch& batch);

// Decodes crops one by one, in memory that grows to what the largest one needs.
class HostCropDecoder {
 public:
  // `budget` is charged for the memory, and must outlive this.
  explicit HostCropDecoder(MemoryBudget& budget) : memory_(budget) {}

  // Decodes the crop that begins at `crop` to a row of pixels. No batch can have the crop
  // afterwards. ResourceExhausted.
  Status Decode(uint8_t* crop, uint8_t* row);

 private:
  GrowingBuffer memory_;
};

}  // namespace stoker

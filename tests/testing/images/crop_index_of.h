// CropIndexOf: a copy of a sample's entry points.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/memory/buffer.h"
#include "core/memory/memory_budget.h"
#include "io/source/source.h"

namespace stoker::testing {

inline std::vector<uint8_t> CropIndexOf(const SampleSource& source, uint64_t id, uint64_t most) {
  MemoryBudget budget(MemoryBudget::kNoLimit);
  GrowingBuffer memory(budget);
  const std::span<const uint8_t> found = source.ReadCropIndex(id, most, memory);
  return {found.begin(), found.end()};
}

}  // namespace stoker::testing

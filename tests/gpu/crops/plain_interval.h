// The reference of gpu/crops/entropy-inl.h: decodes an interval bit by bit.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include "core/batch/device_crop.h"

namespace stoker::testing {

// A block's samples, row by row, and where it lies among the blocks of its component in the crop's
// samples.
struct PlainBlock {
  uint32_t component = 0;
  uint32_t column = 0, row = 0;
  std::array<uint8_t, 64> samples{};
};

// Calls `take` for each wanted block of interval `number` of the crop that begins at `bytes`, in
// the order of the file. Bits, tables and predictors may be anything.
void DecodeIntervalPlain(const uint8_t* bytes, uint32_t number,
                         const std::function<void(const PlainBlock&)>& take);

}  // namespace stoker::testing

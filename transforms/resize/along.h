// Along: the horizontal weights of a strip, laid out for shuffling.
//
// Sixteen neighbouring output pixels need samples of one short window of a row. Where that window
// is no longer than two vectors of 32 values, one shuffle brings each of the sixteen its pair of
// samples, so that rows can be blended along themselves and need not be turned into columns.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transforms/resize/axis_filter.h"

namespace stoker {

inline constexpr int kAlongPixels = 16;  // output pixels of a block
inline constexpr int kAlongWindow = 64;  // samples that a block may choose from

// Blocks of output pixels in the order in which they leave. Lanes behind the last pixel have weight
// zero.
struct Along {
  const int32_t* windows = nullptr;  // where each block's window starts, as AxisTaps::starts count
  // For each block and pair of taps: kAlongPixels × (place of the pair's first sample in the
  // window, place of the second), then kAlongPixels × the pair's weights. 64-byte aligned.
  const int16_t* pairs = nullptr;
  int blocks = 0;
  bool narrow = false;  // every sample lies in the first half of its window
};

// Memory for the tables.
size_t AlongBytes(const AxisTaps& columns);

// Fills `memory` (64-byte aligned) and says where things are; false where a window is too long.
// `mirror`: pixels leave from right to left.
bool PlanAlong(const AxisTaps& columns, bool mirror, uint8_t* memory, Along& along);

}  // namespace stoker

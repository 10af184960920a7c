// Along: the horizontal weights of a strip, laid out for shuffling.
//
// Sixteen neighboring output pixels need samples of a short window of a row. If that window is no
// longer than two vectors of 32 values, one shuffle gives each of the sixteen its pair of samples,
// so that rows can be blended horizontally without being transposed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transforms/resize/axis_filter.h"

namespace stoker {

inline constexpr int kAlongPixels = 16;  // output pixels of a block
inline constexpr int kAlongWindow = 64;  // samples that a block may choose from

// Blocks of output pixels in output order. Lanes after the last pixel have weight zero.
struct Along {
  const int32_t* windows = nullptr;  // where each block's window starts, as AxisTaps::starts count
  // This has, for each block and pair of taps, kAlongPixels × (index of the pair's first sample in
  // the window, index of the second), then kAlongPixels × the pair's weights, and if there are high
  // parts, kAlongPixels × those. 64-byte aligned.
  const int16_t* pairs = nullptr;
  int blocks = 0;
  bool narrow = false;  // every sample lies in the first half of its window
};

// Returns the bytes of memory that the tables need, or 0 if a window is too long for them.
// `mirror`: pixels are output from right to left.
size_t AlongBytes(const AxisTaps& columns, bool mirror);

// Fills `memory`, which must have that size and be 64-byte aligned.
Along PlanAlong(const AxisTaps& columns, bool mirror, uint8_t* memory);

}  // namespace stoker

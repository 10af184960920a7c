// Blends rows of bytes vertically, to bytes: one axis of a resampling in steps, in which each axis
// is rounded and clamped separately, as in Pillow.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transforms/resize/axis_filter.h"

namespace stoker {

inline constexpr int kBlendRowsOver = 64;  // bytes that may be read and written past a row's end

// Everything is borrowed for the call. The rows do not overlap.
struct RowBlend {
  // Row `top` (as taps.starts counts) and its followers; rows with weight zero are read, too:
  // 2 × taps.pairs rows exist from any start.
  const uint8_t* source = nullptr;
  ptrdiff_t source_stride = 0;
  int top = 0;

  AxisTaps taps;  // outputs [first, first + count) are computed, in this order
  int first = 0;
  int count = 0;

  uint8_t* out = nullptr;
  ptrdiff_t out_stride = 0;
  ptrdiff_t bytes = 0;  // of a row
};

// With the best instruction set of the CPU.
void BlendRows(const RowBlend& blend);

// The reference: same bytes.
void BlendRowsPlain(const RowBlend& blend);

}  // namespace stoker

// The last phase of a strip: writes pixel rows of resampled values to a batch row, converted to its
// type and layout, so that no separate pass is needed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transforms/resize/row_format.h"

namespace stoker {

// Resampled pixels in output order, one byte per value.
struct ResampledRows {
  const uint8_t* values = nullptr;  // of the first pixel row; up to kEmitOverread bytes past the
                                    // end may be read
  ptrdiff_t stride = 0;             // to the next pixel row
  ptrdiff_t plane = 0;              // to the next channel; 0 means channels are interleaved
  int channels = 3;                 // 3, or 1: gray, which becomes three equal channels
  int rows = 0;
  int pixels = 0;  // of a pixel row
};

inline constexpr int kEmitOverread = 64;

// `out`: the destination of the first pixel row's first pixel. Writes only the pixels. Three
// channels are interleaved or planar, as in the format; one that has a single channel takes the
// first. If the format is streamed, FlushEmitted must be called before another thread reads the
// batch row.
void EmitRows(const ResampledRows& from, const RowFormat& format, uint8_t* out);
void FlushEmitted();

// The reference: same bytes.
void EmitRowsPlain(const ResampledRows& from, const RowFormat& format, uint8_t* out);

}  // namespace stoker

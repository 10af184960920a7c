// The last phase of a strip: rows of finished values to the row of a batch. Here they become the
// row's type and layout, so that no pass over it is needed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transforms/resize/row_format.h"

namespace stoker {

// Pixels in the order in which they leave, one byte for each value.
struct FinishedRows {
  const uint8_t* values = nullptr;  // of the first row; may be read up to kEmitOverread behind it
  ptrdiff_t stride = 0;             // to the next row
  ptrdiff_t plane = 0;              // to the next channel; 0: channels are neighbours
  int channels = 3;                 // 3, or 1: gray, which becomes three equal channels
  int rows = 0;
  int pixels = 0;  // of a row
};

inline constexpr int kEmitOverread = 64;

// `out`: the place of the first row's first pixel. Writes the rows' pixels and no byte beside them.
// Channels of three are neighbours, or have a plane each, as in the format. Where the format is to
// be streamed, FlushEmitted must follow before another thread may look.
void EmitRows(const FinishedRows& from, const RowFormat& format, uint8_t* out);
void FlushEmitted();

// The plain twin: same bytes.
void EmitRowsPlain(const FinishedRows& from, const RowFormat& format, uint8_t* out);

}  // namespace stoker

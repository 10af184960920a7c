// Resamples one strip of an image: up to 32 output rows, from the window of decoded rows that they
// need to finished pixels.
//
//   decoded rows (u8) → vertical blend (i16) → transpose → horizontal blend (u8) → transpose
//
// Both passes blend whole vectors: vertically first; then, with columns transposed to rows,
// horizontally in the same way. So no gather is needed, any scale and number of taps works, and
// gray, interleaved and planar pixels are handled alike: a column is one byte of a row, and the
// channels of an interleaved pixel are adjacent columns. If the CPU can shuffle a whole window of
// samples, planes are processed row by row without transposing (ResampleStripByRows).
#pragma once

#include <cstddef>
#include <cstdint>

#include "transforms/resize/along.h"
#include "transforms/resize/axis_filter.h"
#include "transforms/resize/emit.h"

namespace stoker {

inline constexpr int kStripRows = 32;      // rows of a strip at most
inline constexpr int kRowsTogether = 4;    // rows that ResampleStripByRows blends together
inline constexpr int kStripPixels = 16;    // output pixels that are finished together
inline constexpr int kTileBytes = 64;      // columns (bytes of one plane's row) blended at a time
inline constexpr int kStripOverread = 64;  // bytes that may be read past the end of a source row

// Everything is borrowed for the call. channels is 1 or 3; planes is 1, or 3 if channels is 3.
struct Strip {
  // Decoded rows: each plane's column 0 (as columns.starts counts) of row `top`. Rows with weight
  // zero are read, too: 2 × rows.pairs rows exist from any start.
  const uint8_t* plane[3] = {};
  ptrdiff_t stride = 0;
  int planes = 1;
  int channels = 3;
  int top = 0;    // which row (as rows.starts counts) plane[] points at
  int width = 0;  // pixels per row from plane[] on; kStripOverread bytes after them may be read

  AxisTaps rows;     // vertical weights that do not overshoot; this strip is outputs [first_row,
                     // first_row + row_count)
  AxisTaps columns;  // horizontal weights
  int first_row = 0;
  int row_count = 0;  // 1…kStripRows

  // The horizontal weights for ResampleStripByRows, which is used if there are blocks.
  Along along;

  // Blended columns, kStripRows values each, 64-byte aligned: room for `turned_columns` of them; or
  // kRowsTogether blended rows, BlendedRow(width) values of each channel.
  int16_t* turned = nullptr;
  int turned_columns = 0;  // at least TurnedColumns(columns, channels)

  uint8_t* finished = nullptr;  // destination of the strip's pixels (RowsOf); see MarginFor
  // Rows of the previous strip, or none, that are emitted meanwhile, a few at a time, so that
  // streaming stores overlap with blending.
  ResampledRows leaving;
  uint8_t* leaving_out = nullptr;  // destination of the first one's pixel 0

  const RowFormat* format = nullptr;  // of the output
  bool mirror = false;                // columns from right to left
};

// The rows of finished pixels of a strip.
ResampledRows RowsOf(const Strip& strip);

// Bytes that Strip::finished needs before and after it, for rows of `pixels` pixels.
struct StripMargin {
  size_t before = 0;
  size_t behind = 0;
};
StripMargin MarginFor(int pixels);

// Columns that Strip::turned needs.
int TurnedColumns(const AxisTaps& columns, int channels);

// Distance between the channels of a blended row, including the overhang of a tile and a window.
constexpr ptrdiff_t BlendedRow(int width) {
  return (ptrdiff_t{width} + kTileBytes - 1) / kTileBytes * kTileBytes + kAlongWindow;
}

// Resamples the strip with the best instruction set of the CPU, and emits `leaving`.
void ResampleStrip(const Strip& strip);

// Does the same for planes (or gray) if `along` is set: row by row, each blended vertically and
// then horizontally by shuffles. That is half the work of transposing twice, on CPUs that support
// it.
bool CanBlendRows();
void ResampleStripByRows(const Strip& strip);

// The reference: same bytes.
void ResampleStripPlain(const Strip& strip);

}  // namespace stoker

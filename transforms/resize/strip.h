// One strip of a resampled image: up to 32 output rows, from the window of decoded rows that they
// need to finished pixels.
//
//   decoded rows (u8) → vertical blend (i16) → transpose → horizontal blend (u8) → transpose
//
// Both passes blend whole vectors: down a column first; then, the columns turned into rows, in the
// same way along the row. So no gather is needed, any scale and number of taps will do, and gray,
// interleaved and planar pixels take the same way: a column is one byte of a row, and the channels
// of a pixel are neighbouring columns. Planes, where the CPU can shuffle a whole window of samples,
// go row by row instead and are not turned (ResampleStripByRows).
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
inline constexpr int kStripOverread = 64;  // bytes that may be read behind a row of the source

// Everything is borrowed for the call. Sizes: channels is 1 or 3; planes is 1, or 3 when channels
// is 3.
struct Strip {
  // Decoded rows: each plane's column 0 (as columns.starts counts) of row `top`. Rows whose weight
  // is zero are read, too: 2 × rows.pairs rows are there from any start on.
  const uint8_t* plane[3] = {};
  ptrdiff_t stride = 0;
  int planes = 1;
  int channels = 3;
  int top = 0;    // which row (as rows.starts counts) plane[] points at
  int width = 0;  // pixels of a row from plane[] on; kStripOverread bytes behind them may be read

  AxisTaps rows;     // vertical weights; this strip is outputs [first_row, first_row + row_count)
  AxisTaps columns;  // horizontal weights
  int first_row = 0;
  int row_count = 0;  // 1…kStripRows

  // The horizontal weights for ResampleStripByRows; without blocks ResampleStrip does not use it.
  Along along;

  // Blended columns, kStripRows values each, 64-byte aligned: room for `turned_columns` of them; or
  // kRowsTogether blended rows, BlendedRow(width) values of each channel.
  int16_t* turned = nullptr;
  int turned_columns = 0;  // at least TurnedColumns(columns, channels)

  uint8_t* finished = nullptr;  // where the strip's pixels are left (RowsOf); see RoomToFinish
  // Rows that are emitted meanwhile, a few at a time: of the strip before, or none. What is written
  // past the caches goes on beside the blending.
  FinishedRows leaving;
  uint8_t* leaving_out = nullptr;  // pixel 0 of the first of them

  const RowFormat* format = nullptr;  // of the output
  bool mirror = false;                // columns from right to left
};

// Where the pixels of a strip are finished.
FinishedRows RowsOf(const Strip& strip);

// Bytes that Strip::finished needs before and behind it, for rows of so many pixels.
struct FinishedRoom {
  size_t before = 0;
  size_t behind = 0;
};
FinishedRoom RoomToFinish(int pixels);

// Columns that Strip::turned needs.
int TurnedColumns(const AxisTaps& columns, int channels);

// From a channel of a blended row to the next: a tile's and a window's overhang included.
constexpr ptrdiff_t BlendedRow(int width) {
  return (ptrdiff_t{width} + kTileBytes - 1) / kTileBytes * kTileBytes + kAlongWindow;
}

// The best instruction set that the CPU has. Emits what is leaving.
void ResampleStrip(const Strip& strip);

// The same for planes (or gray) where `along` has been planned: row by row, each blended vertically
// and then, by shuffles, along itself. Half the work of turning twice, on CPUs that can.
bool CanBlendRows();
void ResampleStripByRows(const Strip& strip);

// The plain twin: same bytes.
void ResampleStripPlain(const Strip& strip);

}  // namespace stoker

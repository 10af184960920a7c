#include <algorithm>

#include "transforms/resize/strip/strip.h"

namespace stoker {

namespace {

// Returns the horizontal weight of a tap.
int WeightAlong(const AxisTaps& columns, ptrdiff_t at) {
  const int high = columns.high != nullptr ? columns.high[at] : 0;
  return high * (1 << kHighShift) + columns.weights[at];
}

int Blend(const uint8_t* column, ptrdiff_t stride, const int16_t* weights, int taps, int shift) {
  int sum = 1 << (shift - 1);
  for (int t = 0; t < taps; ++t) sum += weights[t] * column[t * stride];
  return sum >> shift;
}

// Computes one channel of one output pixel.
uint8_t Value(const Strip& s, int row, int x, int channel) {
  const int row_taps = 2 * s.rows.pairs, column_taps = 2 * s.columns.pairs;
  const int16_t* down = s.rows.weights + static_cast<ptrdiff_t>(row) * row_taps;
  const int step = s.channels / s.planes;
  const uint8_t* source = s.plane[s.planes == 3 ? channel : 0] + (s.planes == 3 ? 0 : channel) +
                          (s.rows.starts[row] - s.top) * s.stride +
                          static_cast<ptrdiff_t>(s.columns.starts[x]) * step;
  const int middle_bits = MiddleBits(s.columns.shift);
  const int shift = s.columns.shift + middle_bits;
  int sum = 1 << (shift - 1);
  for (int t = 0; t < column_taps; ++t) {
    sum += WeightAlong(s.columns, ptrdiff_t{x} * column_taps + t) *
           Blend(source + t * step, s.stride, down, row_taps, s.rows.shift - middle_bits);
  }
  return static_cast<uint8_t>(std::clamp(sum >> shift, 0, 255));
}

}  // namespace

int TurnedColumns(const AxisTaps& columns, int channels) {
  int widest = 0;
  for (int x = 0; x < columns.count; x += kStripPixels) {
    const int last = std::min(x + kStripPixels, columns.count) - 1;
    widest = std::max(widest, columns.starts[last] - columns.starts[x]);
  }
  // A block's columns, and those of the tile being added; twice, so that they rarely have to be
  // moved.
  return 2 * (widest + 2 * columns.pairs) * channels + 2 * 3 * kTileBytes;
}

namespace {

// The blocks at both ends may exceed the row by almost a block.
constexpr ptrdiff_t kBeside = 3 * kStripPixels;

ptrdiff_t ResampledStride(int pixels) {
  return (3 * ptrdiff_t{pixels} + 2 * kBeside + 63) / 64 * 64;
}

}  // namespace

ResampledRows RowsOf(const Strip& s) {
  const bool planes = s.channels == 3 && s.format->layout == Layout::kNchw;
  const ptrdiff_t stride = ResampledStride(s.columns.count);
  return {s.finished, stride,      planes ? s.columns.count + 2 * kStripPixels : 0,
          s.channels, s.row_count, s.columns.count};
}

StripMargin MarginFor(int pixels) {
  return {64, static_cast<size_t>(ResampledStride(pixels)) * kStripRows + kEmitOverread};
}

void ResampleStripPlain(const Strip& s) {
  if (s.leaving.rows != 0) EmitRowsPlain(s.leaving, *s.format, s.leaving_out);
  const ResampledRows rows = RowsOf(s);
  for (int r = 0; r < s.row_count; ++r) {
    for (int x = 0; x < s.columns.count; ++x) {
      const int to = s.mirror ? s.columns.count - 1 - x : x;
      for (int c = 0; c < s.channels; ++c) {
        const ptrdiff_t at = rows.plane != 0 ? c * rows.plane + to : ptrdiff_t{to} * s.channels + c;
        s.finished[r * rows.stride + at] = Value(s, s.first_row + r, x, c);
      }
    }
  }
}

}  // namespace stoker

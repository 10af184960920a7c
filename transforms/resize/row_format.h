// RowFormat: the layout of an image's pixels in a batch row, and the conversion of their values.
//
// u8: 0…255 unchanged. f32: value × scale + bias, rounded after the product and after the sum. f16
// and bf16: like f32, then rounded once more (half.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/batch/dtype.h"
#include "core/batch/image.h"

namespace stoker {

// The destination of one image in viewing orientation: a batch row or a tile, without gaps; or the
// top left corner of a larger batch row.
struct PixelOutput {
  void* row = nullptr;  // any alignment
  DType dtype = DType::kU8;
  const float* scale = nullptr;  // for three channels, or all of them; finite, not for u8
  const float* bias = nullptr;
  Layout layout = Layout::kNhwc;
  // The batch row is not read soon, so large rows are written past the caches. FlushEmitted
  // (emit.h) must be called before another thread reads it.
  bool read_later = false;
  ImageSize row_size{};  // of the batch row; 0 × 0 means the image's
  bool gray = false;     // only luma is decoded
  int channels = 3;      // or 1, the first of them: a plane
};

constexpr bool IsPixelType(DType dtype) {
  return dtype == DType::kU8 || dtype == DType::kF16 || dtype == DType::kBF16 ||
         dtype == DType::kF32;
}

struct RowFormat {
  // `size` is the image's.
  RowFormat(const PixelOutput& output, ImageSize size);
  RowFormat() = default;

  DType dtype = DType::kU8;
  Layout layout = Layout::kNhwc;  // kNchw if there is one channel
  int channels = 3;

  // Bytes to the next value in each direction; the vertical ones may be negative.
  ptrdiff_t along = 3;
  ptrdiff_t down = 0;
  ptrdiff_t channel = 1;

  // Aligned parts of pixel rows are written past the caches: cache lines need not be read before
  // they are written, and no others are evicted.
  bool stream = false;

  // For pieces of 16 values: three for 48 values of NHWC, one for each plane of NCHW.
  static constexpr int kPiece = 16;
  alignas(64) float scale[3][kPiece] = {};
  alignas(64) float bias[3][kPiece] = {};

  float ScaleOf(int c) const { return layout == Layout::kNhwc ? scale[0][c] : scale[c][0]; }
  float BiasOf(int c) const { return layout == Layout::kNhwc ? bias[0][c] : bias[c][0]; }
};

// Stores one pixel; `at` is the address of its first channel.
void StorePixel(const RowFormat& format, const uint8_t* rgb, uint8_t* at);

}  // namespace stoker

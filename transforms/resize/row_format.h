// RowFormat: how an image's pixels lie in the row of a batch, and what becomes of their values.
//
// u8: 0…255 as they are. f32: value × scale + bias, rounded after the product and after the sum.
// f16 and bf16: that, rounded once more (half.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"
#include "core/image.h"
#include "core/layout.h"

namespace stoker {

// Where the pixels go: one image, turned as it is to be seen, in a row without gaps.
struct PixelOutput {
  void* row = nullptr;  // any alignment
  DType dtype = DType::kU8;
  const float* scale = nullptr;  // of the three channels; finite, not for u8
  const float* bias = nullptr;
  Layout layout = Layout::kNhwc;
  // Nobody reads the row soon: past the caches, if it is large. FlushEmitted (emit.h) must follow
  // before another thread may look.
  bool read_later = false;
};

constexpr bool IsPixelType(DType dtype) {
  return dtype == DType::kU8 || dtype == DType::kF16 || dtype == DType::kBF16 ||
         dtype == DType::kF32;
}

struct RowFormat {
  // `size`: of the image.
  RowFormat(const PixelOutput& output, ImageSize size);
  RowFormat() = default;

  DType dtype = DType::kU8;
  Layout layout = Layout::kNhwc;

  // Bytes to the next value in each direction. Those down may be negative.
  ptrdiff_t along = 3;
  ptrdiff_t down = 0;
  ptrdiff_t channel = 1;

  // Rows are written past the caches where aligned: a line need not be read first to be written,
  // and none that is in use is driven out.
  bool stream = false;

  // For pieces of 16 values: three for 48 values of NHWC, one for each plane of NCHW.
  static constexpr int kPiece = 16;
  alignas(64) float scale[3][kPiece] = {};
  alignas(64) float bias[3][kPiece] = {};

  float ScaleOf(int c) const { return layout == Layout::kNhwc ? scale[0][c] : scale[c][0]; }
  float BiasOf(int c) const { return layout == Layout::kNhwc ? bias[0][c] : bias[c][0]; }
};

// One pixel, at its first channel's place.
void StorePixel(const RowFormat& format, const uint8_t* rgb, uint8_t* at);

}  // namespace stoker

// Computes which columns of a JPEG to decode for a region.
#pragma once

namespace stoker {

struct Columns {
  int x = 0;
  int width = 0;
  friend bool operator==(const Columns&, const Columns&) = default;
};

// Returns the fewest columns to request from jpeg_crop_scanline so that `wanted` come out as in a
// decode of the whole width. They start at a multiple of `imcu_width` (the width of an interleaved
// MCU in pixels).
//
// libjpeg-turbo treats the edges of a crop as edges of the image. With `fancy` chroma upsampling
// the outermost pixel on either side then lacks its neighbor, so one more column is decoded. And a
// component with fewer than two samples per row in the crop loses fancy upsampling altogether, so
// no crop is narrower than an iMCU, unless the image is.
Columns ColumnsToDecode(Columns wanted, int image_width, int imcu_width, bool fancy);

}  // namespace stoker

// Which columns of a JPEG to decode for a region.
#pragma once

namespace stoker {

struct Columns {
  int x = 0;
  int width = 0;
  friend bool operator==(const Columns&, const Columns&) = default;
};

// The fewest columns to ask of jpeg_crop_scanline so that `wanted` come out as in a decode of the
// whole width. Starts at a multiple of `imcu_width` (that of an interleaved MCU, in pixels).
//
// libjpeg-turbo treats the edges of a crop as edges of the image. With `fancy` chroma upsampling
// the outermost pixel on either side then lacks its neighbour: one more column is decoded. And a
// component that the crop leaves less than two samples wide loses fancy upsampling altogether: no
// crop is narrower than an iMCU, unless the image is.
Columns ColumnsToDecode(Columns wanted, int image_width, int imcu_width, bool fancy);

}  // namespace stoker

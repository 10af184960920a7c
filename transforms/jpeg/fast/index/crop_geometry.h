// CropGeometry: the MCUs that a region of an image, perhaps reduced, needs, and the position of its
// samples in the decoded planes.
#pragma once

#include "core/batch/image.h"
#include "transforms/decode/reduction.h"
#include "transforms/jpeg/fast/frame_header.h"

namespace stoker::jpeg {

// MCUs in columns [left, right) and rows [top, bottom) are decoded: those of the region, and those
// with the chroma samples next to it that upsampling blends in. Rows [0, parsed_rows) are parsed:
// as many as libjpeg-turbo parses for the same region, so that damage which it reports is found
// here, too.
struct CropGeometry {
  // The reduction is at most MaxReduction for the image.
  CropGeometry(const FrameHeader& header, const Rect& region, Reduction reduction = 1);

  int side(int component) const { return component == 0 ? luma_side : chroma_side; }

  Rect region;
  bool gray;
  int luma_side, chroma_side;         // samples of a block across and down: 8, 4, 2 or 1
  bool wide;                          // chroma has half as many columns
  bool tall;                          // chroma has half as many rows
  int mcu_width, mcu_height;          // pixels
  int mcus_across, mcu_rows;          // of the image
  int left, right, top, bottom;       // MCUs
  int parsed_rows;                    // MCUs
  int chroma_columns, chroma_height;  // samples of the image, or of the reduced one

  int mcus() const { return right - left; }
};

}  // namespace stoker::jpeg

// CropGeometry: the MCUs that a region needs, and the position of its samples in the decoded
// planes.
#pragma once

#include "core/image.h"
#include "transforms/jpeg/fast/frame_header.h"

namespace stoker::jpeg {

// MCUs in columns [left, right) and rows [top, bottom) are decoded: those of the region, and those
// with the chroma samples next to it that upsampling blends in. Rows [0, parsed_rows) are parsed:
// as many as libjpeg-turbo parses for the same region, so that damage which it reports is found
// here, too.
struct CropGeometry {
  CropGeometry(const FrameHeader& header, const Rect& region);

  Rect region;
  bool gray;
  bool wide;                          // chroma has half as many columns
  bool tall;                          // chroma has half as many rows
  int mcu_width, mcu_height;          // pixels
  int mcus_across, mcu_rows;          // of the image
  int left, right, top, bottom;       // MCUs
  int parsed_rows;                    // MCUs
  int chroma_columns, chroma_height;  // samples of the image

  int mcus() const { return right - left; }
};

}  // namespace stoker::jpeg

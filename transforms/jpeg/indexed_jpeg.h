// IndexedJpeg: a plain JPEG that stoker's own decoder supports, and its crop index.
#pragma once

#include <cstdint>
#include <span>

#include "transforms/jpeg/fast/frame_header.h"
#include "transforms/jpeg/fast/index/crop_index.h"

namespace stoker {

// Owns nothing. The index has been opened for this file.
struct IndexedJpeg {
  std::span<const uint8_t> bytes;
  const jpeg::FrameHeader& frame;
  const jpeg::CropIndex& index;
  bool no_end_marker = false;  // its data are complete, and zeros replace the marker
};

}  // namespace stoker

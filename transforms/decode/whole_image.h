// WholeImage: all pixels of an image, as the reference decoders return them.
#pragma once

#include <cstdint>
#include <vector>

#include "core/batch/image.h"

namespace stoker {

struct WholeImage {
  ImageSize size;
  PixelLayout layout = PixelLayout::kInterleaved;  // or kGray
  std::vector<uint8_t> pixels;                     // rows without gaps
};

}  // namespace stoker

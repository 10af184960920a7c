// The plain twin of JpegDecoder: libjpeg-turbo decodes the whole image, row by row. What any faster
// path is compared with, byte for byte.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/core/image.h"
#include "engine/core/result.h"

namespace stoker {

struct WholeImage {
  ImageSize size;
  PixelLayout layout = PixelLayout::kInterleaved;  // or kGray
  std::vector<uint8_t> pixels;                     // rows without gaps
};

// DataLoss where libjpeg-turbo fails, or warns of damage. Without limits: for tests only.
Result<WholeImage> DecodeWhole(std::span<const uint8_t> bytes);

}  // namespace stoker

// The plain twin of PngDecoder: libspng decodes the whole image to RGBA with its own conversions,
// of which a loop drops what is not wanted. What PngDecoder is compared with, byte for byte.
#pragma once

#include <cstdint>
#include <span>

#include "core/result.h"
#include "transforms/decode/whole_image.h"

namespace stoker {

// DataLoss where libspng fails, checksums included. Without limits: for tests only.
Result<WholeImage> DecodeWholePng(std::span<const uint8_t> bytes);

}  // namespace stoker

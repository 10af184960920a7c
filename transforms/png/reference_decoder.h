// The reference for PngDecoder: libspng decodes the whole image to RGBA with its own conversions,
// and a loop drops the unneeded channels. Tests compare PngDecoder with it, byte for byte.
#pragma once

#include <cstdint>
#include <span>

#include "core/result/result.h"
#include "transforms/decode/whole_image.h"

namespace stoker {

// DataLoss if libspng fails, including wrong checksums. No limits: for tests only.
Result<WholeImage> DecodeWholePng(std::span<const uint8_t> bytes);

// The reference for masks: libspng's samples as they are stored, unpacked by a loop; kGray16 if
// `wide`. Unimplemented for several channels, or for 16 bits unless `wide`.
Result<WholeImage> DecodeWholeMask(std::span<const uint8_t> bytes, bool wide = false);

}  // namespace stoker

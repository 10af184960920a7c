// The reference for JpegDecoder: libjpeg-turbo decodes the whole image, row by row. Tests compare
// every faster path with it, byte for byte.
#pragma once

#include <cstdint>
#include <span>

#include "core/result.h"
#include "transforms/decode/whole_image.h"

namespace stoker {

// DataLoss if libjpeg-turbo fails or warns of damage. A Huffman-coded file of one scan with all its
// MCUs may lack its end-of-image marker. No limits: for tests only.
Result<WholeImage> DecodeWhole(std::span<const uint8_t> bytes);

// What libjpeg-turbo makes of the bytes, whatever it warns of: at their end its source of bytes in
// memory gives it an end-of-image marker. DataLoss if they end in a marker's segment (tables, a
// scan's header), which would go on in that marker.
Result<WholeImage> DecodeTruncated(std::span<const uint8_t> bytes);

}  // namespace stoker

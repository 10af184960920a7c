// The reference for JpegDecoder: libjpeg-turbo decodes the whole image, row by row. Tests compare
// every faster path with it, byte for byte.
#pragma once

#include <cstdint>
#include <span>

#include "core/result/result.h"
#include "transforms/decode/reduction.h"
#include "transforms/decode/whole_image.h"

namespace stoker {

// Decodes a file, at a size divided by `reduction` (libjpeg's scale_denom). DataLoss if
// libjpeg-turbo fails or warns of damage. A Huffman-coded file of one scan with all its MCUs may
// lack its end-of-image marker. `gray`: only luma, of CMYK and YCCK that of the RGB pixels. No
// limits: for tests only.
Result<WholeImage> DecodeWhole(std::span<const uint8_t> bytes, Reduction reduction = 1,
                               bool gray = false);

// Decodes the bytes as libjpeg-turbo does, regardless of warnings: at their end libjpeg-turbo's
// source of bytes in memory supplies an end-of-image marker. DataLoss if the bytes end in a
// marker's segment (tables, a scan's header), which would continue in that marker.
Result<WholeImage> DecodeTruncated(std::span<const uint8_t> bytes, Reduction reduction = 1);

}  // namespace stoker

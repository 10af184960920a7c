// The plain twin of JpegDecoder: libjpeg-turbo decodes the whole image, row by row. What any faster
// path is compared with, byte for byte.
#pragma once

#include <cstdint>
#include <span>

#include "core/result.h"
#include "transforms/decode/whole_image.h"

namespace stoker {

// DataLoss where libjpeg-turbo fails, or warns of damage. A Huffman-coded file of one scan whose
// MCUs are all there may lack its end-of-image marker. Without limits: for tests only.
Result<WholeImage> DecodeWhole(std::span<const uint8_t> bytes);

}  // namespace stoker

// Upper bounds of the memory that libwebp allocates while it decodes an image. They are charged to
// the budget in advance, because libwebp uses malloc.
#pragma once

#include <cstdint>

#include "core/batch/image.h"
#include "transforms/webp/lossless_header.h"

namespace stoker::webp {

// The bound for an image of a VP8 chunk, without alpha: a few rows of macroblocks.
uint64_t LossyBytes(ImageSize size);

// The bound for a lossless image; without a header, its Huffman codes are not included.
uint64_t LosslessBytes(ImageSize size);
uint64_t LosslessBytes(ImageSize size, const LosslessHeader& header);

}  // namespace stoker::webp

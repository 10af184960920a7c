// Upper bounds of what libwebp allocates while it decodes an image. They are charged to the budget
// in advance, since libwebp uses malloc.
#pragma once

#include <cstdint>

#include "core/image.h"
#include "transforms/webp/lossless_header.h"

namespace stoker::webp {

// For an image of a VP8 chunk, without alpha: a few rows of macroblocks.
uint64_t LossyBytes(ImageSize size);

// For a lossless image; if its header has not been read yet, without its Huffman codes.
uint64_t LosslessBytes(ImageSize size);
uint64_t LosslessBytes(ImageSize size, const LosslessHeader& header);

}  // namespace stoker::webp

// What libwebp allocates while it decodes an image, at most: charged to the budget beforehand,
// since libwebp takes its memory from malloc.
#pragma once

#include <cstdint>

#include "core/image.h"
#include "transforms/webp/lossless_header.h"

namespace stoker::webp {

// Of an image of a chunk VP8, without alpha: a few rows of macroblocks.
uint64_t LossyBytes(ImageSize size);

// Of a lossless image. Of one whose header has not been read yet: without its Huffman codes.
uint64_t LosslessBytes(ImageSize size);
uint64_t LosslessBytes(ImageSize size, const LosslessHeader& header);

}  // namespace stoker::webp

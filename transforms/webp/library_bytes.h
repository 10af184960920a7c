// What libwebp allocates while it decodes an image, at most: charged to the budget beforehand,
// since libwebp takes its memory from malloc.
#pragma once

#include <cstdint>
#include <span>

#include "engine/core/image.h"

namespace stoker::webp {

// Of an image of a chunk VP8, without alpha: a few rows of macroblocks.
uint64_t LossyBytes(ImageSize size);

// `image`: a chunk VP8L, with its name and length.
uint64_t LosslessBytes(std::span<const uint8_t> image, ImageSize size);

}  // namespace stoker::webp

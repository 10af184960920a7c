// Reads the header of a lossless WebP (RFC 9649, chapter 3) for one purpose: to count the Huffman
// codes that libwebp will allocate. A few hundred bytes of a file can request a gigabyte of them,
// and a common file needs two megabytes: neither the image's size nor the file's size tells.
#pragma once

#include <cstdint>
#include <span>

#include "core/batch/image.h"

namespace stoker::webp {

struct LosslessHeader {
  int groups = 1;            // of five Huffman codes each; an upper bound of what libwebp allocates
  int group_numbers = 1;     // one more than the highest
  int color_cache_bits = 0;  // 0: none
};

// `data`: the data of a VP8L chunk after its signature and size, or of a compressed ALPH chunk
// after its first byte; `size`: the image's. Reads up to the groups' codes, or to damaged data:
// libwebp allocates nothing after that point. Takes at most 4 bytes for each 16 pixels,
// temporarily.
LosslessHeader ReadLosslessHeader(std::span<const uint8_t> data, ImageSize size);

}  // namespace stoker::webp

// What comes before the pixels of a lossless WebP (RFC 9649, chapter 3), read for one purpose: how
// many Huffman codes libwebp is going to make room for. A few hundred bytes of a file can ask for a
// gigabyte of them, and a common file needs two megabytes: neither the image's size nor the file's
// says which.
#pragma once

#include <cstdint>
#include <span>

#include "core/image.h"

namespace stoker::webp {

struct LosslessHeader {
  int groups = 1;            // of five Huffman codes each, at most as many as libwebp allocates
  int group_numbers = 1;     // one more than the highest
  int color_cache_bits = 0;  // 0: none
};

// `data`: of a chunk VP8L, without its name and length; `size`: the image's. Reads to where the
// groups' codes begin, or to where data are damaged: libwebp allocates nothing behind that place.
// Takes 4 bytes for each 16 pixels at most, and gives them back.
LosslessHeader ReadLosslessHeader(std::span<const uint8_t> data, ImageSize size);

}  // namespace stoker::webp

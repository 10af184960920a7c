// ImageFacts: what an index says about an image before it is opened.
#pragma once

#include <cstdint>

namespace stoker {

// As of the time when the index was made: a file may have changed since.
struct ImageFacts {
  uint64_t file_bytes = 0;  // 0: unknown
  uint32_t width = 0;       // as stored; 0: unknown
  uint32_t height = 0;
  uint8_t orientation = 1;  // the EXIF tag: 1 to 8
  uint8_t format = 0;       // ImageFormat of transforms/decode/format.h; 0: unknown

  friend bool operator==(const ImageFacts&, const ImageFacts&) = default;
};

}  // namespace stoker

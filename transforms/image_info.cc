#include "transforms/image_info.h"

#include <algorithm>

namespace stoker {

std::string SizeText(ImageSize size) {
  return std::to_string(size.width) + " × " + std::to_string(size.height);
}

Status CheckSize(ImageSize size, const DecodeLimits& limits, uint64_t offset) {
  if (int64_t{size.width} * size.height > limits.max_pixels) {
    return Error{Code::kResourceExhausted,
                 "an image of " + SizeText(size) + " pixels, more than the limit of " +
                     std::to_string(limits.max_pixels),
                 {},
                 offset,
                 "Remove or shrink the image, or raise the limit max_pixels"};
  }
  if (std::max(size.width, size.height) > kMostSidePixels) {
    return Error{Code::kResourceExhausted,
                 "an image of " + SizeText(size) + " pixels; a side may have at most " +
                     std::to_string(kMostSidePixels),
                 {},
                 offset,
                 "Remove or shrink the image"};
  }
  return {};
}

bool Inside(const Rect& region, ImageSize size) {
  return region.width > 0 && region.height > 0 && region.x >= 0 && region.y >= 0 &&
         region.width <= size.width - region.x && region.height <= size.height - region.y;
}

}  // namespace stoker

#include "transforms/webp/reference_decoder.h"

#include <webp/decode.h>

namespace stoker {

Result<WholeImage> DecodeWholeWebp(std::span<const uint8_t> bytes) {
  WholeImage image;
  uint8_t* const rgb =
      WebPDecodeRGB(bytes.data(), bytes.size(), &image.size.width, &image.size.height);
  if (rgb == nullptr) return Error{Code::kDataLoss, "libwebp cannot decode it"};
  const size_t size =
      size_t{3} * static_cast<size_t>(image.size.width) * static_cast<size_t>(image.size.height);
  image.pixels.assign(rgb, rgb + size);
  WebPFree(rgb);
  return image;
}

}  // namespace stoker

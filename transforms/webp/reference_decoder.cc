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

Result<std::vector<uint8_t>> DecodeWholeWebpRgba(std::span<const uint8_t> bytes) {
  int width = 0, height = 0;
  uint8_t* const rgba = WebPDecodeRGBA(bytes.data(), bytes.size(), &width, &height);
  if (rgba == nullptr) return Error{Code::kDataLoss, "libwebp cannot decode it"};
  std::vector<uint8_t> pixels(
      rgba, rgba + size_t{4} * static_cast<size_t>(width) * static_cast<size_t>(height));
  WebPFree(rgba);
  return pixels;
}

}  // namespace stoker

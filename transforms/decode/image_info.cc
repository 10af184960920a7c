#include "transforms/decode/image_info.h"

#include <algorithm>
#include <utility>

namespace stoker {

namespace {

constexpr int64_t kScansOfLargest = 16;
constexpr int64_t kCoefficientBytesPerPixel = 4;

// No file has more pixels: a larger limit means no limit.
int64_t MaxPixels(const DecodeLimits& limits) {
  return std::min(limits.max_pixels, int64_t{kMaxSidePixels} * kMaxSidePixels);
}

}  // namespace

int DecodeLimits::ScansOf(ImageSize size) const {
  const int64_t pixels = int64_t{size.width} * size.height;
  const int64_t affordable = kScansOfLargest * MaxPixels(*this) / pixels;
  return static_cast<int>(std::min<int64_t>(affordable, max_scans));
}

int64_t DecodeLimits::CoefficientBytes() const {
  return kCoefficientBytesPerPixel * MaxPixels(*this);
}

std::string SizeText(ImageSize size) {
  return std::to_string(size.width) + " × " + std::to_string(size.height);
}

Error SizeMismatch(ImageSize size, ImageSize of_image, const std::string& image) {
  const bool is_turned = size == ImageSize{of_image.height, of_image.width};
  return {
      .code = Code::kDataLoss,
      .cause = "it has " + SizeText(size) + " pixels, and " + image + ", has " + SizeText(of_image),
      .advice = is_turned ? "EXIF tags turn the two differently. Ignore the tags if this file fits "
                            "the image as it is stored; otherwise re-create it"
                          : "Re-create the file in the image's size"};
}

Status CheckSize(ImageSize size, const DecodeLimits& limits, uint64_t offset, int pixel_bytes) {
  constexpr int kBytes = 8;  // of RGBA of 16 bits
  const int64_t times = (pixel_bytes + kBytes - 1) / kBytes;
  if (int64_t{size.width} * size.height > limits.max_pixels / times) {
    const std::string counted =
        times > 1 ? ", where each pixel counts as " + std::to_string(times) : std::string();
    return Error{.code = Code::kResourceExhausted,
                 .cause = "an image of " + SizeText(size) + " pixels, more than the limit of " +
                          std::to_string(limits.max_pixels) + counted,
                 .offset = offset,
                 .advice = "Shrink the image",
                 .changes = {{OptionChange::How::kRaise, "max_pixels"}},
                 .detail = Error::Detail::kOverLimits};
  }
  if (std::max(size.width, size.height) > kMaxSidePixels) {
    return Error{.code = Code::kResourceExhausted,
                 .cause = "an image of " + SizeText(size) + " pixels; a side may have at most " +
                          std::to_string(kMaxSidePixels),
                 .offset = offset,
                 .advice = "Shrink the image",
                 .detail = Error::Detail::kOverLimits};
  }
  return {};
}

Status CheckChannels(ImageFormat format, int channels) {
  constexpr int kMost = 6;
  if (channels <= kMost) return {};
  return Error{.code = Code::kUnimplemented,
               .cause = std::string("a ") + NameOf(format) + " with " + std::to_string(channels) +
                        " channels does not become colours",
               .advice = "Ask for " + std::to_string(channels) +
                         " channels, or decode it with decode_image(…, \"unchanged\") in Python"};
}

Status CheckBits(const ImageInfo& info, const DecodeLimits& limits) {
  if (info.bits == 8 || limits.accept_16_bits) return {};
  return Error{
      .code = Code::kUnimplemented,
      .cause = std::string("a ") + NameOf(info.format) +
               " of 16 bits a channel, of which 8 would be lost",
      .advice = "Keep all 16 bits with dtype uint16 or a float type; for photographs 8 are enough",
      .changes = {{OptionChange::How::kUse, "accept_16_bits"}}};
}

Error NoMask(const std::string& what, uint64_t offset) {
  return {.code = Code::kUnimplemented,
          .cause =
              "a mask is a PNG with one channel, of at most 8 bits unless its rows are uint16, "
              "and this one " +
              what,
          .offset = offset,
          .advice = "Save the masks as gray or palette PNGs; read those of 16 bits as uint16"};
}

Error NoRoomToDecode(const std::string& what, ImageSize size, uint64_t needed) {
  return {.code = Code::kResourceExhausted,
          .cause = what + " of " + SizeText(size) + " pixels needs " + std::to_string(needed) +
                   " bytes to decode, and the memory budget has no room",
          .changes = {{OptionChange::How::kRaise, "memory_budget"}},
          .wanted_bytes = needed};
}

Status AndMore(Status failed, uint64_t bytes) {
  if (failed.ok() || failed.error().wanted_bytes == 0) return failed;
  Error error = std::move(failed).error();
  error.wanted_bytes += bytes;
  return error;
}

bool Inside(const Rect& region, ImageSize size) {
  return region.width > 0 && region.height > 0 && region.x >= 0 && region.y >= 0 &&
         region.width <= size.width - region.x && region.height <= size.height - region.y;
}

}  // namespace stoker

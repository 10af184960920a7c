// Which image format some bytes are, told from the bytes.
#pragma once

#include <cstdint>
#include <span>

namespace stoker {

enum class ImageFormat { kUnknown, kJpeg, kPng, kWebp, kGif, kBmp, kTiff, kPnm };

ImageFormat SniffFormat(std::span<const uint8_t> bytes);
const char* NameOf(ImageFormat format);  // "JPEG", "PNG", …; "unknown"

}  // namespace stoker

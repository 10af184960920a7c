// Which image format some bytes are, told from the bytes.
#pragma once

#include <cstdint>
#include <span>

namespace stoker {

// Index files have these numbers: new ones go to the end.
enum class ImageFormat {
  kUnknown,
  kJpeg,
  kPng,
  kWebp,
  kGif,
  kBmp,
  kTiff,  // and most cameras' raw files
  kPnm,
  kAvif,
  kHeic,  // HEIF, whatever is in it, but for AVIF
  kJpeg2000,
  kJpegXl,
  kJpegXr,
  kIco,
  kSvg,
  kPsd,
  kOpenExr,
  kDds,
  kQoi,
};

// Looks at the first kSniffBytes at most; fewer may leave a format unknown.
inline constexpr uint64_t kSniffBytes = 1024;
ImageFormat SniffFormat(std::span<const uint8_t> bytes);

const char* NameOf(ImageFormat format);  // "JPEG", "PNG", …; "unknown"

// What to do with a sound image of a format that stoker does not decode: "Convert it to JPEG or
// PNG, for example with `…`". FILE stands for its name. Of kUnknown: with what may be none.
const char* ConvertAdvice(ImageFormat format);

}  // namespace stoker

// Detects an image format from its first bytes.
#pragma once

#include <cstdint>
#include <span>

#include "core/result/result.h"

namespace stoker {

// Index files contain these numbers: add new formats at the end.
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
  kHeic,  // HEIF with any codec, except AVIF
  kJpeg2000,
  kJpegXl,
  kJpegXr,
  kIco,
  kSvg,
  kPsd,
  kOpenExr,
  kDds,
  kQoi,
  kPackedJpeg,  // a JPEG whose coefficients are packed (transforms/packed/format.h)
  kPackedMask,  // a mask whose values are packed (transforms/mask/format.h)
  kPackedPng,   // a PNG whose pixels are packed (transforms/png/packed/format.h)
};

// Whether PngDecoder decodes it.
constexpr bool IsPng(ImageFormat format) {
  return format == ImageFormat::kPng || format == ImageFormat::kPackedPng;
}

// Reads at most the first kSniffBytes; with fewer, a format may remain unknown.
inline constexpr uint64_t kSniffBytes = 1024;
ImageFormat SniffFormat(std::span<const uint8_t> bytes);

const char* NameOf(ImageFormat format);  // "JPEG", "PNG", …; "unknown"

// Advice for a valid image of a format that stoker does not decode: "Convert it to JPEG or PNG, for
// example with `…`". FILE is its name.
const char* ConvertAdvice(ImageFormat format);

// Describes a file whose format is kUnknown. `bytes`: its first bytes.
Error NoImage(std::span<const uint8_t> bytes);

}  // namespace stoker

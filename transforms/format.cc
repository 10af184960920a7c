#include "transforms/format.h"

#include <algorithm>
#include <string_view>

namespace stoker {
namespace {

bool Has(std::span<const uint8_t> bytes, size_t at, std::string_view magic) {
  return bytes.size() >= at + magic.size() &&
         std::equal(magic.begin(), magic.end(), bytes.begin() + static_cast<ptrdiff_t>(at),
                    [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; });
}

using namespace std::string_view_literals;  // NOLINT: magic bytes contain zeros

bool IsPnm(std::span<const uint8_t> bytes) {
  return bytes.size() >= 3 && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '7' &&
         (bytes[2] == '\n' || bytes[2] == ' ' || bytes[2] == '\r' || bytes[2] == '\t');
}

// Two letters are little to go by: the four reserved bytes of the file header must be zero too.
bool IsBmp(std::span<const uint8_t> bytes) {
  return Has(bytes, 0, "BM") && Has(bytes, 6, "\0\0\0\0"sv);
}

}  // namespace

ImageFormat SniffFormat(std::span<const uint8_t> bytes) {
  if (Has(bytes, 0, "\xFF\xD8\xFF") || (bytes.size() == 2 && Has(bytes, 0, "\xFF\xD8"))) {
    return ImageFormat::kJpeg;
  }
  if (Has(bytes, 0, "\x89PNG\r\n\x1A\n")) return ImageFormat::kPng;
  if (Has(bytes, 0, "RIFF") && Has(bytes, 8, "WEBP")) return ImageFormat::kWebp;
  if (Has(bytes, 0, "GIF87a") || Has(bytes, 0, "GIF89a")) return ImageFormat::kGif;
  if (IsBmp(bytes)) return ImageFormat::kBmp;
  if (Has(bytes, 0, "II*\0"sv) || Has(bytes, 0, "MM\0*"sv)) return ImageFormat::kTiff;
  if (IsPnm(bytes)) return ImageFormat::kPnm;
  return ImageFormat::kUnknown;
}

const char* NameOf(ImageFormat format) {
  switch (format) {
    case ImageFormat::kUnknown:
      return "unknown";
    case ImageFormat::kJpeg:
      return "JPEG";
    case ImageFormat::kPng:
      return "PNG";
    case ImageFormat::kWebp:
      return "WebP";
    case ImageFormat::kGif:
      return "GIF";
    case ImageFormat::kBmp:
      return "BMP";
    case ImageFormat::kTiff:
      return "TIFF";
    case ImageFormat::kPnm:
      return "PNM";
  }
  return "unknown";
}

}  // namespace stoker

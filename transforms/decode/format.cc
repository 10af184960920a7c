#include "transforms/decode/format.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "core/system/file_kind.h"

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

// A signature of two letters is weak: the four reserved bytes of the file header must be zero, too.
bool IsBmp(std::span<const uint8_t> bytes) {
  return Has(bytes, 0, "BM") && Has(bytes, 6, "\0\0\0\0"sv);
}

// ISO/IEC 23008-12: the first box is `ftyp`, with the file's brand and its compatible brands. AVIF
// is among the compatible brands if the main brand is HEIF in general.
ImageFormat HeifFormat(std::span<const uint8_t> bytes) {
  if (!Has(bytes, 4, "ftyp") || bytes.size() < 12) return ImageFormat::kUnknown;
  const size_t length = size_t{bytes[2]} << 8 | bytes[3];
  const size_t end = std::min(bytes.size(), length);
  bool heif = false;
  for (size_t at = 8; at + 4 <= end; at += 4) {
    if (Has(bytes, at, "avif") || Has(bytes, at, "avis")) return ImageFormat::kAvif;
    for (const char* brand : {"heic", "heix", "heim", "heis", "hevc", "hevx", "mif1", "msf1"}) {
      heif |= Has(bytes, at, brand);
    }
  }
  return heif ? ImageFormat::kHeic : ImageFormat::kUnknown;
}

// Many files begin with these four bytes: the image count must not be zero, and the first entry
// must contain its zero byte.
bool IsIco(std::span<const uint8_t> bytes) {
  return Has(bytes, 0, "\0\0\1\0"sv) && bytes.size() >= 22 && bytes[4] != 0 && bytes[5] == 0 &&
         bytes[9] == 0;
}

// Text whose first element is <svg>, after optional declarations and comments. HTML pages contain
// such elements further on.
bool IsSvg(std::span<const uint8_t> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto begins = [text](size_t at, std::string_view with) {
    return at != std::string_view::npos && text.substr(at).starts_with(with);
  };
  size_t at = text.find_first_not_of("\xEF\xBB\xBF \t\r\n");
  while (begins(at, "<?") || begins(at, "<!")) {
    if (begins(at, "<!DOCTYPE") && !begins(at, "<!DOCTYPE svg")) return false;
    at = text.find(begins(at, "<!--") ? "-->" : ">", at);
    if (at != std::string_view::npos) at = text.find('<', at);
  }
  return begins(at, "<svg");
}

// Detects the formats that are decoded whole (transforms/whole/), or not at all.
ImageFormat SniffOther(std::span<const uint8_t> bytes) {
  if (Has(bytes, 0, "GIF87a") || Has(bytes, 0, "GIF89a")) return ImageFormat::kGif;
  if (IsBmp(bytes)) return ImageFormat::kBmp;
  for (const std::string_view magic : {"II*\0"sv, "MM\0*"sv, "II+\0"sv, "MM\0+"sv}) {
    if (Has(bytes, 0, magic)) return ImageFormat::kTiff;
  }
  if (IsPnm(bytes)) return ImageFormat::kPnm;
  if (const ImageFormat heif = HeifFormat(bytes); heif != ImageFormat::kUnknown) return heif;
  if (Has(bytes, 0, "\0\0\0\x0CjP  \r\n\x87\n"sv) || Has(bytes, 0, "\xFF\x4F\xFF\x51")) {
    return ImageFormat::kJpeg2000;
  }
  if (Has(bytes, 0, "\0\0\0\x0CJXL \r\n\x87\n"sv) ||
      (Has(bytes, 0, "\xFF\n") && bytes.size() >= 12)) {
    return ImageFormat::kJpegXl;
  }
  if (Has(bytes, 0, "II\xBC")) return ImageFormat::kJpegXr;
  if (IsIco(bytes)) return ImageFormat::kIco;
  if (Has(bytes, 0, "8BPS")) return ImageFormat::kPsd;
  if (Has(bytes, 0, "\x76\x2F\x31\x01")) return ImageFormat::kOpenExr;
  if (Has(bytes, 0, "DDS ")) return ImageFormat::kDds;
  if (Has(bytes, 0, "qoif")) return ImageFormat::kQoi;
  return IsSvg(bytes) ? ImageFormat::kSvg : ImageFormat::kUnknown;
}

}  // namespace

ImageFormat SniffFormat(std::span<const uint8_t> bytes) {
  if (Has(bytes, 0, "\xFF\xD8\xFF") || (bytes.size() == 2 && Has(bytes, 0, "\xFF\xD8"))) {
    return ImageFormat::kJpeg;
  }
  if (Has(bytes, 0, "\x89PNG\r\n\x1A\n")) return ImageFormat::kPng;
  if (Has(bytes, 0, "\xF5stkjpg")) return ImageFormat::kPackedJpeg;
  if (Has(bytes, 0, "\xF5stkmsk")) return ImageFormat::kPackedMask;
  if (Has(bytes, 0, "\xF5stkpng")) return ImageFormat::kPackedPng;
  if (Has(bytes, 0, "RIFF") && Has(bytes, 8, "WEBP")) return ImageFormat::kWebp;
  return SniffOther(bytes.first(std::min<size_t>(bytes.size(), kSniffBytes)));
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
    case ImageFormat::kAvif:
      return "AVIF";
    case ImageFormat::kHeic:
      return "HEIC";
    case ImageFormat::kJpeg2000:
      return "JPEG 2000";
    case ImageFormat::kJpegXl:
      return "JPEG XL";
    case ImageFormat::kJpegXr:
      return "JPEG XR";
    case ImageFormat::kIco:
      return "ICO";
    case ImageFormat::kSvg:
      return "SVG";
    case ImageFormat::kPsd:
      return "Photoshop";
    case ImageFormat::kOpenExr:
      return "OpenEXR";
    case ImageFormat::kDds:
      return "DDS";
    case ImageFormat::kQoi:
      return "QOI";
    case ImageFormat::kPackedJpeg:
      return "packed JPEG";
    case ImageFormat::kPackedMask:
      return "packed mask";
    case ImageFormat::kPackedPng:
      return "packed PNG";
  }
  return "unknown";
}

const char* ConvertAdvice(ImageFormat format) {
  switch (format) {
    case ImageFormat::kAvif:
      return "Convert it to JPEG or PNG, for example with `avifdec FILE FILE.png`";
    case ImageFormat::kHeic:
      return "Convert it to JPEG or PNG, for example with `heif-convert FILE FILE.png`";
    case ImageFormat::kJpeg2000:
      return "Convert it to JPEG or PNG, for example with `opj_decompress -i FILE -o FILE.png`";
    case ImageFormat::kJpegXl:
      return "Convert it to JPEG or PNG, for example with `djxl FILE FILE.png`";
    case ImageFormat::kSvg:
      return "Convert it to JPEG or PNG, for example with `rsvg-convert FILE -o FILE.png`";
    default:  // [0]: the first image of several
      return "Convert it to JPEG or PNG, for example with ImageMagick: `convert 'FILE[0]' "
             "FILE.png`";
  }
}

Error NoImage(std::span<const uint8_t> bytes) {
  if (const std::optional<Error> pointer = LfsPointer(bytes)) return *pointer;
  return Error{.code = Code::kDataLoss,
               .cause = "not a supported image",
               .offset = 0,
               .advice = "If it is an image, convert it to JPEG or PNG; otherwise remove it"};
}

}  // namespace stoker

// Text chunks of a PNG (ISO/IEC 15948, 11.3.4: tEXt, zTXt, iTXt) that may have an orientation:
// XMP, and EXIF as ImageMagick writes it where it does not write a chunk eXIf.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace stoker {
class OrientationFinder;
}

namespace stoker::png {

struct Text {
  enum class Kind {
    kExif,
    kXmp
  } kind = Kind::kXmp;  // "Raw profile type exif", "XML:com.adobe.xmp"
  bool compressed = false;
  std::span<const uint8_t> bytes;  // of the chunk, behind all that comes before the text
};

// `data`: of a chunk of one of the three types. None for other keywords, and for damaged chunks.
enum class TextChunk { kText, kCompressed, kInternational };
std::optional<Text> ReadText(TextChunk type, std::span<const uint8_t> data);

// Looks at the first megabyte of the text, as it is without compression, and of EXIF at the first
// 64 KiB. Allocates what zlib needs, some 40 KB, and those 64 KiB, until it returns.
void TakeText(const Text& text, OrientationFinder& orientation);

}  // namespace stoker::png

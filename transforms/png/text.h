// Reads text chunks of a PNG (ISO/IEC 15948, 11.3.4: tEXt, zTXt, iTXt) that may contain an
// orientation: XMP, and EXIF as ImageMagick writes it instead of an eXIf chunk.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace stoker::png {

struct Text {
  enum class Kind {
    kExif,     // "exif": the bytes that an eXIf chunk has
    kProfile,  // "Raw profile type exif": the same in hexadecimal
    kXmp,      // "XML:com.adobe.xmp"
  } kind = Kind::kXmp;
  bool compressed = false;
  std::span<const uint8_t> bytes;  // the chunk's text
};

// `data`: the data of a chunk of one of the three types. Returns nullopt for other keywords, and
// for damaged chunks.
enum class TextChunk { kText, kCompressed, kInternational };
std::optional<Text> ReadText(TextChunk type, std::span<const uint8_t> data);

// The orientation tag's value, as ExifValue and XmpValue define it. Reads the first megabyte of the
// decompressed text, and the first 64 KiB of a profile. Allocates about 40 KB for zlib and those
// 64 KiB until it returns.
std::optional<uint32_t> ValueOf(const Text& text);

}  // namespace stoker::png

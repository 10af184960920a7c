// Parses the chunks of a PNG (ISO/IEC 15948, clause 5) and verifies their checksums. Decompresses
// no pixels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/batch/image.h"
#include "core/result/result.h"
#include "transforms/decode/orientation.h"

namespace stoker::png {

enum class Color : uint8_t { kGray = 0, kRgb = 2, kPalette = 3, kGrayAlpha = 4, kRgba = 6 };

// The content of the first chunk.
struct Header {
  ImageSize size;  // both sides at least 1
  int bit_depth = 8;
  Color color = Color::kRgb;
  bool interlaced = false;

  bool gray() const { return color == Color::kGray || color == Color::kGrayAlpha; }
  int channels() const;  // in the file; a palette's indices are one channel
  // Bytes of a row of `pixels` pixels, without its filter byte.
  uint64_t RowBytes(int pixels) const {
    return (static_cast<uint64_t>(pixels) * static_cast<uint64_t>(channels() * bit_depth) + 7) / 8;
  }
};

inline constexpr size_t kHeaderBytes = 33;  // the signature and the first chunk

// `bytes`: the file, or only its first kHeaderBytes. DataLoss with an offset.
Result<Header> ReadHeader(std::span<const uint8_t> bytes);

// A range of bytes of the file.
struct Range {
  size_t begin = 0;
  size_t end = 0;
};

struct Layout {
  Range palette;  // the PLTE chunk, with its length and checksum; empty if none is needed
  Range data;     // the IDAT chunks, which are consecutive, with their lengths and checksums
  Orientation orientation = Orientation::kNormal;  // from eXIf or text, anywhere in the file
  bool several_frames = false;  // an animated PNG (acTL); the image may not be one of them
  bool transparent = false;     // there is a tRNS chunk
  Range transparency;           // its content; if that is damaged, empty, at the chunk's first byte
  const char* transparency_damage = "";  // then its kind, a verb's phrase
};

// Walks all chunks. DataLoss: a wrong checksum (of chunks that pixels depend on; other damaged
// chunks are ignored), a palette of an impossible size, a file that ends before its pixels do, or
// no pixels at all. Unimplemented: an unknown critical chunk. Allocates nothing, unless text may
// contain an orientation (text.h).
Result<Layout> ReadLayout(std::span<const uint8_t> bytes, const Header& header);

}  // namespace stoker::png

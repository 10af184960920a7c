// The chunks of a PNG (ISO/IEC 15948, clause 5): what is in the file and where, and whether its
// checksums are right. No pixel is decompressed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/image.h"
#include "core/result.h"
#include "transforms/decode/orientation.h"

namespace stoker::png {

enum class Color : uint8_t { kGray = 0, kRgb = 2, kPalette = 3, kGrayAlpha = 4, kRgba = 6 };

// What the first chunk says.
struct Header {
  ImageSize size;  // both sides at least 1
  int bit_depth = 8;
  Color color = Color::kRgb;
  bool interlaced = false;

  bool gray() const { return color == Color::kGray || color == Color::kGrayAlpha; }
  int channels() const;  // in the file: a palette's indices are one
  // Of a row of that many pixels, without its filter byte.
  uint64_t RowBytes(int pixels) const {
    return (static_cast<uint64_t>(pixels) * static_cast<uint64_t>(channels() * bit_depth) + 7) / 8;
  }
};

inline constexpr size_t kHeaderBytes = 33;  // the signature and the first chunk

// `bytes`: the file, or no more than its first kHeaderBytes. DataLoss with an offset.
Result<Header> ReadHeader(std::span<const uint8_t> bytes);

// Bytes of the file.
struct Range {
  size_t begin = 0;
  size_t end = 0;
};

struct Layout {
  Range palette;  // a PLTE chunk, with its length and checksum; empty where none is needed
  Range data;     // the IDAT chunks, which stand together, likewise
  Orientation orientation = Orientation::kNormal;  // of eXIf, or of text, wherever they stand
};

// Walks all chunks. DataLoss: a checksum that is wrong (of the chunks that pixels come from; other
// damaged ones are ignored), a file that ends before its pixels do, none at all. Unimplemented: a
// chunk that must be understood, and is not. Allocates nothing, but where text may have an
// orientation (text.h).
Result<Layout> ReadLayout(std::span<const uint8_t> bytes, const Header& header);

}  // namespace stoker::png

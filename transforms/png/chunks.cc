#include "transforms/png/chunks.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "core/result/try.h"
#include "transforms/decode/exif.h"
#include "transforms/png/errors.h"
#include "transforms/png/text.h"

namespace stoker::png {
namespace {

constexpr size_t kSignatureBytes = 8;
constexpr size_t kFrameBytes = 12;  // a chunk's length, type and checksum

uint32_t U32(std::span<const uint8_t> bytes, size_t at) {
  return uint32_t{bytes[at]} << 24 | uint32_t{bytes[at + 1]} << 16 | uint32_t{bytes[at + 2]} << 8 |
         bytes[at + 3];
}

constexpr uint32_t Type(const char (&name)[5]) {
  uint32_t type = 0;
  for (size_t i = 0; i < 4; ++i) type = type << 8 | static_cast<uint8_t>(name[i]);
  return type;
}

std::string Name(uint32_t type) {
  std::string name;
  for (int shift = 24; shift >= 0; shift -= 8) {
    const auto c = static_cast<char>(type >> shift);
    name += c >= ' ' && c <= '~' ? c : '?';
  }
  return name;
}

struct Chunk {
  uint32_t type = 0;
  Range range;                    // the whole chunk
  std::span<const uint8_t> data;  // without length, type and checksum

  bool critical() const { return (type & 0x20000000) == 0; }
};

// Returns the chunk at `begin`; nullopt if it is incomplete. Precondition: `begin` is not past the
// end.
std::optional<Chunk> ChunkAt(std::span<const uint8_t> bytes, size_t begin) {
  if (bytes.size() - begin < kFrameBytes) return std::nullopt;
  const uint64_t length = U32(bytes, begin);
  if (length > bytes.size() - begin - kFrameBytes) return std::nullopt;
  const auto n = static_cast<size_t>(length);
  return Chunk{
      U32(bytes, begin + 4), {begin, begin + n + kFrameBytes}, bytes.subspan(begin + 8, n)};
}

bool SumIsRight(std::span<const uint8_t> bytes, const Chunk& chunk) {
  const uint8_t* const type = chunk.data.data() - 4;
  return crc32_z(0, type, chunk.data.size() + 4) == U32(bytes, chunk.range.end - 4);
}

Status CheckSum(std::span<const uint8_t> bytes, const Chunk& chunk) {
  if (SumIsRight(bytes, chunk)) return {};
  return Damaged("wrong checksum of a chunk " + Name(chunk.type), chunk.range.begin);
}

bool MayHave(Color color, int depth) {
  switch (color) {
    case Color::kGray:
      return depth == 1 || depth == 2 || depth == 4 || depth == 8 || depth == 16;
    case Color::kPalette:
      return depth == 1 || depth == 2 || depth == 4 || depth == 8;
    case Color::kRgb:
    case Color::kGrayAlpha:
    case Color::kRgba:
      return depth == 8 || depth == 16;
  }
  return false;
}

Result<Header> ParseHeader(std::span<const uint8_t> data) {
  constexpr uint64_t kAt = kSignatureBytes + 8;
  const uint32_t width = U32(data, 0), height = U32(data, 4);
  constexpr uint32_t kMax = 0x7FFFFFFF;
  if (width == 0 || height == 0) return Damaged("its width or height is zero", kAt);
  if (width > kMax || height > kMax) return Damaged("its width or height is negative", kAt);
  Header header;
  header.size = {static_cast<int>(width), static_cast<int>(height)};
  header.bit_depth = data[8];
  header.color = static_cast<Color>(data[9]);
  header.interlaced = data[12] != 0;
  if (!MayHave(header.color, header.bit_depth)) {
    return Damaged("unknown color type " + std::to_string(data[9]) + " with " +
                       std::to_string(data[8]) + " bits",
                   kAt + 8);
  }
  if (data[10] != 0 || data[11] != 0 || data[12] > 1) {
    return Damaged("an unknown method of compression, filtering or interlacing", kAt + 10);
  }
  return header;
}

// The findings of a walk over the chunks.
struct Walk {
  std::span<const uint8_t> bytes;
  size_t most_colors = 0;         // of a palette; 0 if none is wanted
  size_t least_transparency = 1;  // bytes of tRNS: one for a colour of the palette, two a channel
  Layout layout;
  std::optional<Text> exif, profile, xmp;  // the last ones
  bool in_data = false;                    // the last chunk was one of the first run of IDATs
};

std::optional<TextChunk> TextChunkOf(uint32_t type) {
  if (type == Type("tEXt")) return TextChunk::kText;
  if (type == Type("zTXt")) return TextChunk::kCompressed;
  if (type == Type("iTXt")) return TextChunk::kInternational;
  return std::nullopt;
}

std::optional<Text> MetadataOf(const Chunk& chunk) {
  if (chunk.type == Type("eXIf")) return Text{.kind = Text::Kind::kExif, .bytes = chunk.data};
  const std::optional<TextChunk> type = TextChunkOf(chunk.type);
  return type ? ReadText(*type, chunk.data) : std::nullopt;
}

std::optional<Text>& FieldOf(Text::Kind kind, Walk& walk) {
  switch (kind) {
    case Text::Kind::kExif:
      return walk.exif;
    case Text::Kind::kProfile:
      return walk.profile;
    case Text::Kind::kXmp:
      break;
  }
  return walk.xmp;
}

// Uses metadata with an orientation wherever it is, if its checksum is right.
void TakeMetadata(const Chunk& chunk, Walk& walk) {
  const std::optional<Text> text = MetadataOf(chunk);
  if (text && SumIsRight(walk.bytes, chunk)) FieldOf(text->kind, walk) = text;
}

// acTL, with the number of frames, comes before the pixels (PNG's third edition, 11.3.3).
void TakeAnimation(const Chunk& chunk, Walk& walk) {
  if (chunk.type != Type("acTL") || walk.layout.data.end != 0 || chunk.data.size() < 4) return;
  walk.layout.several_frames = U32(chunk.data, 0) > 1;
}

// Returns the orientation, in Pillow's order: eXIf, its text form only where there is none, XMP.
Orientation FindOrientation(const Walk& walk) {
  const std::optional<Text>& exif = walk.exif ? walk.exif : walk.profile;
  std::optional<uint32_t> value;
  if (exif) value = ValueOf(*exif);
  if (!value && walk.xmp) value = ValueOf(*walk.xmp);
  return OrientationOf(value);
}

// The last one counts, as for Pillow.
void TakeTransparency(const Chunk& chunk, Walk& walk) {
  constexpr size_t kSum = 4;
  const size_t end = chunk.range.end - kSum, least = walk.least_transparency;
  walk.layout.transparent = true;
  const bool is_short = chunk.data.size() < least;
  const bool is_sound = !is_short && SumIsRight(walk.bytes, chunk);
  const size_t at = chunk.range.begin;
  walk.layout.transparency = is_sound ? Range{end - chunk.data.size(), end} : Range{at, at};
  walk.layout.transparency_damage = is_short ? "is too short" : "has a wrong checksum";
}

Status TakePalette(const Chunk& chunk, Walk& walk) {
  if (walk.most_colors == 0 || walk.layout.data.end != 0) return {};
  if (walk.layout.palette.end != 0) return Damaged("two palettes", chunk.range.begin);
  TRY(CheckSum(walk.bytes, chunk));
  const size_t size = chunk.data.size();
  if (size == 0 || size % 3 != 0 || size / 3 > walk.most_colors) {
    return Damaged("a palette of " + std::to_string(size) + " bytes, not three for each of 1 to " +
                       std::to_string(walk.most_colors) + " colors",
                   chunk.range.begin);
  }
  walk.layout.palette = chunk.range;
  return {};
}

Status Take(const Chunk& chunk, Walk& walk) {
  const bool continues = std::exchange(walk.in_data, false);
  if (chunk.type == Type("IDAT")) {
    Range& data = walk.layout.data;
    if (data.end != 0 && !continues) {
      return Damaged("its pixel chunks are not consecutive", chunk.range.begin);
    }
    walk.in_data = true;
    if (data.end == 0) data.begin = chunk.range.begin;
    data.end = chunk.range.end;
    return CheckSum(walk.bytes, chunk);
  }
  if (chunk.type == Type("PLTE")) return TakePalette(chunk, walk);
  if (!chunk.critical()) {
    if (chunk.type == Type("tRNS")) TakeTransparency(chunk, walk);
    TakeMetadata(chunk, walk);
    TakeAnimation(chunk, walk);
    return {};
  }
  TRY(CheckSum(walk.bytes, chunk));
  if (walk.layout.data.end != 0) return {};  // after the pixels
  return Error{Code::kUnimplemented,
               "a PNG with a chunk " + Name(chunk.type) + ", which stoker does not know",
               {},
               chunk.range.begin,
               "Convert it to a standard PNG"};
}

// `at`: where the walk has ended: at IEND, at an incomplete chunk, or at the end of the file. Data
// missing after the pixels are ignored.
Status CheckEnd(const Walk& walk, size_t at) {
  const std::span<const uint8_t> bytes = walk.bytes;
  const bool pixels = walk.layout.data.end != 0;
  if (at < bytes.size() && !ChunkAt(bytes, at)) {
    const bool names_pixels = bytes.size() - at >= 8 && U32(bytes, at + 4) == Type("IDAT");
    if (pixels && !(walk.in_data && names_pixels)) return {};
    return Truncated("a chunk reaches past the end of the file", at);
  }
  if (pixels) return {};
  if (at < bytes.size()) return Damaged("no pixels in it", at);
  return Truncated("it ends before its pixels", at);
}

}  // namespace

int Header::channels() const {
  switch (color) {
    case Color::kGray:
    case Color::kPalette:
      return 1;
    case Color::kGrayAlpha:
      return 2;
    case Color::kRgb:
      return 3;
    case Color::kRgba:
      return 4;
  }
  return 0;
}

Result<Header> ReadHeader(std::span<const uint8_t> bytes) {
  constexpr std::array<uint8_t, kSignatureBytes> kSignature = {0x89, 'P',  'N',  'G',
                                                               '\r', '\n', 0x1A, '\n'};
  const size_t same = std::min(bytes.size(), kSignatureBytes);
  if (!std::equal(kSignature.begin(), kSignature.begin() + static_cast<ptrdiff_t>(same),
                  bytes.begin())) {
    return Error{Code::kDataLoss, "not a PNG", {}, 0, "Remove or re-create the image"};
  }
  if (bytes.size() < kHeaderBytes) return Truncated("it ends in its header", bytes.size());
  constexpr size_t kLength = kHeaderBytes - kSignatureBytes - kFrameBytes;
  if (U32(bytes, kSignatureBytes) != kLength || U32(bytes, kSignatureBytes + 4) != Type("IHDR")) {
    return Damaged("its first chunk is not a header", kSignatureBytes);
  }
  const std::optional<Chunk> chunk = ChunkAt(bytes, kSignatureBytes);
  TRY(CheckSum(bytes, *chunk));
  return ParseHeader(chunk->data);
}

Result<Layout> ReadLayout(std::span<const uint8_t> bytes, const Header& header) {
  Walk walk;
  walk.bytes = bytes;
  if (header.color == Color::kPalette) {
    walk.most_colors = size_t{1} << header.bit_depth;
  } else {
    walk.least_transparency = 2 * static_cast<size_t>(header.channels());
  }
  size_t at = kHeaderBytes;
  while (at < bytes.size()) {
    const std::optional<Chunk> chunk = ChunkAt(bytes, at);
    if (!chunk) break;
    if (chunk->type == Type("IEND")) break;
    TRY(Take(*chunk, walk));
    at = chunk->range.end;
  }
  TRY(CheckEnd(walk, at));
  if (walk.most_colors != 0 && walk.layout.palette.end == 0) {
    return Damaged("its palette is missing", walk.layout.data.begin);
  }
  walk.layout.orientation = FindOrientation(walk);
  return walk.layout;
}

}  // namespace stoker::png

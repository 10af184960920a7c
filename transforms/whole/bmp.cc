// BMP and ICO by a parser of our own: their pixels are plain, and Debian has no library for them.
// Microsoft's BITMAPCOREHEADER (OS/2), BITMAPINFOHEADER or a later one, in a BMP after a
// BITMAPFILEHEADER; palettes, bit fields and run lengths. Reads what Pillow reads, with its
// rounding.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>

#include "core/result/try.h"
#include "transforms/whole/format.h"

namespace stoker::whole {
namespace {

constexpr size_t kFileHeader = 14, kCoreHeader = 12, kInfoHeader = 40;
enum Compression : uint32_t { kPlain = 0, kRle8 = 1, kRle4 = 2, kBitFields = 3, kAlphaFields = 6 };

uint32_t Number(std::span<const uint8_t> bytes, size_t at, size_t count) {
  uint32_t value = 0;
  for (size_t i = 0; i < count; ++i) value |= uint32_t{bytes[at + i]} << (8 * i);
  return value;
}

// A channel of a pixel of 16 or 32 bits.
struct Field {
  uint32_t mask = 0;

  uint8_t Of(uint32_t pixel) const {
    if (mask == 0) return 0;
    const int shift = std::countr_zero(mask);
    const uint64_t most = mask >> shift;
    return static_cast<uint8_t>(uint64_t{(pixel & mask) >> shift} * 255 / most);
  }
};

struct Bitmap {
  ImageSize size;
  bool upwards = true;  // the last row comes first
  int bits = 0;         // of a pixel: 1, 2, 4, 8, 16, 24 or 32
  uint32_t compression = kPlain;
  size_t pixels_at = 0;
  std::array<std::array<uint8_t, 3>, 256> palette{};
  std::array<Field, 4> fields{};  // R, G, B, A; alpha may be absent

  size_t RowBytes() const { return (static_cast<size_t>(size.width) * bits_() + 7) / 8; }
  size_t Stride() const { return (RowBytes() + 3) / 4 * 4; }
  bool runs() const { return compression == kRle8 || compression == kRle4; }
  bool alpha() const { return fields[3].mask != 0; }
  int StoredRow(int y) const { return upwards ? size.height - 1 - y : y; }

 private:
  size_t bits_() const { return static_cast<size_t>(bits); }
};

// The format of a file whose header is at `at`.
ImageFormat FormatBy(size_t at) {
  return at == kFileHeader ? ImageFormat::kBmp : ImageFormat::kIco;
}

// Reads the bit fields of the header at `at`, or takes the usual ones: 5 bits a channel, or 8.
void ReadFields(std::span<const uint8_t> bytes, size_t at, size_t header_bytes, Bitmap& bitmap) {
  if (bitmap.bits != 16 && bitmap.bits != 32) return;
  constexpr size_t kWithAlpha = 56;
  const size_t masks_at = at + kInfoHeader;
  const bool stored = bitmap.compression == kBitFields || bitmap.compression == kAlphaFields;
  const bool has_alpha = bitmap.compression == kAlphaFields || header_bytes >= kWithAlpha;
  const auto usual = bitmap.bits == 16 ? std::array<uint32_t, 3>{0x7C00, 0x3E0, 0x1F}
                                       : std::array<uint32_t, 3>{0xFF0000, 0xFF00, 0xFF};
  for (size_t i = 0; i < (stored && has_alpha ? 4 : 3); ++i) {
    bitmap.fields[i].mask = stored ? Number(bytes, masks_at + 4 * i, 4) : usual[i];
  }
  const bool none = std::ranges::all_of(bitmap.fields, [](Field f) { return f.mask == 0; });
  if (!none || bitmap.bits != 32) return;
  bitmap.fields = {Field{0xFF0000}, Field{0xFF00}, Field{0xFF}, Field{0xFF000000}};  // as Pillow
}

// Reads the header at `at`, at most the end of the bytes. In a file of its own pixels are where
// that says, otherwise after the palette.
Result<Bitmap> Read(std::span<const uint8_t> bytes, size_t at) {
  const size_t left = bytes.size() - at;
  if (left < kCoreHeader) return Truncated(FormatBy(at));
  const size_t header = Number(bytes, at, 4);
  const bool core = header == kCoreHeader;
  if (!core && header < kInfoHeader) return Damaged(FormatBy(at), "the size of its header", at);
  if (!core && left < kInfoHeader) return Truncated(FormatBy(at));
  Bitmap bitmap;
  const size_t size_at = at + 4;
  const size_t side = core ? 2 : 4;
  const auto height = static_cast<int32_t>(Number(bytes, size_at + side, side));
  bitmap.size.width = static_cast<int32_t>(Number(bytes, size_at, side));
  bitmap.upwards = height > 0;
  if (bitmap.size.width <= 0 || height == 0 || height == INT32_MIN) {
    return Damaged(FormatBy(at), "no pixels", size_at);
  }
  bitmap.size.height = height < 0 ? -height : height;
  bitmap.bits = static_cast<int>(Number(bytes, size_at + 2 * side + 2, 2));
  bitmap.compression = core ? kPlain : Number(bytes, at + 16, 4);
  constexpr size_t kMasks = 16;  // of four channels, in the header or after it
  const bool fields = bitmap.compression == kBitFields || bitmap.compression == kAlphaFields;
  if (fields && left < kInfoHeader + kMasks) {
    return Truncated(FormatBy(at), bytes.size());
  }
  ReadFields(bytes, at, header, bitmap);

  const size_t entry = core ? 3 : 4;
  const bool masks = header == kInfoHeader && bitmap.compression == kBitFields;
  const size_t palette_at = at + header + (masks ? 12 : 0);
  if (palette_at > bytes.size()) return Truncated(FormatBy(at));
  const bool in_file = at == kFileHeader;
  bitmap.pixels_at = in_file ? Number(bytes, 10, 4) : palette_at;
  if (bitmap.bits > 8) return bitmap;
  const size_t used = core ? 0 : Number(bytes, at + 32, 4);
  const size_t most = size_t{1} << std::max(bitmap.bits, 0);
  if (!in_file) bitmap.pixels_at += entry * (used == 0 ? most : used);
  const size_t colors =
      std::min({used == 0 ? most : used, most, (bytes.size() - palette_at) / entry});
  for (size_t i = 0; i < colors; ++i) {
    const uint8_t* const bgr = &bytes[palette_at + i * entry];
    bitmap.palette[i] = {bgr[2], bgr[1], bgr[0]};
  }
  return bitmap;
}

// `at`: the header's.
Status Check(const Bitmap& bitmap, std::span<const uint8_t> bytes, size_t at) {
  const int bits = bitmap.bits;
  if (bits != 1 && bits != 2 && bits != 4 && bits != 8 && bits != 16 && bits != 24 && bits != 32) {
    return Unsupported(FormatBy(at), std::to_string(bits) + " bits a pixel", at + 14);
  }
  const uint32_t compression = bitmap.compression;
  const bool fits = compression == kPlain || (compression == kRle8 && bits == 8) ||
                    (compression == kRle4 && bits == 4) ||
                    (compression == kBitFields && (bits == 16 || bits == 32)) ||
                    (compression == kAlphaFields && (bits == 16 || bits == 32));
  if (!fits || (bitmap.runs() && !bitmap.upwards)) {
    return Unsupported(FormatBy(at), "compression " + std::to_string(compression), at + 16);
  }
  const uint32_t red = bitmap.fields[0].mask, green = bitmap.fields[1].mask,
                 blue = bitmap.fields[2].mask;
  const bool apart = (red & green) == 0 && (red & blue) == 0 && (green & blue) == 0;
  if (bits % 16 == 0 && (red == 0 || green == 0 || blue == 0 || !apart)) {
    return Unsupported(FormatBy(at), "bit fields that are empty or overlap", at + kInfoHeader);
  }
  const uint64_t last = bitmap.Stride() * static_cast<uint64_t>(bitmap.size.height - 1);
  const uint64_t needed = bitmap.runs() ? 1 : last + bitmap.RowBytes();
  if (bitmap.pixels_at > bytes.size() || needed > bytes.size() - bitmap.pixels_at) {
    return Truncated(FormatBy(at), bytes.size());
  }
  return {};
}

Result<Bitmap> ReadChecked(std::span<const uint8_t> bytes) {
  if (bytes.size() < kFileHeader) return Truncated(ImageFormat::kBmp);
  ASSIGN_OR_RETURN(Bitmap bitmap, Read(bytes, kFileHeader));
  TRY(Check(bitmap, bytes, kFileHeader));
  return bitmap;
}

Header HeaderOf(const Bitmap& bitmap) {
  return {.size = bitmap.size, .channels = bitmap.alpha() ? 4 : 3};
}

Result<Header> ReadHeader(std::span<const uint8_t> bytes) {
  ASSIGN_OR_RETURN(const Bitmap bitmap, ReadChecked(bytes));
  return HeaderOf(bitmap);
}

// Converts a stored row.
void Convert(const Bitmap& bitmap, const uint8_t* from, uint8_t* to) {
  const int width = bitmap.size.width, bits = bitmap.bits;
  if (bits == 24) {
    for (int x = 0; x < width; ++x, from += 3, to += 3) {
      to[0] = from[2];
      to[1] = from[1];
      to[2] = from[0];
    }
  } else if (bits > 8) {
    const auto bytes = static_cast<size_t>(bits / 8);
    const size_t channels = bitmap.alpha() ? 4 : 3;
    for (int x = 0; x < width; ++x, from += bytes, to += channels) {
      const uint32_t pixel = Number({from, bytes}, 0, bytes);
      for (size_t c = 0; c < channels; ++c) to[c] = bitmap.fields[c].Of(pixel);
    }
  } else {
    for (int x = 0; x < width; ++x, to += 3) {
      std::memcpy(to, bitmap.palette[SampleAt(from, x, bits)].data(), 3);
    }
  }
}

// Writes the runs' pixels into rows that are filled with colour 0. Pixels outside of the image or
// of the rows are dropped.
class Runs {
 public:
  Runs(const Bitmap& bitmap, std::span<const uint8_t> data, const Rows& rows)
      : bitmap_(bitmap), data_(data), rows_(rows) {}

  Status Decode() {
    for (int y = rows_.begin; y < rows_.end; ++y) {
      for (int x = 0; x < bitmap_.size.width; ++x) {
        std::memcpy(rows_.Row(y) + ptrdiff_t{3} * x, bitmap_.palette[0].data(), 3);
      }
    }
    while (stored_row_ < bitmap_.size.height && bitmap_.StoredRow(stored_row_) >= rows_.begin) {
      if (data_.size() - at_ < 2) return Truncated(ImageFormat::kBmp, bitmap_.pixels_at + at_);
      const int count = data_[at_], value = data_[at_ + 1];
      at_ += 2;
      if (count > 0) {
        const int end = std::min(count, bitmap_.size.width - x_);
        for (int i = 0; i < end; ++i) Put(Sample(static_cast<uint8_t>(value), i));
      } else if (value == kEndOfBitmap) {
        return {};
      } else {
        TRY(Escape(value));
      }
    }
    return {};
  }

 private:
  static constexpr int kEndOfRow = 0, kEndOfBitmap = 1, kDelta = 2;

  Status Escape(int value) {
    if (value == kEndOfRow) {
      x_ = 0;
      ++stored_row_;
      return {};
    }
    const bool four = bitmap_.bits == 4;
    const auto stored = static_cast<size_t>(four ? (value + 1) / 2 : value);
    const size_t needed = value == kDelta ? 2 : (stored + 1) / 2 * 2;
    if (data_.size() - at_ < needed) return Truncated(ImageFormat::kBmp, bitmap_.pixels_at + at_);
    if (value == kDelta) {
      x_ = std::min(x_ + data_[at_], bitmap_.size.width);
      stored_row_ += data_[at_ + 1];
    } else {
      const int end = std::min(value, bitmap_.size.width - x_);
      for (int i = 0; i < end; ++i) {
        Put(Sample(data_[at_ + static_cast<size_t>(four ? i / 2 : i)], i));
      }
    }
    at_ += needed;
    return {};
  }

  uint8_t Sample(uint8_t value, int i) const {
    if (bitmap_.bits == 8) return value;
    return i % 2 == 0 ? value >> 4 : value & 15;
  }

  // Precondition: `x_` is in the row.
  void Put(uint8_t color) {
    const int y = bitmap_.StoredRow(stored_row_);
    if (rows_.Has(y)) {
      std::memcpy(rows_.Row(y) + ptrdiff_t{3} * x_, bitmap_.palette[color].data(), 3);
    }
    ++x_;
  }

  const Bitmap& bitmap_;
  std::span<const uint8_t> data_;
  const Rows& rows_;
  size_t at_ = 0;
  int x_ = 0, stored_row_ = 0;
};

Status Decode(std::span<const uint8_t> bytes, const Header& header, const Rows& rows) {
  ASSIGN_OR_RETURN(const Bitmap bitmap, ReadChecked(bytes));
  TRY(CheckSame(ImageFormat::kBmp, header, HeaderOf(bitmap)));
  const std::span<const uint8_t> data = bytes.subspan(bitmap.pixels_at);
  if (bitmap.runs()) return Runs(bitmap, data, rows).Decode();
  for (int y = rows.begin; y < rows.end; ++y) {
    Convert(bitmap, &data[bitmap.Stride() * static_cast<size_t>(bitmap.StoredRow(y))], rows.Row(y));
  }
  return {};
}

// An image of an icon: a PNG, or a bitmap of twice its height, of rows of pixels and of a mask.
struct Entry {
  size_t at = 0, bytes = 0;
  int bits = 0;  // of a pixel
};

// Returns the largest image; as Pillow, of several the one of fewest bits.
Result<Entry> LargestOf(std::span<const uint8_t> bytes) {
  constexpr size_t kHeader = 6, kEntry = 16;
  const size_t count = bytes.size() < kHeader ? 0 : Number(bytes, 4, 2);
  if (count == 0 || (bytes.size() - kHeader) / kEntry < count) {
    return Truncated(ImageFormat::kIco, bytes.size());
  }
  Entry largest;
  std::array<int, 2> most{};
  for (size_t at = kHeader; at < kHeader + count * kEntry; at += kEntry) {
    const auto side = [&](size_t i) { return bytes[i] == 0 ? 256 : int{bytes[i]}; };
    const int bits = static_cast<int>(Number(bytes, at + 6, 2)), colours = bytes[at + 2];
    int depth = bits != 0 ? bits : std::bit_width(static_cast<unsigned>(std::max(colours - 1, 0)));
    if (depth == 0) depth = 256;
    if (const std::array rank{side(at) * side(at + 1), -depth}; rank > most) {
      most = rank;
      largest = {Number(bytes, at + 12, 4), Number(bytes, at + 8, 4), bits};
    }
  }
  if (largest.at < kHeader + count * kEntry) {
    return Damaged(ImageFormat::kIco, "an image inside of its directory", largest.at);
  }
  if (largest.at > bytes.size()) return Truncated(ImageFormat::kIco, bytes.size());
  return largest;
}

struct Icon {
  Bitmap bitmap;
  std::optional<size_t> mask_at;  // otherwise each pixel has its alpha

  size_t MaskStride() const { return (static_cast<size_t>(bitmap.size.width) + 31) / 32 * 4; }
  Header header() const { return {.size = bitmap.size, .channels = 4}; }
};

Result<Icon> ReadIcon(std::span<const uint8_t> bytes) {
  ASSIGN_OR_RETURN(const Entry entry, LargestOf(bytes));
  Icon icon;
  Bitmap& bitmap = icon.bitmap;
  ASSIGN_OR_RETURN(bitmap, Read(bytes, entry.at));
  const bool alpha = entry.bits == 32;
  bitmap.size.height /= 2;
  if (bitmap.compression != kPlain || !bitmap.upwards || bitmap.size.height == 0 ||
      (alpha && bitmap.bits != 32)) {
    return Unsupported(ImageFormat::kIco, "an image of another form than Windows writes", entry.at);
  }
  TRY(Check(bitmap, bytes, entry.at));
  if (alpha) {
    bitmap.fields[3].mask = 0xFF000000;
    return icon;
  }
  const size_t mask = icon.MaskStride() * static_cast<size_t>(bitmap.size.height);
  if (entry.bytes > bytes.size() - entry.at || mask > entry.bytes) {
    return Truncated(ImageFormat::kIco, bytes.size());
  }
  icon.mask_at = entry.at + entry.bytes - mask;
  return icon;
}

Result<Header> ReadIconHeader(std::span<const uint8_t> bytes) {
  ASSIGN_OR_RETURN(const Icon icon, ReadIcon(bytes));
  return icon.header();
}

Status DecodeIcon(std::span<const uint8_t> bytes, const Header& header, const Rows& rows) {
  ASSIGN_OR_RETURN(const Icon icon, ReadIcon(bytes));
  TRY(CheckSame(ImageFormat::kIco, header, icon.header()));
  const Bitmap& bitmap = icon.bitmap;
  for (int y = rows.begin; y < rows.end; ++y) {
    const auto stored = static_cast<size_t>(bitmap.StoredRow(y));
    uint8_t* const row = rows.Row(y);
    Convert(bitmap, &bytes[bitmap.pixels_at + bitmap.Stride() * stored], row);
    for (int x = bitmap.size.width; icon.mask_at && x-- > 0;) {
      const bool hidden = SampleAt(&bytes[*icon.mask_at + icon.MaskStride() * stored], x, 1) != 0;
      std::memmove(row + ptrdiff_t{4} * x, row + ptrdiff_t{3} * x, 3);
      row[4 * x + 3] = hidden ? 0 : 255;
    }
  }
  return {};
}

}  // namespace

std::span<const uint8_t> PngIn(std::span<const uint8_t> ico) {
  const Result<Entry> entry = LargestOf(ico);
  const auto png = ico.subspan(entry.ok() ? entry->at : ico.size());
  return SniffFormat(png) == ImageFormat::kPng ? png : png.first(0);
}

const Format kBmp{ReadHeader, Decode};
const Format kIco{ReadIconHeader, DecodeIcon};

}  // namespace stoker::whole

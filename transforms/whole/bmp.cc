// BMP by a parser of our own: its pixels are plain, and Debian has no library for it. Microsoft's
// BITMAPFILEHEADER with a BITMAPCOREHEADER (OS/2), a BITMAPINFOHEADER or a later one; palettes,
// bit fields and run lengths. Reads what Pillow reads, with its rounding.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

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

Error Bad(const std::string& what, uint64_t at) { return Damaged(ImageFormat::kBmp, what, at); }

// Reads the bit fields of the header, or takes the usual ones: 5 bits a channel, or 8.
void ReadFields(std::span<const uint8_t> bytes, size_t header_bytes, Bitmap& bitmap) {
  if (bitmap.bits != 16 && bitmap.bits != 32) return;
  constexpr size_t kMasksAt = kFileHeader + kInfoHeader, kWithAlpha = 56;
  const bool stored = bitmap.compression == kBitFields || bitmap.compression == kAlphaFields;
  const bool has_alpha = bitmap.compression == kAlphaFields || header_bytes >= kWithAlpha;
  const auto usual = bitmap.bits == 16 ? std::array<uint32_t, 3>{0x7C00, 0x3E0, 0x1F}
                                       : std::array<uint32_t, 3>{0xFF0000, 0xFF00, 0xFF};
  for (size_t i = 0; i < (stored && has_alpha ? 4 : 3); ++i) {
    bitmap.fields[i].mask = stored ? Number(bytes, kMasksAt + 4 * i, 4) : usual[i];
  }
  const bool none = std::ranges::all_of(bitmap.fields, [](Field f) { return f.mask == 0; });
  if (!none || bitmap.bits != 32) return;
  bitmap.fields = {Field{0xFF0000}, Field{0xFF00}, Field{0xFF}, Field{0xFF000000}};  // as Pillow
}

Result<Bitmap> Read(std::span<const uint8_t> bytes) {
  if (bytes.size() < kFileHeader + kCoreHeader) return Truncated(ImageFormat::kBmp);
  const size_t header = Number(bytes, kFileHeader, 4);
  const bool core = header == kCoreHeader;
  if (!core && header < kInfoHeader) return Bad("the size of its header", kFileHeader);
  if (!core && bytes.size() < kFileHeader + kInfoHeader) return Truncated(ImageFormat::kBmp);
  Bitmap bitmap;
  constexpr size_t kSizeAt = kFileHeader + 4;
  const size_t side = core ? 2 : 4;
  const auto height = static_cast<int32_t>(Number(bytes, kSizeAt + side, side));
  bitmap.size.width = static_cast<int32_t>(Number(bytes, kSizeAt, side));
  bitmap.upwards = height > 0;
  if (bitmap.size.width <= 0 || height == 0 || height == INT32_MIN) {
    return Bad("no pixels", kSizeAt);
  }
  bitmap.size.height = height < 0 ? -height : height;
  bitmap.bits = static_cast<int>(Number(bytes, kSizeAt + 2 * side + 2, 2));
  bitmap.compression = core ? kPlain : Number(bytes, kFileHeader + 16, 4);
  bitmap.pixels_at = Number(bytes, 10, 4);
  constexpr size_t kMasks = 16;  // of four channels, in the header or after it
  const bool fields = bitmap.compression == kBitFields || bitmap.compression == kAlphaFields;
  if (fields && bytes.size() < kFileHeader + kInfoHeader + kMasks) {
    return Truncated(ImageFormat::kBmp, bytes.size());
  }
  ReadFields(bytes, header, bitmap);

  const size_t entry = core ? 3 : 4;
  const bool masks = header == kInfoHeader && bitmap.compression == kBitFields;
  const size_t palette_at = kFileHeader + header + (masks ? 12 : 0);
  if (palette_at > bytes.size()) return Truncated(ImageFormat::kBmp);
  if (bitmap.bits > 8) return bitmap;
  const size_t used = core ? 0 : Number(bytes, kFileHeader + 32, 4);
  const size_t most = size_t{1} << std::max(bitmap.bits, 0);
  const size_t colors =
      std::min({used == 0 ? most : used, most, (bytes.size() - palette_at) / entry});
  for (size_t i = 0; i < colors; ++i) {
    const uint8_t* const bgr = &bytes[palette_at + i * entry];
    bitmap.palette[i] = {bgr[2], bgr[1], bgr[0]};
  }
  return bitmap;
}

Status Check(const Bitmap& bitmap, std::span<const uint8_t> bytes) {
  constexpr uint64_t kBitsAt = 28, kCompressionAt = 30;
  const int bits = bitmap.bits;
  if (bits != 1 && bits != 2 && bits != 4 && bits != 8 && bits != 16 && bits != 24 && bits != 32) {
    return Unsupported(ImageFormat::kBmp, std::to_string(bits) + " bits a pixel", kBitsAt);
  }
  const uint32_t compression = bitmap.compression;
  const bool fits = compression == kPlain || (compression == kRle8 && bits == 8) ||
                    (compression == kRle4 && bits == 4) ||
                    (compression == kBitFields && (bits == 16 || bits == 32)) ||
                    (compression == kAlphaFields && (bits == 16 || bits == 32));
  if (!fits || (bitmap.runs() && !bitmap.upwards)) {
    return Unsupported(ImageFormat::kBmp, "compression " + std::to_string(compression),
                       kCompressionAt);
  }
  const uint32_t red = bitmap.fields[0].mask, green = bitmap.fields[1].mask,
                 blue = bitmap.fields[2].mask;
  const bool apart = (red & green) == 0 && (red & blue) == 0 && (green & blue) == 0;
  if (bits % 16 == 0 && (red == 0 || green == 0 || blue == 0 || !apart)) {
    return Unsupported(ImageFormat::kBmp, "bit fields that are empty or overlap",
                       kFileHeader + kInfoHeader);
  }
  const uint64_t last = bitmap.Stride() * static_cast<uint64_t>(bitmap.size.height - 1);
  const uint64_t needed = bitmap.runs() ? 1 : last + bitmap.RowBytes();
  if (bitmap.pixels_at > bytes.size() || needed > bytes.size() - bitmap.pixels_at) {
    return Truncated(ImageFormat::kBmp, bytes.size());
  }
  return {};
}

Result<Bitmap> ReadChecked(std::span<const uint8_t> bytes) {
  ASSIGN_OR_RETURN(Bitmap bitmap, Read(bytes));
  TRY(Check(bitmap, bytes));
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

}  // namespace

const Format kBmp{ReadHeader, Decode};

}  // namespace stoker::whole

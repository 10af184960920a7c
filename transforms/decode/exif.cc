#include "transforms/decode/exif.h"

#include <algorithm>
#include <bit>
#include <bitset>
#include <string_view>

namespace stoker {
namespace {

using Parts = std::span<const std::span<const uint8_t>>;

constexpr std::string_view kPrefix("Exif\0\0", 6);
constexpr uint32_t kOrientationTag = 0x0112;
constexpr size_t kHeaderBytes = 8;
constexpr size_t kEntryBytes = 12;  // tag 2, type 2, count 4, value or offset 4
constexpr size_t kInline = 4;       // larger values are elsewhere

std::string_view TextOf(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A TIFF structure: reads numbers in its declared byte order; numbers outside are zero.
class Tiff {
 public:
  explicit Tiff(Parts parts) : parts_(parts) {
    for (const auto& part : parts) size_ += part.size();
    for (int i = 0; i < 2 && Has(kPrefix); ++i) Skip(kPrefix.size());
    big_endian_ = Has("MM");
  }

  // Four magic numbers: two of them have the wrong byte order, and one is of a later version.
  bool valid() const {
    using namespace std::string_view_literals;
    constexpr std::string_view kMagic[] = {"II*\0"sv, "MM\0*"sv, "II\0*"sv, "MM*\0"sv, "MM\0+"sv};
    return size_ >= kHeaderBytes &&
           std::any_of(std::begin(kMagic), std::end(kMagic), [this](auto m) { return Has(m); });
  }

  size_t size() const { return size_; }
  uint32_t U16(size_t at) const { return static_cast<uint32_t>(Number(at, 2)); }
  uint32_t U32(size_t at) const { return static_cast<uint32_t>(Number(at, 4)); }
  uint64_t Number(size_t at, size_t count) const {
    if (at > size_ || size_ - at < count) return 0;
    uint64_t value = 0;
    for (size_t i = 0; i < count; ++i) {
      value = value << 8 | Byte(at + (big_endian_ ? i : count - 1 - i));
    }
    return value;
  }

 private:
  bool Has(std::string_view text) const {
    for (size_t i = 0; i < text.size(); ++i) {
      if (i >= size_ || Byte(i) != static_cast<uint8_t>(text[i])) return false;
    }
    return true;
  }

  void Skip(size_t count) {
    begin_ += count;
    size_ -= count;
  }

  uint8_t Byte(size_t at) const {  // `at`: less than size()
    at += begin_;
    if (at < part_begin_) part_ = part_begin_ = 0;
    while (at - part_begin_ >= parts_[part_].size()) part_begin_ += parts_[part_++].size();
    return parts_[part_][at - part_begin_];
  }

  Parts parts_;
  size_t begin_ = 0, size_ = 0;
  bool big_endian_ = false;
  mutable size_t part_ = 0, part_begin_ = 0;  // of the last byte: the next one is near it
};

enum Type : uint32_t {  // those with values that may be orientations
  kShort = 3,
  kLong = 4,
  kRational = 5,
  kSignedByte = 6,
  kSignedShort = 8,
  kSignedLong = 9,
  kSignedRational = 10,
  kFloat = 11,
  kDouble = 12,
  kDirectory = 13,
  kLong8 = 16,
};

// Bytes per value; 0 for unknown types.
size_t BytesOf(uint32_t type) {
  constexpr std::array<uint8_t, 17> kBytes = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8};
  return type < kBytes.size() ? kBytes[type] : 0;
}

uint32_t Quotient(int64_t numerator, int64_t denominator) {
  if (denominator == 0 || numerator % denominator != 0) return 0;
  const int64_t value = numerator / denominator;
  return value >= 1 && value <= 8 ? static_cast<uint32_t>(value) : 0;
}

uint32_t Whole(double value) {
  return value >= 1 && value <= 8 && value == static_cast<uint32_t>(value)
             ? static_cast<uint32_t>(value)
             : 0;
}

// The first of an entry's values, if it is 1 to 8; otherwise 0.
uint32_t ValueAt(const Tiff& tiff, uint32_t type, size_t at) {
  switch (type) {
    case kShort:
    case kLong:
    case kSignedByte:
    case kSignedShort:
    case kSignedLong:
    case kDirectory:
    case kLong8: {
      const uint64_t value = tiff.Number(at, BytesOf(type));  // negative ones are large
      return value <= 8 ? static_cast<uint32_t>(value) : 0;
    }
    case kRational:
      return Quotient(tiff.U32(at), tiff.U32(at + 4));
    case kSignedRational:
      return Quotient(static_cast<int32_t>(tiff.U32(at)), static_cast<int32_t>(tiff.U32(at + 4)));
    case kFloat:
      return Whole(std::bit_cast<float>(tiff.U32(at)));
    case kDouble:
      return Whole(std::bit_cast<double>(tiff.Number(at, 8)));
    default:  // text and bytes
      return 0;
  }
}

// Walks over a directory as Pillow does (ImageFileDirectory_v2.load). What it skips and where it
// stops decides which of several entries of the tag counts, and whether one does.
std::optional<uint32_t> FindTag(const Tiff& tiff) {
  std::bitset<65536> seen;    // tags that have a value
  uint64_t values_bytes = 0;  // of the values that are elsewhere
  const size_t directory = tiff.U32(4);
  const size_t entries = tiff.U16(directory);
  for (size_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + i * kEntryBytes;
    if (entry + kEntryBytes > tiff.size()) return std::nullopt;
    const uint32_t tag = tiff.U16(entry), type = tiff.U16(entry + 2);
    const uint64_t bytes = uint64_t{tiff.U32(entry + 4)} * BytesOf(type);
    if (bytes == 0 || seen[tag]) continue;
    size_t at = entry + 8;
    if (bytes > kInline) {
      values_bytes += bytes;
      if (values_bytes > tiff.size()) continue;
      at = tiff.U32(at);
      if (at > tiff.size() || bytes > tiff.size() - at) return std::nullopt;
    }
    if (tag == kOrientationTag) return ValueAt(tiff, type, at);
    seen.set(tag);
  }
  return std::nullopt;
}

}  // namespace

std::optional<uint32_t> ExifValue(Parts parts) {
  const Tiff tiff(parts);
  if (tiff.size() == 0) return std::nullopt;
  return tiff.valid() ? FindTag(tiff) : 0;
}

std::optional<uint32_t> ExifValue(std::span<const uint8_t> exif) {
  return ExifValue(Parts(&exif, 1));
}

std::optional<uint32_t> XmpValue(std::span<const uint8_t> packet) {
  constexpr std::string_view kName = "tiff:Orientation";
  std::string_view text = TextOf(packet);
  for (size_t at; (at = text.find(kName)) != std::string_view::npos;) {
    text.remove_prefix(at + kName.size());
    const size_t digit = text.starts_with("=\"") ? 2 : text.starts_with('>') ? 1 : text.size();
    if (digit >= text.size() || text[digit] < '0' || text[digit] > '9') continue;
    return static_cast<uint32_t>(text[digit] - '0');
  }
  return std::nullopt;
}

Orientation OrientationOf(std::optional<uint32_t> value) {
  return value && *value >= 1 && *value <= 8 ? static_cast<Orientation>(*value)
                                             : Orientation::kNormal;
}

void App1Segments::Take(std::span<const uint8_t> segment) {
  constexpr std::string_view kXmp("http://ns.adobe.com/xap/1.0/\0", 29);
  if (TextOf(segment).starts_with(kPrefix)) {
    if (parts_ == kMaxParts) return;
    exif_[parts_] = parts_ == 0 ? segment : segment.subspan(kPrefix.size());
    ++parts_;
  } else if (TextOf(segment).starts_with(kXmp)) {
    xmp_ = segment.subspan(kXmp.size());
  }
}

Orientation App1Segments::orientation() const {
  std::optional<uint32_t> value = ExifValue(Parts(exif_).first(parts_));
  if (!value && xmp_) value = XmpValue(*xmp_);
  return OrientationOf(value);
}

}  // namespace stoker

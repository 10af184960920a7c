#include "transforms/decode/exif.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

namespace stoker {
namespace {

constexpr std::array<uint8_t, 6> kSignature = {'E', 'x', 'i', 'f', 0, 0};
constexpr uint32_t kOrientationTag = 0x0112;
constexpr uint32_t kShort = 3;  // field types of TIFF
constexpr uint32_t kLong = 4;
constexpr size_t kEntryBytes = 12;  // tag 2, type 2, count 4, value 4

// A TIFF structure: reads numbers in its declared byte order; numbers outside are zero.
class Tiff {
 public:
  explicit Tiff(std::span<const uint8_t> bytes)
      : bytes_(bytes), big_endian_(!bytes.empty() && bytes[0] == 'M') {}

  uint32_t U16(size_t at) const { return Number(at, 2); }
  uint32_t U32(size_t at) const { return Number(at, 4); }
  bool valid() const {
    return bytes_.size() >= 8 && (bytes_[0] == 'M' || bytes_[0] == 'I') && bytes_[1] == bytes_[0] &&
           U16(2) == 42;
  }
  size_t size() const { return bytes_.size(); }

 private:
  uint32_t Number(size_t at, size_t count) const {
    if (at > bytes_.size() || bytes_.size() - at < count) return 0;
    uint32_t value = 0;
    for (size_t i = 0; i < count; ++i) {
      value = value << 8 | bytes_[at + (big_endian_ ? i : count - 1 - i)];
    }
    return value;
  }

  std::span<const uint8_t> bytes_;
  bool big_endian_;
};

bool HasSignature(std::span<const uint8_t> bytes) {
  return bytes.size() >= kSignature.size() &&
         std::equal(kSignature.begin(), kSignature.end(), bytes.begin());
}

// The tag's value; 0 if it is invalid; none if there is no such tag.
std::optional<uint32_t> FindTag(std::span<const uint8_t> bytes) {
  const Tiff tiff(bytes);
  if (!tiff.valid()) return std::nullopt;
  const size_t directory = tiff.U32(4);
  const size_t entries = tiff.U16(directory);
  for (size_t i = 0; i < entries; ++i) {
    const size_t entry = directory + 2 + i * kEntryBytes;
    if (entry + kEntryBytes > tiff.size()) return std::nullopt;
    if (tiff.U16(entry) != kOrientationTag) continue;
    if (tiff.U32(entry + 4) != 1) return 0;
    const uint32_t type = tiff.U16(entry + 2);
    return type == kShort ? tiff.U16(entry + 8) : type == kLong ? tiff.U32(entry + 8) : 0;
  }
  return std::nullopt;
}

std::optional<Orientation> ValueOf(std::optional<uint32_t> tag) {
  if (!tag || *tag < 1 || *tag > 8) return std::nullopt;
  return static_cast<Orientation>(*tag);
}

}  // namespace

std::optional<uint32_t> XmpValue(std::span<const uint8_t> packet) {
  constexpr std::string_view kName = "tiff:Orientation";
  std::string_view text(reinterpret_cast<const char*>(packet.data()), packet.size());
  for (size_t at; (at = text.find(kName)) != std::string_view::npos;) {
    text.remove_prefix(at + kName.size());
    const size_t digit = text.starts_with("=\"") ? 2 : text.starts_with('>') ? 1 : text.size();
    if (digit >= text.size() || text[digit] < '0' || text[digit] > '9') continue;
    return static_cast<uint32_t>(text[digit] - '0');
  }
  return std::nullopt;
}

void OrientationFinder::TakeExif(std::span<const uint8_t> part) {
  if (std::exchange(has_exif_, true)) return;
  tag_ = FindTag(HasSignature(part) ? part.subspan(kSignature.size()) : part);
}

void OrientationFinder::TakeXmp(std::span<const uint8_t> packet) {
  if (wants_xmp()) xmp_ = XmpValue(packet);
}

void OrientationFinder::TakeApp1(std::span<const uint8_t> segment) {
  constexpr std::string_view kXmp("http://ns.adobe.com/xap/1.0/\0", 29);
  if (HasSignature(segment)) return TakeExif(segment);
  const std::string_view text(reinterpret_cast<const char*>(segment.data()), segment.size());
  if (text.starts_with(kXmp)) TakeXmp(segment.subspan(kXmp.size()));
}

Orientation OrientationFinder::Found() const {
  return ValueOf(tag_ ? tag_ : xmp_).value_or(Orientation::kNormal);
}

}  // namespace stoker

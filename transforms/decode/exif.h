// Finds the orientation in an image's metadata: EXIF (CIPA DC-008, tag 0x0112), a TIFF structure,
// and XMP (ISO 16684), which is XML. Each format stores them in its own way. All rules are Pillow's
// (Image.getexif): EXIF first, and XMP only if EXIF has no such tag.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

#include "transforms/decode/orientation.h"

namespace stoker {

// The tag's value in EXIF that is stored in consecutive `parts`; 0 if it is not an orientation or
// if the EXIF is not a TIFF structure; nullopt if there is no such tag. One or two prefixes
// "Exif\0\0" are skipped: they do not belong in chunks of PNG and WebP but occur, and JPEG
// encoders write their own before that of their input. Reads one directory, each entry once.
std::optional<uint32_t> ExifValue(std::span<const std::span<const uint8_t>> parts);
std::optional<uint32_t> ExifValue(std::span<const uint8_t> exif);

// The digit of the first tiff:Orientation followed by one, as an attribute or an element, whether
// or not it is a valid orientation. Follows Pillow's rule, which is a regular expression rather
// than a parser: `tiff:Orientation(="|>)([0-9])`.
std::optional<uint32_t> XmpValue(std::span<const uint8_t> packet);

// Values other than 1 to 8 mean no rotation.
Orientation OrientationOf(std::optional<uint32_t> value);

// The metadata segments of a JPEG: the EXIF segments are the parts of one structure, and of the XMP
// packets the last counts. The segments must outlive it.
class App1Segments {
 public:
  static constexpr size_t kMaxParts = 32;  // 2 MiB of EXIF; further ones are ignored

  void Take(std::span<const uint8_t> segment);  // EXIF, XMP or neither
  Orientation orientation() const;

 private:
  std::array<std::span<const uint8_t>, kMaxParts> exif_;
  size_t parts_ = 0;
  std::optional<std::span<const uint8_t>> xmp_;
};
static_assert(std::is_trivially_destructible_v<App1Segments>);  // see Note [longjmp]

}  // namespace stoker

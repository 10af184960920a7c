// Finds the orientation in an image's metadata: EXIF (CIPA DC-008, tag 0x0112), a TIFF structure,
// and XMP (ISO 16684), which is XML. Each format stores them in its own way.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "transforms/decode/orientation.h"

namespace stoker {

// The digit of the first tiff:Orientation followed by one, as an attribute or an element, whether
// or not it is a valid orientation. Follows Pillow's rule, which is a regular expression rather
// than a parser: `tiff:Orientation(="|>)([0-9])`.
std::optional<uint32_t> XmpValue(std::span<const uint8_t> packet);

// Combines an image's metadata in Pillow's order (Image.getexif): EXIF first, and XMP only if EXIF
// has no such tag. The first of several EXIF parts counts, whatever it contains, and the last of
// several XMP packets. Values other than 1 to 8 mean no rotation.
class OrientationFinder {
 public:
  // Reads one directory of a TIFF structure, each entry once and nothing outside; a damaged
  // structure has no tag. The six bytes "Exif\0\0" before it are optional: in PNG and WebP chunks
  // they do not belong but occur.
  void TakeExif(std::span<const uint8_t> part);
  void TakeXmp(std::span<const uint8_t> packet);    // read only if it may matter
  void TakeApp1(std::span<const uint8_t> segment);  // of a JPEG: EXIF, XMP or neither

  bool wants_xmp() const { return !tag_; }  // given the metadata seen so far
  void SetXmp(std::optional<uint32_t> value) { xmp_ = value; }

  Orientation Found() const;

 private:
  bool has_exif_ = false;
  std::optional<uint32_t> tag_, xmp_;
};

}  // namespace stoker

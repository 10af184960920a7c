// The orientation in an image's metadata: EXIF (CIPA DC-008, tag 0x0112), a TIFF structure, and XMP
// (ISO 16684), which is XML. Each format keeps them in places of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "transforms/decode/orientation.h"

namespace stoker {

// The digit of the first tiff:Orientation that has one behind it, as an attribute or as an element,
// whether or not it is an orientation; by Pillow's rule, which is no parser:
// `tiff:Orientation(="|>)([0-9])`.
std::optional<uint32_t> XmpValue(std::span<const uint8_t> packet);

// Puts together what an image's metadata say, in Pillow's order (Image.getexif): EXIF; and XMP only
// where EXIF has no such tag at all. Of several EXIF parts the first one counts, whatever it says,
// of XMP packets the last one that there is. Values other than 1 to 8 turn nothing.
class OrientationFinder {
 public:
  // A TIFF structure, of which one directory is looked at, each of its entries once, and nothing
  // outside; damaged, it has no tag. With or without the six bytes "Exif\0\0" before it: in the
  // chunks of PNG and WebP they do not belong, and are seen.
  void TakeExif(std::span<const uint8_t> part);
  void TakeXmp(std::span<const uint8_t> packet);    // looked through where it may matter
  void TakeApp1(std::span<const uint8_t> segment);  // of a JPEG: either of them, or neither

  bool wants_xmp() const { return !tag_; }  // by what there has been so far
  void SetXmp(std::optional<uint32_t> value) { xmp_ = value; }

  Orientation Found() const;

 private:
  bool has_exif_ = false;
  std::optional<uint32_t> tag_, xmp_;
};

}  // namespace stoker

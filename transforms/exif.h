// The orientation in an image's metadata: EXIF (CIPA DC-008, tag 0x0112), a TIFF structure, and XMP
// (ISO 16684), which is XML. Each format keeps them in places of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "transforms/orientation.h"

namespace stoker {

// Nothing when `tiff` is damaged, or has no orientation from 1 to 8. Looks at one directory, each
// of its entries once, and at nothing outside. (PNG's eXIf chunk; WebP's EXIF chunk.)
std::optional<Orientation> TiffOrientation(std::span<const uint8_t> tiff);

// The same behind the six bytes "Exif\0\0"; nothing where they are missing (XMP). (What follows an
// APP1 marker and its length in a JPEG.)
std::optional<Orientation> ExifOrientation(std::span<const uint8_t> segment);

// With or without these bytes: in the chunks of PNG and WebP they do not belong, and are seen.
std::optional<Orientation> ChunkOrientation(std::span<const uint8_t> chunk);

// Of the first tiff:Orientation that has a digit behind it, as an attribute or as an element; by
// Pillow's rule, which is no parser: `tiff:Orientation(="|>)([0-9])`.
std::optional<Orientation> XmpOrientation(std::span<const uint8_t> packet);

// Puts together what an image's metadata say, in Pillow's order (Image.getexif): EXIF; and XMP only
// where EXIF has no such tag at all. Of several EXIF parts the first that is valid counts, of XMP
// packets the last one that there is.
class OrientationFinder {
 public:
  void TakeExif(std::span<const uint8_t> part);     // as ChunkOrientation
  void TakeXmp(std::span<const uint8_t> packet);    // looked through where it may matter
  void TakeApp1(std::span<const uint8_t> segment);  // of a JPEG: either of them, or neither

  bool wants_xmp() const { return !tagged_; }  // by what there has been so far
  void SetXmp(std::optional<Orientation> found) { xmp_ = found; }

  Orientation Found() const;

 private:
  bool tagged_ = false;  // EXIF has the tag, whatever it says
  std::optional<Orientation> exif_, xmp_;
};

}  // namespace stoker

// The orientation in EXIF data (CIPA DC-008, tag 0x0112): a TIFF structure, which each format keeps
// in a place of its own.
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

}  // namespace stoker

// The orientation in a JPEG's EXIF segment (CIPA DC-008; TIFF 6.0 inside an APP1 segment).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "transforms/orientation.h"

namespace stoker {

// `segment`: what follows an APP1 marker and its length. Nothing when it is not EXIF (but XMP), is
// damaged, or has no orientation from 1 to 8. Looks at one directory, each of its entries once, and
// at nothing outside the segment.
std::optional<Orientation> ExifOrientation(std::span<const uint8_t> segment);

}  // namespace stoker

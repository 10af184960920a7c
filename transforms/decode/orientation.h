// EXIF orientation (CIPA DC-008, tag 0x0112): how to turn a stored image for viewing.
#pragma once

#include <cstdint>

#include "core/batch/image.h"

namespace stoker {

// The values of the tag. Each one means: transpose (or not), then mirror columns, then mirror rows.
enum class Orientation : uint8_t {
  kNormal = 1,
  kMirrorColumns = 2,
  kRotate180 = 3,
  kMirrorRows = 4,
  kTranspose = 5,
  kRotate90 = 6,  // rotate clockwise to view it
  kTransverse = 7,
  kRotate270 = 8,
};

struct Turn {
  bool transpose = false;       // first: stored (x, y) becomes (y, x)
  bool mirror_columns = false;  // then: swap left and right
  bool mirror_rows = false;     // then: swap top and bottom
};
Turn TurnOf(Orientation orientation);

// The orientation in which an image is viewed mirrored: left and right, top and bottom.
Orientation Mirrored(Orientation orientation, bool columns, bool rows);

// The size as viewed of an image of size `stored`.
ImageSize Viewed(ImageSize stored, Orientation orientation);

// The rectangle of the stored image that appears at `viewed` (in coordinates of the viewed image).
Rect Stored(const Rect& viewed, ImageSize stored, Orientation orientation);

}  // namespace stoker

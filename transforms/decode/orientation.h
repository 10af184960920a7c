// EXIF orientation (CIPA DC-008, tag 0x0112): how a stored image is to be turned for viewing.
#pragma once

#include <cstdint>

#include "core/image.h"

namespace stoker {

// The values of the tag. Every one of them is: transpose (or not), then mirror columns, then
// mirror rows.
enum class Orientation : uint8_t {
  kNormal = 1,
  kMirrorColumns = 2,
  kRotate180 = 3,
  kMirrorRows = 4,
  kTranspose = 5,
  kRotate90 = 6,  // clockwise, to view it
  kTransverse = 7,
  kRotate270 = 8,
};

struct Turn {
  bool transpose = false;       // first: stored (x, y) becomes (y, x)
  bool mirror_columns = false;  // then: left and right change places
  bool mirror_rows = false;     // then: top and bottom do
};
Turn TurnOf(Orientation orientation);

// Size as viewed of an image of `stored` size.
ImageSize Viewed(ImageSize stored, Orientation orientation);

// The rectangle of the stored image that is seen as `viewed` (given in the viewed image).
Rect Stored(const Rect& viewed, ImageSize stored, Orientation orientation);

}  // namespace stoker

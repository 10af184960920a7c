// The geometry of Mosaic: where its images are in a row. Row coordinates are continuous: pixel i
// covers [i, i + 1].
#pragma once

#include <cstdint>

#include "core/batch/image.h"
#include "core/numbers/random.h"
#include "transforms/plan/drawn.h"
#include "transforms/spec/transform.h"

namespace stoker {

// The draws of a row, the same for all of its images.
struct DrawnMosaic {
  bool several = true;  // otherwise the sample's own image is alone
  double scale = 1;     // of the canvas in the row
  double x = 0, y = 0;  // where the images meet, whole, or the middle of the one that is alone
  Rect canvas;          // in the row, and around it; not used by an image that is alone
};
DrawnMosaic DrawMosaic(const Mosaic& mosaic, RandomStream& random);

// The rectangles of one of the images.
struct PlacedImage {
  Rect whole;  // all of it, resized, in the row and around it
  Rect shown;  // what the canvas shows of it, likewise
  Rect part;   // of the row: where no other image is
};
// `part`: 0 is the image above and to the left of the others, 1 is to the right, 2 below and 3
// both. `image`: its sides are at least 1. `part` depends on the draws alone.
PlacedImage PlaceImage(const Mosaic& mosaic, const DrawnMosaic& drawn, uint32_t part,
                       ImageSize image);

// Returns the pixels that both have; of no size if there are none.
Rect Overlap(const Rect& a, const Rect& b);
// Returns a rectangle relative to the corner of another one.
Rect RelativeTo(const Rect& base, const Rect& rect);
inline bool IsEmpty(const Rect& rect) { return rect.width == 0 || rect.height == 0; }

// Makes the geometry's window show all of its part, not only the image in it. Precondition: the
// window is that of the image.
void ShowPart(const Placement& placed, Geometry& geometry);

}  // namespace stoker

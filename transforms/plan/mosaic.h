// The geometry of Mosaic: where its images are in a row. Row coordinates are continuous: pixel i
// covers [i, i + 1].
#pragma once

#include <cstdint>
#include <span>

#include "core/batch/image.h"
#include "core/numbers/random.h"
#include "transforms/plan/drawn.h"
#include "transforms/plan/geometry_map.h"
#include "transforms/resize/axis_filter.h"
#include "transforms/spec/transform.h"

namespace stoker {

// The draws of a row, the same for all of its images.
struct DrawnMosaic {
  bool several = true;  // otherwise the sample's own image is alone
  double scale = 1;     // of the canvas in the row
  // The point where four images meet, whole; with nine, the upper left corner of the first one; of
  // an image that is alone, its middle.
  double x = 0, y = 0;
  Rect canvas;  // in the row, and around it; not used by an image that is alone
  // All that is above is where it is before the row is turned about this point and sheared.
  double middle_x = 0, middle_y = 0;
  double degrees = 0, x_shear = 0, y_shear = 0;
  // Before that, distances from this point are divided by 1 + these, each times a coordinate. The
  // divisor is at least 0.1 on the canvas, and at most 10 in the row.
  double x_perspective = 0, y_perspective = 0;

  bool turns() const {
    return degrees != 0 || x_shear != 0 || y_shear != 0 || x_perspective != 0 || y_perspective != 0;
  }
};
DrawnMosaic DrawMosaic(const Mosaic& mosaic, RandomStream& random);
// Returns where points of the row are moved when it is turned and sheared, and the map back.
GeometryMap TurnOf(const DrawnMosaic& drawn);
GeometryMap TurnBackOf(const DrawnMosaic& drawn);

// The rectangles of one of the images.
struct PlacedImage {
  Rect whole;  // all of it, resized, in the row and around it
  Rect shown;  // what the canvas shows of it, likewise
  Rect view;   // what is in the row, or turned into it, and is no other image's
  Rect part;   // of the row, which the image's piece writes: `view`, unless the row is turned
  Canvas canvas;
};
// `part`: 0 is the image above and to the left of the others, 1 is to the right, 2 below and 3
// both. Of nine, 0 is in the middle, 1 above it, and the others follow clockwise. `image`: its
// sides are at least 1. `view` and `part` depend on the draws alone, unless there are nine images,
// or the image is alone on a canvas. `on_canvas`: the canvas takes the place of the row: `view` is
// what of it is no other image's, and `part` is that in its tile. `before`: of nine, the images of
// the parts before this one.
PlacedImage PlaceImage(const Mosaic& mosaic, const DrawnMosaic& drawn, uint32_t part,
                       ImageSize image, bool on_canvas = false,
                       std::span<const ImageSize> before = {});

// Returns the corner of a turned row that is the part's (Placement::corner).
std::array<HalfPlane, 2> CornerOf(const DrawnMosaic& drawn, uint32_t part);
// Returns the pixels of row y of a part, from its left edge, that are written: those whose center
// is in both half-planes of the corner. A center on the line between two corners is in exactly one
// of them.
AxisSpan ColumnsOf(const Placement& placed, int y);

// Returns the pixels that both have; of no size if there are none.
Rect Overlap(const Rect& a, const Rect& b);
// Returns a rectangle relative to the corner of another one.
Rect RelativeTo(const Rect& base, const Rect& rect);
inline bool IsEmpty(const Rect& rect) { return rect.width == 0 || rect.height == 0; }

// Makes the geometry's window show all of its part, not only the image in it. Precondition: the
// window is that of the image.
void ShowPart(const Placement& placed, Geometry& geometry);

}  // namespace stoker

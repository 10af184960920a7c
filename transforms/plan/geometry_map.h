// GeometryMap: where the points of a sample's image are in its row, for boxes and keypoints.
#pragma once

#include <array>
#include <vector>

#include "core/batch/image.h"
#include "transforms/plan/drawn.h"

namespace stoker {

// Point (x, y) of the image as viewed is at (m[0] x + m[1] y + m[2], m[3] x + m[4] y + m[5]) of the
// row. Coordinates are continuous, as those of torchvision's boxes: pixel i covers [i, i + 1].
using GeometryMap = std::array<double, 6>;

// Returns the map of a drawn sample. It concerns its pixels alone, so a crop does not clip points:
// they may lie outside the row. All numbers are NaN if the pixels of the row lie on a line of the
// image, as after a zoom by a factor of 0.
GeometryMap MapToRow(const DrawnSample& drawn);

// Sets `corners` to those of the part of the row in which pixels of the image are, not padding: a
// convex polygon, as crops and padding cut it. `image`: size as viewed.
struct MapPoint {
  double x = 0, y = 0;
};
void FindImageIn(const DrawnSample& drawn, ImageSize image, std::vector<MapPoint>& corners);

// Returns where a step moves the points of an image of `size`; NaN likewise.
GeometryMap MapOf(const Affine& step, ImageSize size);

}  // namespace stoker

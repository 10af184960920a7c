// GeometryMap: where the points of a sample's image are in its row, for boxes and keypoints.
#pragma once

#include <array>
#include <vector>

#include "core/batch/image.h"
#include "transforms/plan/drawn.h"

namespace stoker {

// Point (x, y) of the image as viewed is at (m[0] x + m[1] y + m[2], m[3] x + m[4] y + m[5]) /
// (m[6] x + m[7] y + m[8]) of the row. The last three numbers are 0, 0 and 1 unless a
// RandomPerspective or a Mosaic's perspective was drawn. Coordinates are continuous, as those of
// torchvision's boxes: pixel i covers [i, i + 1].
using GeometryMap = std::array<double, 9>;

struct MapPoint {
  double x = 0, y = 0;
};
inline MapPoint Moved(const GeometryMap& map, double x, double y) {
  const double divisor = map[6] * x + map[7] * y + map[8];
  return {(map[0] * x + map[1] * y + map[2]) / divisor,
          (map[3] * x + map[4] * y + map[5]) / divisor};
}

inline GeometryMap Shift(double x, double y) { return {1, 0, x, 0, 1, y, 0, 0, 1}; }
// Returns the map that applies `first`, then `second`.
GeometryMap Then(const GeometryMap& first, const GeometryMap& second);
// Returns the map back, of a map whose last number is 1, as that of the result is. All numbers are
// NaN if there is none.
GeometryMap Inverse(const GeometryMap& map);

// Returns the map of a drawn sample. It concerns its pixels alone, so a crop does not clip points:
// they may lie outside the row. All numbers are NaN if the pixels of the row lie on a line of the
// image, as after a zoom by a factor of 0.
GeometryMap MapToRow(const DrawnSample& drawn);

// Removes the rest of a polygon, if it has any, by the algorithm of Sutherland and Hodgman.
void CutTo(const HalfPlane& side, std::vector<MapPoint>& polygon);

// Sets `horizons` to a half-plane of the image for each step with a perspective, in which
// all lies that the row shows. Beyond it the map's divisor may be zero or negative, and MapToRow
// may move points into the row that it does not show. Polygons are cut to them in this order.
void FindHorizons(const DrawnSample& drawn, std::vector<HalfPlane>& horizons);

// Sets `corners` to those of the part of the row in which pixels of the image are, not padding: a
// convex polygon, as crops and padding cut it. `image`: size as viewed. In a row of several images,
// the row is the image's part, which the geometry's window shows.
void FindImageIn(const DrawnSample& drawn, ImageSize image, std::vector<MapPoint>& corners);

// Returns where a step moves the points of an image of `size`; NaN likewise.
GeometryMap MapOf(const Affine& step, ImageSize size);

}  // namespace stoker

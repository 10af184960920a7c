#include "transforms/plan/geometry_map.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <variant>

namespace stoker {

namespace {

constexpr GeometryMap kIdentity{1, 0, 0, 0, 1, 0, 0, 0, 1};

GeometryMap MirrorOf(bool columns, bool rows, ImageSize size) {
  return {columns ? -1.0 : 1.0,
          0,
          columns ? static_cast<double>(size.width) : 0.0,  //
          0,
          rows ? -1.0 : 1.0,
          rows ? static_cast<double>(size.height) : 0.0,  //
          0,
          0,
          1};
}

void CutTo(const Rect& part, std::vector<MapPoint>& corners) {
  CutTo(HalfPlane{1, 0, -1.0 * part.x}, corners);
  CutTo(HalfPlane{-1, 0, 1.0 * part.x + part.width}, corners);
  CutTo(HalfPlane{0, 1, -1.0 * part.y}, corners);
  CutTo(HalfPlane{0, -1, 1.0 * part.y + part.height}, corners);
}

void MoveBy(const GeometryMap& map, std::vector<MapPoint>& points) {
  for (MapPoint& point : points) point = Moved(map, point.x, point.y);
}

GeometryMap MapOf(const Geometry& geometry) {
  const Rect &box = geometry.box, &window = geometry.window;
  const double x = static_cast<double>(geometry.resized.width) / box.width;
  const double y = static_cast<double>(geometry.resized.height) / box.height;
  const GeometryMap resized{x, 0, -box.x * x - window.x, 0, y, -box.y * y - window.y, 0, 0, 1};
  return Then(resized, MirrorOf(geometry.mirror_columns, geometry.mirror_rows, window.size()));
}

// Follows the steps, which have the size of the image before each of them.
struct StepMap {
  ImageSize size;

  GeometryMap operator()(const Affine& step) {
    const GeometryMap map = MapOf(step, size);
    size = step.size.value_or(size);
    return map;
  }
  GeometryMap operator()(const Reframe& step) {
    size = step.window.size();
    return Shift(-step.window.x, -step.window.y);
  }
  GeometryMap operator()(const Mirror& step) const {
    return MirrorOf(step.columns, step.rows, size);
  }
  template <typename Colour>
  GeometryMap operator()(const Colour&) const {
    return kIdentity;
  }
};

}  // namespace

GeometryMap Then(const GeometryMap& first, const GeometryMap& second) {
  GeometryMap map{};
  for (size_t row = 0; row < 9; row += 3) {
    for (size_t column = 0; column < 3; ++column) {
      map[row + column] = second[row] * first[column] + second[row + 1] * first[3 + column] +
                          second[row + 2] * first[6 + column];
    }
  }
  return map;
}

GeometryMap Inverse(const GeometryMap& map) {
  const auto& [a, b, c, d, e, f, g, h, one] = map;
  const double divisor = a * e - b * d;
  GeometryMap inverse;
  if (divisor == 0 || !std::isfinite(divisor)) {
    inverse.fill(std::numeric_limits<double>::quiet_NaN());
    return inverse;
  }
  inverse = {(e - f * h) / divisor,     (c * h - b) / divisor,     0,  //
             (f * g - d) / divisor,     (a - c * g) / divisor,     0,  //
             (d * h - e * g) / divisor, (b * g - a * h) / divisor, 1};
  inverse[2] = -(inverse[0] * c + inverse[1] * f);
  inverse[5] = -(inverse[3] * c + inverse[4] * f);
  return inverse;
}

GeometryMap MapOf(const Affine& step, ImageSize size) {
  const ImageSize to = step.size.value_or(size);
  const auto& [a, b, c, d, e, f] = step.matrix;
  const GeometryMap source{a, b, c, d, e, f, step.divisor[0], step.divisor[1], 1};
  return Then(Then(Shift(-size.width / 2.0, -size.height / 2.0), Inverse(source)),
              Shift(to.width / 2.0, to.height / 2.0));
}

GeometryMap MapToRow(const DrawnSample& drawn) {
  GeometryMap map = MapOf(drawn.geometry);
  StepMap of_step{drawn.geometry.window.size()};
  for (const DrawnStep& step : drawn.steps) map = Then(map, std::visit(of_step, step.step));
  return map;
}

void CutTo(const HalfPlane& side, std::vector<MapPoint>& polygon) {
  const auto inside = [&side](const MapPoint& p) {
    return side[0] * p.x + side[1] * p.y + side[2];
  };
  std::vector<MapPoint> kept;
  for (size_t i = 0; i < polygon.size(); ++i) {
    const MapPoint &from = polygon[i], &to = polygon[(i + 1) % polygon.size()];
    const double at = inside(from), at_to = inside(to);
    if (at >= 0) kept.push_back(from);
    if ((at < 0 && at_to > 0) || (at > 0 && at_to < 0)) {
      const double part = at / (at - at_to);
      kept.push_back({from.x + part * (to.x - from.x), from.y + part * (to.y - from.y)});
    }
  }
  polygon = std::move(kept);
}

void FindHorizons(const DrawnSample& drawn, std::vector<HalfPlane>& horizons) {
  horizons.clear();
  GeometryMap before = MapOf(drawn.geometry);
  StepMap of_step{drawn.geometry.window.size()};
  for (const DrawnStep& step : drawn.steps) {
    const GeometryMap map = std::visit(of_step, step.step);
    const GeometryMap after = Then(before, map);
    if (map[6] != 0 || map[7] != 0) {
      // The divisor is a linear function, and positive in the image, if the drawn corners are
      // convex. Half of the least one keeps the cut away from the pixels.
      const double least = map[8] + std::min(0.0, map[6] * of_step.size.width) +
                           std::min(0.0, map[7] * of_step.size.height);
      HalfPlane horizon;
      for (size_t i = 0; i < 3; ++i) horizon[i] = after[6 + i] - least / 2 * before[6 + i];
      horizons.push_back(horizon);
    }
    before = after;
  }
}

void FindImageIn(const DrawnSample& drawn, ImageSize image, std::vector<MapPoint>& corners) {
  const double width = image.width, height = image.height;
  corners = {{0, 0}, {width, 0}, {width, height}, {0, height}};
  CutTo(drawn.geometry.box, corners);
  MoveBy(MapOf(drawn.geometry), corners);
  StepMap of_step{drawn.geometry.window.size()};
  CutTo(drawn.placed ? drawn.placed->image : Rect{0, 0, of_step.size.width, of_step.size.height},
        corners);
  for (const DrawnStep& step : drawn.steps) {
    MoveBy(std::visit(of_step, step.step), corners);
    CutTo({0, 0, of_step.size.width, of_step.size.height}, corners);
  }
}

}  // namespace stoker

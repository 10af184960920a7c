// The reference of PolygonFill.
#include <algorithm>
#include <cmath>

#include "transforms/shapes/polygon_fill.h"

namespace stoker {

namespace {

constexpr double kScale = 5;

struct BoundaryPoint {
  int64_t x = 0, y = 0;
};

int64_t Scaled(double position) { return static_cast<int64_t>(kScale * position + 0.5); }

// Appends all steps of an edge, in its direction.
void AddSteps(const BoundaryPoint& from, const BoundaryPoint& to,
              std::vector<BoundaryPoint>& steps) {
  const int64_t dx = std::abs(to.x - from.x), dy = std::abs(to.y - from.y);
  const bool flat = dx >= dy;
  const int64_t count = std::max(dx, dy);
  const bool backwards = flat ? from.x > to.x : from.y > to.y;
  const BoundaryPoint& begin = backwards ? to : from;
  const BoundaryPoint& end = backwards ? from : to;
  const auto rise = static_cast<double>(flat ? end.y - begin.y : end.x - begin.x);
  const double slope = count == 0 ? 0 : rise / static_cast<double>(count);
  for (int64_t i = 0; i <= count; ++i) {
    const int64_t t = backwards ? count - i : i;
    const double start = static_cast<double>(flat ? begin.y : begin.x);
    const auto other = static_cast<int64_t>(start + slope * static_cast<double>(t) + 0.5);
    steps.push_back(flat ? BoundaryPoint{begin.x + t, other} : BoundaryPoint{other, begin.y + t});
  }
}

}  // namespace

void FillPolygonPlain(const std::vector<PlanePoint>& corners, ImageSize size,
                      std::vector<uint8_t>& pixels) {
  const int64_t width = size.width, height = size.height;
  std::vector<BoundaryPoint> steps;
  for (size_t i = 0; i < corners.size(); ++i) {
    const PlanePoint &from = corners[i], &to = corners[(i + 1) % corners.size()];
    AddSteps({Scaled(from.x), Scaled(from.y)}, {Scaled(to.x), Scaled(to.y)}, steps);
  }
  std::vector<int64_t> ends;  // of runs, in pixels counted down one column after another
  for (size_t i = 1; i < steps.size(); ++i) {
    if (steps[i].x == steps[i - 1].x) continue;
    const auto left = static_cast<double>(std::min(steps[i].x, steps[i - 1].x));
    const auto upper = static_cast<double>(std::min(steps[i].y, steps[i - 1].y));
    const double x = (left + 0.5) / kScale - 0.5, y = (upper + 0.5) / kScale - 0.5;
    if (std::floor(x) != x || x < 0 || x > static_cast<double>(width - 1)) continue;
    const double row = std::ceil(std::clamp(y, 0.0, static_cast<double>(height)));
    ends.push_back(static_cast<int64_t>(x) * height + static_cast<int64_t>(row));
  }
  std::ranges::sort(ends);
  ends.push_back(width * height);
  for (size_t i = 1; i < ends.size(); i += 2) {
    for (int64_t at = ends[i - 1]; at < ends[i]; ++at) {
      pixels[static_cast<size_t>(at % height * width + at / height)] = 1;
    }
  }
}

}  // namespace stoker

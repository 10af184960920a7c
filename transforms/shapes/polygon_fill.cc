#include "transforms/shapes/polygon_fill.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace stoker {

namespace {

constexpr int64_t kFifths = 5;  // of a pixel
constexpr int64_t kCenter = 3;  // the first fifth that is right of a pixel's center line

// Truncates, as the rule does.
int64_t FifthOf(double position) {
  constexpr double kMost = 1 << 24;  // pixels; far outside of any image
  return static_cast<int64_t>(kFifths * std::clamp(position, -kMost, kMost) + 0.5);
}

// Returns the position after `steps` of a walk that began at `from`.
int64_t Walked(int64_t from, double slope, int64_t steps) {
  return static_cast<int64_t>(static_cast<double>(from) + slope * static_cast<double>(steps) + 0.5);
}

// Returns the first center line at or right of this position.
int64_t CenterAfter(int64_t x) {
  if (x <= kCenter) return kCenter;
  return kCenter + (x - kCenter + kFifths - 1) / kFifths * kFifths;
}

}  // namespace

void PolygonFill::Add(double x, double y) {
  if (std::isnan(x) || std::isnan(y)) {
    has_nan_ = true;
    return;
  }
  const Corner corner{FifthOf(x), FifthOf(y)};
  if (corners_++ == 0) {
    first_ = last_ = corner;
    left_ = plane_.size.width;
    top_ = plane_.size.height;
    right_ = bottom_ = 0;
    return;
  }
  Edge(std::exchange(last_, corner), corner);
}

Rect PolygonFill::Close() {
  if (corners_ != 0) Edge(last_, first_);
  corners_ = 0;
  if (std::exchange(has_nan_, false)) {
    if (left_ < right_) std::memset(changes_.pixels, 0, ScratchBytes(plane_.size));
    return {};
  }
  return left_ < right_ ? Fill() : Rect{};
}

// Both kinds of edges are walked towards larger numbers.
void PolygonFill::Edge(Corner from, Corner to) {
  if (from.x == to.x) return;
  const int64_t across = std::abs(to.x - from.x), down = std::abs(to.y - from.y);
  if (across >= down) {
    from.x < to.x ? FlatEdge(from, to) : FlatEdge(to, from);
  } else {
    from.y < to.y ? SteepEdge(from, to) : SteepEdge(to, from);
  }
}

// Each step is one fifth to the right.
void PolygonFill::FlatEdge(const Corner& from, const Corner& to) {
  const double slope = static_cast<double>(to.y - from.y) / static_cast<double>(to.x - from.x);
  const int64_t end = std::min(to.x, kFifths * plane_.size.width);
  for (int64_t x = CenterAfter(from.x + 1); x <= end; x += kFifths) {
    const int64_t steps = x - from.x;
    Change(x, std::min(Walked(from.y, slope, steps - 1), Walked(from.y, slope, steps)));
  }
}

// Each step is one fifth down, and passes a center line or not.
void PolygonFill::SteepEdge(const Corner& from, const Corner& to) {
  const int64_t down = to.y - from.y;
  const double slope = static_cast<double>(to.x - from.x) / static_cast<double>(down);
  const bool rightwards = slope > 0;
  const int64_t end = std::min(std::max(from.x, to.x), kFifths * plane_.size.width);
  for (int64_t x = CenterAfter(std::min(from.x, to.x) + 1); x <= end; x += kFifths) {
    const auto has_passed = [&](int64_t steps) {
      return (Walked(from.x, slope, steps) >= x) == rightwards;
    };
    const double about = (static_cast<double>(x) - 0.5 - static_cast<double>(from.x)) / slope;
    int64_t steps = std::clamp<int64_t>(static_cast<int64_t>(about), 1, down);
    while (steps > 1 && has_passed(steps - 1)) --steps;
    while (steps < down && !has_passed(steps)) ++steps;
    Change(x, from.y + steps - 1);
  }
}

// Changes a column from the first pixel whose center is not above `y`. `right`: the position right
// of the column's center line.
void PolygonFill::Change(int64_t right, int64_t y) {
  constexpr int64_t kAboveCenter = kCenter - 1;
  const int column = static_cast<int>((right - kCenter) / kFifths);
  const int64_t below = y <= kAboveCenter ? 0 : (y - kAboveCenter + kFifths - 1) / kFifths;
  const int row = static_cast<int>(std::min<int64_t>(below, plane_.size.height));
  changes_.row(row)[column] ^= 1;
  ++changed_;
  left_ = std::min(left_, column);
  right_ = std::max(right_, column + 1);
  top_ = std::min(top_, row);
  bottom_ = std::max(bottom_, row);
}

Rect PolygonFill::Fill() {
  const Rect bounds{left_, top_, right_ - left_, bottom_ - top_};
  FillChanges(changes_, bounds, plane_);
  return bounds;
}

// Carries the changes of each row to the next one.
void FillChanges(const BytePlane& changes, const Rect& bounds, const BytePlane& plane) {
  const auto columns = static_cast<size_t>(bounds.width);
  const int bottom = bounds.y + bounds.height;
  for (int y = bounds.y; y < bottom; ++y) {
    uint8_t* const inside = changes.row(y) + bounds.x;
    uint8_t* const next = changes.row(y + 1) + bounds.x;
    uint8_t* const to = plane.row(y) + bounds.x;
    for (size_t x = 0; x < columns; ++x) {
      next[x] ^= inside[x];
      to[x] |= inside[x];
    }
    std::memset(inside, 0, columns);
  }
  std::memset(changes.row(bottom) + bounds.x, 0, columns);
}

}  // namespace stoker

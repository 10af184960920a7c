#include "transforms/plan/mosaic.h"

#include <algorithm>
#include <cmath>

#include "transforms/augment/geometry/draw_affine.h"
#include "transforms/plan/draw.h"

namespace stoker {

namespace {

int Rounded(double value) { return static_cast<int>(RoundHalfEven(value)); }
int Floor(double value) { return static_cast<int>(std::floor(value)); }

// Returns a rectangle with these edges; of no size unless they are in order.
Rect Between(int left, int top, int right, int bottom) {
  if (right <= left || bottom <= top) return {};
  return {left, top, right - left, bottom - top};
}

// The place of an image next to the others, and what of the plane is no other image's.
struct Cell {
  Rect whole, own;
};
constexpr int kFar = 1 << 28;  // beyond all rows

Cell CellOfFour(int x, int y, uint32_t part, ImageSize size) {
  const auto [width, height] = size;
  const bool right = part % 2 != 0, below = part / 2 != 0;
  return {{right ? x : x - width, below ? y : y - height, width, height},
          Between(right ? x : -kFar, below ? y : -kFar, right ? kFar : x, below ? kFar : y)};
}

// An image at a side of the first one begins at a corner of that; the next one, `at_corner`, begins
// where this one, `before` it, ends.
Cell CellOfNine(const Rect& first, uint32_t part, ImageSize before, ImageSize size) {
  const auto [width, height] = size;
  const bool at_corner = part % 2 == 0;
  const ImageSize side = at_corner ? before : size;
  const int left = first.x, top = first.y, right = left + first.width, bottom = top + first.height;
  switch ((part + 1) / 2) {
    case 0:
      return {first, first};
    case 1: {
      const int x = left + side.width;
      return {{at_corner ? x : left, top - height, width, height},
              Between(at_corner ? x : left, -kFar, at_corner ? kFar : x, top)};
    }
    case 2: {
      const int y = top + side.height;
      return {{right, at_corner ? y : top, width, height},
              Between(right, at_corner ? y : top, kFar, at_corner ? kFar : y)};
    }
    case 3: {
      const int x = right - side.width;
      return {{(at_corner ? x : right) - width, bottom, width, height},
              Between(at_corner ? -kFar : x, bottom, at_corner ? x : right, kFar)};
    }
    default: {
      const int y = bottom - side.height;
      return {{left - width, (at_corner ? y : bottom) - height, width, height},
              Between(-kFar, at_corner ? -kFar : y, left, at_corner ? y : bottom)};
    }
  }
}

GeometryMap About(double x, double y, const GeometryMap& map) {
  return Then(Then(Shift(-x, -y), map), Shift(x, y));
}

// Returns the map whose fixed point is the middle, from there.
GeometryMap CentredTurnOf(const DrawnMosaic& drawn) {
  const auto [a, b, c, d, e, f] = Rotation(-drawn.degrees);
  const GeometryMap perspective{1, 0, 0, 0, 1, 0, drawn.x_perspective, drawn.y_perspective, 1};
  const GeometryMap turn{a, b, c, d, e, f, 0, 0, 1};
  const GeometryMap shear{1, Tangent(drawn.x_shear), 0, Tangent(drawn.y_shear), 1, 0, 0, 0, 1};
  return Then(perspective, Then(turn, shear));
}

// Draws the perspective, and weakens it if the horizon would come near the canvas or the row.
void DrawPerspective(const Mosaic& mosaic, RandomStream& random, DrawnMosaic& drawn) {
  constexpr double kLeastDivisor = 0.1;
  double x = random.Uniform(-mosaic.perspective, mosaic.perspective) / drawn.scale;
  double y = random.Uniform(-mosaic.perspective, mosaic.perspective) / drawn.scale;
  const GeometryMap back = TurnBackOf(drawn);
  double most = (std::abs(x) + std::abs(y)) * mosaic.size * drawn.scale;  // what divisors lack of 1
  for (const double across : {0, mosaic.size}) {
    for (const double down : {0, mosaic.size}) {
      const MapPoint corner = Moved(back, across, down);
      most = std::max(most, x * (corner.x - drawn.middle_x) + y * (corner.y - drawn.middle_y));
    }
  }
  const double times = std::min(1.0, (1 - kLeastDivisor) / std::max(most, 1e-9));
  drawn.x_perspective = x * times;
  drawn.y_perspective = y * times;
}

// Returns the pixels that are in the row after it was turned, and one more around them.
Rect ViewOf(const DrawnMosaic& drawn, int size) {
  if (!drawn.turns()) return {0, 0, size, size};
  const GeometryMap back = TurnBackOf(drawn);
  double left = drawn.middle_x, top = drawn.middle_y, right = left, bottom = top;
  for (const double x : {0, size}) {
    for (const double y : {0, size}) {
      const MapPoint corner = Moved(back, x, y);
      left = std::min(left, corner.x), right = std::max(right, corner.x);
      top = std::min(top, corner.y), bottom = std::max(bottom, corner.y);
    }
  }
  return Between(Floor(left) - 1, Floor(top) - 1, Floor(right) + 2, Floor(bottom) + 2);
}

// Returns Canvas::tile; at least a pixel. `view`: what may be in the row.
Rect TileOf(const Rect& canvas, const Rect& view) {
  if (IsEmpty(canvas)) return {0, 0, 1, 1};
  const Rect seen = Overlap(canvas, view);
  if (IsEmpty(seen)) return {canvas.x, canvas.y, canvas.width, 1};
  const int sum = 2 * canvas.x + canvas.width;  // of a column and the mirrored one
  const int left = std::min(seen.x, sum - seen.x - seen.width);
  return {left, seen.y, sum - 2 * left, seen.height};
}

// Returns the bounds of the pixels of a row that a corner touches, which are more than those whose
// centers it has, so that rounding does not matter.
Rect BoundsOf(std::array<HalfPlane, 2> corner, int size) {
  for (auto& [across, down, constant] : corner) constant += (std::abs(across) + std::abs(down)) / 2;
  const Placement all{.part = {0, 0, size, size}, .image = {}, .fill = {}, .corner = corner};
  int left = size, top = size, right = 0, bottom = 0;
  for (int y = 0; y < size; ++y) {
    const auto [begin, end] = ColumnsOf(all, y);
    if (begin == end) continue;
    left = std::min(left, begin), right = std::max(right, end);
    top = std::min(top, y), bottom = y + 1;
  }
  return Between(left, top, right, bottom);
}

}  // namespace

DrawnMosaic DrawMosaic(const Mosaic& mosaic, RandomStream& random) {
  const double size = mosaic.size;
  DrawnMosaic drawn;
  drawn.several = random.Uniform() < mosaic.p;
  const double x = random.Uniform(-0.5, 0.5), y = random.Uniform(-0.5, 0.5);
  drawn.scale = random.Uniform(1 - mosaic.scale, 1 + mosaic.scale);
  const double middle_x = size * (0.5 + random.Uniform(-mosaic.translate, mosaic.translate));
  const double middle_y = size * (0.5 + random.Uniform(-mosaic.translate, mosaic.translate));
  const double half = size * drawn.scale;  // of the canvas
  drawn.x = drawn.several ? RoundHalfEven(middle_x + x * half) : middle_x;
  drawn.y = drawn.several ? RoundHalfEven(middle_y + y * half) : middle_y;
  if (drawn.several && mosaic.n == 9) {
    drawn.x = RoundHalfEven(middle_x - half / 2);
    drawn.y = RoundHalfEven(middle_y - half / 2);
  }
  drawn.canvas = Between(Rounded(middle_x - half), Rounded(middle_y - half),
                         Rounded(middle_x + half), Rounded(middle_y + half));
  drawn.middle_x = middle_x;
  drawn.middle_y = middle_y;
  drawn.degrees = random.Uniform(-mosaic.degrees, mosaic.degrees);
  drawn.x_shear = random.Uniform(-mosaic.shear, mosaic.shear);
  drawn.y_shear = random.Uniform(-mosaic.shear, mosaic.shear);
  DrawPerspective(mosaic, random, drawn);
  return drawn;
}

GeometryMap TurnOf(const DrawnMosaic& drawn) {
  return About(drawn.middle_x, drawn.middle_y, CentredTurnOf(drawn));
}

GeometryMap TurnBackOf(const DrawnMosaic& drawn) {
  return About(drawn.middle_x, drawn.middle_y, Inverse(CentredTurnOf(drawn)));
}

PlacedImage PlaceImage(const Mosaic& mosaic, const DrawnMosaic& drawn, uint32_t part,
                       ImageSize image, bool on_canvas, std::span<const ImageSize> before) {
  const auto resized = [&](ImageSize size) -> ImageSize {
    const double longer = std::max({size.width, size.height, 1});
    const auto side = [&](int length) {
      return std::max(1, Rounded(length * (mosaic.size * drawn.scale) / longer));
    };
    return {side(size.width), side(size.height)};
  };
  const auto [width, height] = resized(image);
  const Rect row{0, 0, mosaic.size, mosaic.size}, in_row = ViewOf(drawn, mosaic.size);
  if (!drawn.several) {
    const Rect whole{Floor(drawn.x - width / 2.0), Floor(drawn.y - height / 2.0), width, height};
    const Rect tile = TileOf(whole, in_row);
    return {.whole = whole,
            .shown = whole,
            .view = on_canvas ? tile : in_row,
            .part = on_canvas ? RelativeTo(tile, tile) : row,
            .canvas = {whole, tile, whole}};
  }
  const Rect tile = TileOf(drawn.canvas, in_row), view = on_canvas ? tile : in_row;
  const auto x = static_cast<int>(drawn.x), y = static_cast<int>(drawn.y);
  const ImageSize own{width, height};
  const ImageSize first = before.empty() ? own : resized(before.front());
  const auto [whole, of_plane] =
      mosaic.n == 9 ? CellOfNine({x, y, first.width, first.height}, part,
                                 before.empty() ? own : resized(before.back()), own)
                    : CellOfFour(x, y, part, own);
  PlacedImage placed{.whole = whole,
                     .shown = Overlap(whole, drawn.canvas),
                     .view = Overlap(of_plane, view),
                     .part = {},
                     .canvas = {drawn.canvas, tile, whole}};
  if (on_canvas) {
    placed.part = RelativeTo(tile, placed.view);
  } else {
    placed.part = drawn.turns() ? BoundsOf(CornerOf(drawn, part), mosaic.size) : placed.view;
  }
  if (IsEmpty(placed.part)) placed.view = {};
  return placed;
}

std::array<HalfPlane, 2> CornerOf(const DrawnMosaic& drawn, uint32_t part) {
  if (!drawn.several) return {HalfPlane{0, 0, 1}, HalfPlane{0, 0, 1}};
  const auto [a, b, c, d, e, f, g, h, i] = TurnBackOf(drawn);
  const double x = drawn.x, y = drawn.y;
  std::array<HalfPlane, 2> corner{HalfPlane{a - x * g, b - x * h, c - x * i},
                                  HalfPlane{d - y * g, e - y * h, f - y * i}};
  for (double& number : corner[0]) number *= part % 2 != 0 ? 1 : -1;
  for (double& number : corner[1]) number *= part / 2 != 0 ? 1 : -1;
  return corner;
}

// Each row of pixels is divided in the row's coordinates, for all parts alike.
AxisSpan ColumnsOf(const Placement& placed, int y) {
  AxisSpan columns{.begin = 0, .end = placed.part.width};
  if (!placed.corner) return columns;
  for (const auto& [across, down, constant] : *placed.corner) {
    const double first = across / 2 + down * (placed.part.y + y + 0.5) + constant;  // of column 0
    if (across == 0) {
      if (first < 0 || (first == 0 && down < 0)) columns.end = 0;
      continue;
    }
    const double left = placed.part.x, zero = -first / across;
    const int at = static_cast<int>(std::ceil(std::clamp(zero, left, left + placed.part.width))) -
                   placed.part.x;
    if (across > 0) {
      columns.begin = std::max(columns.begin, at);
    } else {
      columns.end = std::min(columns.end, at);
    }
  }
  columns.end = std::max(columns.begin, columns.end);
  return columns;
}

Rect Overlap(const Rect& a, const Rect& b) {
  return Between(std::max(a.x, b.x), std::max(a.y, b.y), std::min(a.x + a.width, b.x + b.width),
                 std::min(a.y + a.height, b.y + b.height));
}

Rect RelativeTo(const Rect& base, const Rect& rect) {
  return {rect.x - base.x, rect.y - base.y, rect.width, rect.height};
}

void ShowPart(const Placement& placed, Geometry& geometry) {
  const Rect &part = placed.part, &image = placed.image;
  Rect& window = geometry.window;
  if (IsEmpty(image)) {  // shows what is outside of it
    window = {geometry.resized.width, geometry.resized.height, part.width, part.height};
    return;
  }
  const int x = geometry.mirror_columns ? part.width - image.x - image.width : image.x;
  const int y = geometry.mirror_rows ? part.height - image.y - image.height : image.y;
  window = {window.x - x, window.y - y, part.width, part.height};
}

}  // namespace stoker

#include "transforms/plan/mosaic.h"

#include <algorithm>
#include <cmath>

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
  drawn.canvas = Between(Rounded(middle_x - half), Rounded(middle_y - half),
                         Rounded(middle_x + half), Rounded(middle_y + half));
  return drawn;
}

PlacedImage PlaceImage(const Mosaic& mosaic, const DrawnMosaic& drawn, uint32_t part,
                       ImageSize image) {
  const double longer = std::max(image.width, image.height);
  const auto resized = [&](int side) {
    return std::max(1, Rounded(side * (mosaic.size * drawn.scale) / longer));
  };
  const int width = resized(image.width), height = resized(image.height), size = mosaic.size;
  if (!drawn.several) {
    const Rect whole{Floor(drawn.x - width / 2.0), Floor(drawn.y - height / 2.0), width, height};
    return {.whole = whole, .shown = whole, .part = {0, 0, size, size}};
  }
  const bool right = part % 2 != 0, below = part / 2 != 0;
  const auto meet_x = static_cast<int>(drawn.x), meet_y = static_cast<int>(drawn.y);
  const int x = std::clamp(meet_x, 0, size), y = std::clamp(meet_y, 0, size);
  const Rect whole{right ? meet_x : meet_x - width, below ? meet_y : meet_y - height, width,
                   height};
  return {.whole = whole,
          .shown = Overlap(whole, drawn.canvas),
          .part = Between(right ? x : 0, below ? y : 0, right ? size : x, below ? size : y)};
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

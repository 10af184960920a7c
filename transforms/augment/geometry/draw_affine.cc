#include "transforms/augment/geometry/draw_affine.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "transforms/plan/draw.h"
#include "transforms/plan/geometry_map.h"

namespace stoker {

namespace {

using Range = std::array<double, 2>;
using Matrix = std::array<double, 6>;

double Sine(double degrees) { return Sin(degrees * (kPi / 180)); }
double Cosine(double degrees) { return Sine(90 - degrees); }

double DrawIn(const Range& range, RandomStream& random) {
  return random.Uniform(range[0], range[1]);
}

double WholePixels(double share, int side, RandomStream& random) {
  const double most = share * side;
  return RoundHalfEven(random.Uniform(-most, most));
}

struct Point {
  double x = 0;
  double y = 0;
};

// Returns the fixed point of a map, relative to the middle of the image.
template <typename T>
Point CenterOf(const T& transform, ImageSize size) {
  const auto from_middle = [](const std::optional<double>& at, int side) {
    return at ? *at - side / 2.0 : 0.0;
  };
  return {from_middle(transform.center_x, size.width),
          from_middle(transform.center_y, size.height)};
}

// Moves the fixed point of a matrix to `center`, and the result by `moved`.
Matrix MoveCenter(Point center, Point moved, Matrix matrix) {
  const Point from{center.x + moved.x, center.y + moved.y};
  matrix[2] += center.x - matrix[0] * from.x - matrix[1] * from.y;
  matrix[5] += center.y - matrix[3] * from.x - matrix[4] * from.y;
  return matrix;
}

// Whether no projective map moves a rectangle to these corners, and its middle not to infinity:
// three of them are on a line, or the diagonals are parallel. Exact for halves of integers.
bool AreDegenerate(const std::array<Point, 4>& corners) {
  const auto parallel = [](Point a, Point b, Point c, Point d) {
    return (b.x - a.x) * (d.y - c.y) == (b.y - a.y) * (d.x - c.x);
  };
  const auto& [p, q, r, s] = corners;
  return parallel(p, q, p, r) || parallel(p, q, p, s) || parallel(p, r, p, s) ||
         parallel(q, r, q, s) || parallel(p, r, q, s);
}

// Returns the map to the corners from those of the unit square: (0, 0), (1, 0), (1, 1), (0, 1).
// (Heckbert: "Fundamentals of Texture Mapping and Image Warping", 1989)
GeometryMap FromUnitSquare(const std::array<Point, 4>& corners) {
  const auto& [p, q, r, s] = corners;
  const Point one{q.x - r.x, q.y - r.y}, other{s.x - r.x, s.y - r.y};
  const Point rest{p.x - q.x + r.x - s.x, p.y - q.y + r.y - s.y};
  const double determinant = one.x * other.y - other.x * one.y;
  const double g = (rest.x * other.y - other.x * rest.y) / determinant;
  const double h = (one.x * rest.y - rest.x * one.y) / determinant;
  return {q.x - p.x + g * q.x,
          s.x - p.x + h * s.x,
          p.x,  //
          q.y - p.y + g * q.y,
          s.y - p.y + h * s.y,
          p.y,  //
          g,
          h,
          1};
}

template <typename T>
Affine StepOf(const T& transform, const Matrix& matrix) {
  Affine step{.matrix = matrix, .interpolation = transform.interpolation};
  if constexpr (requires { transform.fill.has_value(); }) {
    step.fill = transform.fill.value_or(Fill{});
    step.fade = transform.fill.has_value();
  } else {
    step.fill = transform.fill;
  }
  if constexpr (requires { transform.padding_mode; }) step.padding = transform.padding_mode;
  return step;
}

}  // namespace

double Tangent(double degrees) { return Sine(degrees) / Cosine(degrees); }

std::array<double, 6> Rotation(double degrees) {
  const double sine = Sine(degrees), cosine = Cosine(degrees);
  return {cosine, -sine, 0, sine, cosine, 0};
}

// The inverse of rotation × scaling × shear along y × shear along x, about the center.
Affine DrawAffine(const RandomAffine& transform, ImageSize size, RandomStream& random) {
  const double angle = DrawIn(transform.degrees, random);
  Point moved;
  moved.x = WholePixels(transform.translate_x, size.width, random);
  moved.y = WholePixels(transform.translate_y, size.height, random);
  const double scale = DrawIn(transform.scale, random);
  const double shear_x = DrawIn(transform.shear_x, random);
  const double shear_y = DrawIn(transform.shear_y, random);
  const double a = Cosine(angle - shear_y) / Cosine(shear_y);
  const double c = Sine(angle - shear_y) / Cosine(shear_y);
  const double b = -a * Tangent(shear_x) - Sine(angle), d = Cosine(angle) - c * Tangent(shear_x);
  const Matrix matrix{d / scale, -b / scale, 0, -c / scale, a / scale, 0};
  return StepOf(transform, MoveCenter(CenterOf(transform, size), moved, matrix));
}

Affine DrawAffine(const RandomRotation& transform, ImageSize size, RandomStream& random) {
  const Matrix matrix = Rotation(DrawIn(transform.degrees, random));
  return StepOf(transform, MoveCenter(CenterOf(transform, size), {}, matrix));
}

// The corners are (0, 0) to (width − 1, height − 1), in coordinates in which pixel i covers
// [i, i + 1]: torchvision draws and maps them so.
Affine DrawAffine(const RandomPerspective& transform, ImageSize size, RandomStream& random) {
  const double right = size.width - 1, bottom = size.height - 1;
  const auto inwards = [&](int side) {
    const int half = side / 2;
    const auto most = static_cast<uint64_t>(transform.distortion_scale * half);
    return static_cast<double>(random.Below(most + 1));
  };
  std::array<Point, 4> corners{{{0, 0}, {right, 0}, {right, bottom}, {0, bottom}}};
  for (Point& corner : corners) {
    corner.x += (corner.x > 0 ? -1 : 1) * inwards(size.width) - size.width / 2.0;
    corner.y += (corner.y > 0 ? -1 : 1) * inwards(size.height) - size.height / 2.0;
  }
  Affine step = StepOf(transform, kNoMotion);
  if (AreDegenerate(corners)) return step;
  const GeometryMap to_image{right, 0, -size.width / 2.0, 0, bottom, -size.height / 2.0, 0, 0, 1};
  const GeometryMap source = Then(Inverse(FromUnitSquare(corners)), to_image);
  const auto finite = [](double number) { return std::isfinite(number); };
  if (!std::ranges::all_of(source, finite) || !std::ranges::all_of(Inverse(source), finite)) {
    return step;
  }
  std::copy_n(source.begin(), 6, step.matrix.begin());
  step.divisor = {source[6], source[7]};
  return step;
}

Affine DrawAffine(const ElasticTransform& transform, ImageSize, RandomStream& random) {
  Affine step = StepOf(transform, kNoMotion);
  step.noise = {.key = random.Bits(), .alpha = transform.alpha, .sigma = transform.sigma};
  return step;
}

Affine DrawAffine(const RandomZoom& transform, ImageSize, RandomStream& random) {
  const double height = 1 + DrawIn(transform.height_factor, random);
  const double width =
      transform.width_factor ? 1 + DrawIn(*transform.width_factor, random) : height;
  return StepOf(transform, {width, 0, 0, 0, height, 0});
}

Affine DrawAffine(const RandomTranslation& transform, ImageSize size, RandomStream& random) {
  const double down = size.height * DrawIn(transform.height_factor, random);
  const double right = size.width * DrawIn(transform.width_factor, random);
  return StepOf(transform, {1, 0, -right, 0, 1, -down});
}

Affine DrawAffine(const RandomShear& transform, ImageSize size, RandomStream& random) {
  const double sign = random.Uniform() > 0.5 ? -1 : 1;
  const double y = sign * DrawIn(transform.y_factor, random);
  const double x = sign * DrawIn(transform.x_factor, random);
  const Point first{(1 - size.width) / 2.0, (1 - size.height) / 2.0};
  return StepOf(transform, MoveCenter(first, {}, {1, x, 0, y, 1, 0}));
}

}  // namespace stoker

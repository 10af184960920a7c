#include <algorithm>
#include <cmath>
#include <vector>

#include "transforms/augment/geometry/affine.h"
#include "transforms/augment/geometry/border.h"
#include "transforms/augment/geometry/elastic.h"

namespace stoker {

namespace {

// Larger than any image; keeps the following computations finite.
double Bounded(double entry) { return std::clamp(entry, -1e9, 1e9); }

// A plane and what surrounds it.
struct PaddedPlane {
  const Tile& tile;
  size_t channel;
  uint8_t fill;
  Padding padding = Padding::kConstant;
  float At(int x, int y) const {
    const int64_t column = Padded(x, tile.size.width, padding);
    const int64_t row = Padded(y, tile.size.height, padding);
    return column < 0 || row < 0 ? fill : tile.row(channel, static_cast<int>(row))[column];
  }
};

// 1 inside the image.
struct InsidePlane {
  const Tile& tile;
  float At(int x, int y) const {
    return x < 0 || y < 0 || x >= tile.size.width || y >= tile.size.height ? 0 : 1;
  }
};

float Between(float a, float b, float part) { return a + part * (b - a); }

template <typename Plane>
float Bilinear(const Plane& plane, float x, float y) {
  const float left = std::floor(x), top = std::floor(y);
  const int column = static_cast<int>(left), row = static_cast<int>(top);
  const float above = Between(plane.At(column, row), plane.At(column + 1, row), x - left);
  const float below = Between(plane.At(column, row + 1), plane.At(column + 1, row + 1), x - left);
  return Between(above, below, y - top);
}

float Faded(const Tile& tile, size_t channel, uint8_t fill, float x, float y) {
  const float pixel = Bilinear(PaddedPlane{tile, channel, 0}, x, y);
  return Bilinear(InsidePlane{tile}, x, y) * (pixel - fill) + fill;
}

// Rounds a value in [−1, 2^22] to the nearest integer, ties to even.
int Nearest(float value) { return static_cast<int>(value + 0x1.8p23F - 0x1.8p23F); }

float Sampled(float at, const AffineAxis& axis) {
  if (axis.period > 0) {
    at -= axis.start;
    at -= axis.period * std::floor(at / axis.period);
    if (axis.is_mirrored) at = axis.period / 2 - std::abs(at - axis.period / 2);
    at += axis.start;
  }
  return std::clamp(at, axis.low, axis.high);
}

}  // namespace

AffineSource::AffineSource(const Affine& affine, ImageSize from, ImageSize to)
    : first_column(static_cast<float>(1 - to.width) / 2), first_row_((1 - to.height) / 2.0) {
  const auto& [a, b, c, d, e, f] = affine.matrix;
  const double middle_x = (from.width - 1) / 2.0, middle_y = (from.height - 1) / 2.0;
  const double across = Bounded(affine.divisor[0]), down = Bounded(affine.divisor[1]);
  is_projective = across != 0 || down != 0;
  step_x = static_cast<float>(Bounded(a) + middle_x * across);
  step_y = static_cast<float>(Bounded(d) + middle_y * across);
  step_divisor = static_cast<float>(across);
  down_x_ = Bounded(b) + middle_x * down;
  down_y_ = Bounded(e) + middle_y * down;
  down_divisor_ = down;
  middle_x_ = Bounded(c) + middle_x;
  middle_y_ = Bounded(f) + middle_y;
}

float AffineSource::StartX(int y) const {
  return static_cast<float>(down_x_ * (y + first_row_) + middle_x_);
}

float AffineSource::StartY(int y) const {
  return static_cast<float>(down_y_ * (y + first_row_) + middle_y_);
}

float AffineSource::StartDivisor(int y) const {
  return static_cast<float>(down_divisor_ * (y + first_row_) + 1);
}

AffineAxis::AffineAxis(Padding padding, int size) : low(0), high(static_cast<float>(size - 1)) {
  const auto length = static_cast<float>(size);
  switch (padding) {
    case Padding::kConstant:
      low = -1;
      high = length;
      break;
    case Padding::kEdge:
      break;
    case Padding::kReflect:
      period = 2 * high;
      is_mirrored = true;
      break;
    case Padding::kSymmetric:
      period = 2 * length;
      start = -0.5F;
      is_mirrored = true;
      break;
    case Padding::kWrap:
      period = high = length;
      break;
  }
}

void MapPlain(const Tile& from, const Affine& affine, const Tile& to) {
  const AffineSource source(affine, from.size, to.size);
  const AffineAxis across(affine.padding, from.size.width);
  const AffineAxis down(affine.padding, from.size.height);
  Displacement moved;
  std::vector<float> memory;
  if (affine.noise) {
    memory.resize(DisplacementBytes(*affine.noise, from.size) / sizeof(float));
    moved = MakeDisplacement(*affine.noise, from.size, reinterpret_cast<uint8_t*>(memory.data()));
  }
  for (int y = 0; y < to.size.height; ++y) {
    for (int x = 0; x < to.size.width; ++x) {
      const float column = static_cast<float>(x) + source.first_column;
      float at_x = source.step_x * column + source.StartX(y);
      float at_y = source.step_y * column + source.StartY(y);
      if (source.is_projective) {
        const float divisor = source.step_divisor * column + source.StartDivisor(y);
        at_x /= divisor == 0 ? AffineSource::kLeastDivisor : divisor;
        at_y /= divisor == 0 ? AffineSource::kLeastDivisor : divisor;
      }
      if (affine.noise) {
        const ptrdiff_t at = ptrdiff_t{y} * to.size.width + x;
        at_x += moved.x[at];
        at_y += moved.y[at];
      }
      at_x = Sampled(at_x, across);
      at_y = Sampled(at_y, down);
      for (size_t c = 0; c < from.channels; ++c) {
        const PaddedPlane plane{from, c, affine.fill[c], affine.padding};
        float value = 0;
        if (affine.interpolation == Interpolation::kNearest) {
          value = plane.At(Nearest(at_x), Nearest(at_y));
        } else if (affine.fade && affine.padding == Padding::kConstant) {
          value = Faded(from, c, affine.fill[c], at_x, at_y);
        } else {
          value = Bilinear(plane, at_x, at_y);
        }
        to.row(c, y)[x] = static_cast<uint8_t>(Nearest(value));
      }
    }
  }
}

}  // namespace stoker

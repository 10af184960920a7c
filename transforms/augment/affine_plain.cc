#include <algorithm>
#include <cmath>

#include "transforms/augment/affine.h"

namespace stoker {

namespace {

// Larger than any image; keeps the following computations finite.
double Bounded(double entry) { return std::clamp(entry, -1e9, 1e9); }

// A plane surrounded by the fill.
struct FilledPlane {
  const Tile& tile;
  size_t channel;
  uint8_t fill;
  float At(int x, int y) const {
    if (x < 0 || y < 0 || x >= tile.size.width || y >= tile.size.height) return fill;
    return tile.row(channel, y)[x];
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
  const float pixel = Bilinear(FilledPlane{tile, channel, 0}, x, y);
  return Bilinear(InsidePlane{tile}, x, y) * (pixel - fill) + fill;
}

// Rounds a value in [−1, 2^22] to the nearest integer, ties to even.
int Nearest(float value) { return static_cast<int>(value + 0x1.8p23F - 0x1.8p23F); }

}  // namespace

AffineSource::AffineSource(const std::array<double, 6>& matrix, ImageSize size)
    : step_x(static_cast<float>(Bounded(matrix[0]))),
      step_y(static_cast<float>(Bounded(matrix[3]))),
      first_column(static_cast<float>(1 - size.width) / 2),
      down_x_(Bounded(matrix[1])),
      down_y_(Bounded(matrix[4])),
      middle_x_(Bounded(matrix[2]) + (size.width - 1) / 2.0),
      middle_y_(Bounded(matrix[5]) + (size.height - 1) / 2.0),
      first_row_((1 - size.height) / 2.0) {}

float AffineSource::StartX(int y) const {
  return static_cast<float>(down_x_ * (y + first_row_) + middle_x_);
}

float AffineSource::StartY(int y) const {
  return static_cast<float>(down_y_ * (y + first_row_) + middle_y_);
}

void MappedPlain(const Tile& from, const Affine& affine, const Tile& to) {
  const AffineSource source(affine.matrix, from.size);
  const auto width = static_cast<float>(from.size.width);
  const auto height = static_cast<float>(from.size.height);
  for (int y = 0; y < to.size.height; ++y) {
    for (int x = 0; x < to.size.width; ++x) {
      const float column = static_cast<float>(x) + source.first_column;
      const float at_x = std::clamp(source.step_x * column + source.StartX(y), -1.0F, width);
      const float at_y = std::clamp(source.step_y * column + source.StartY(y), -1.0F, height);
      for (size_t c = 0; c < 3; ++c) {
        const FilledPlane plane{from, c, affine.fill[c]};
        float value = 0;
        if (affine.interpolation == Interpolation::kNearest) {
          value = plane.At(Nearest(at_x), Nearest(at_y));
        } else if (affine.fade) {
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

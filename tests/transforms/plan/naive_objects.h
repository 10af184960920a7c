// The plain twin of MovedObjects and of its calls in a draw: torchvision's functions of boxes, one
// after the other, on boxes in the format of their field.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <numbers>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "core/batch/box_format.h"
#include "core/numbers/random.h"
#include "transforms/plan/draw.h"
#include "transforms/spec/transform.h"
#include "transforms/spec/transform_table.h"

namespace stoker::testing {

using BoxNumbers = std::array<double, 4>;

// torchvision's convert_bounding_box_format.
inline BoxNumbers Converted(BoxNumbers b, BoxFormat from, BoxFormat to) {
  if (from == to) return b;
  if (from == BoxFormat::kXywh) b = {b[0], b[1], b[2] + b[0], b[3] + b[1]};
  if (from == BoxFormat::kCxcywh) {
    b[0] -= b[2] / 2, b[1] -= b[3] / 2;
    b[2] += b[0], b[3] += b[1];
  }
  if (to == BoxFormat::kXywh) b = {b[0], b[1], b[2] - b[0], b[3] - b[1]};
  if (to == BoxFormat::kCxcywh) {
    b[2] -= b[0], b[3] -= b[1];
    b[0] = (b[0] * 2 + b[2]) / 2, b[1] = (b[1] * 2 + b[3]) / 2;
  }
  return b;
}

struct NaivePoint {
  double x = 0, y = 0;
  float visibility = 0;
  double from_edge = 1e9;  // the least distance from an edge that has been compared with
};

struct NaiveObjects {
  BoxFormat format = BoxFormat::kXyxy;
  ImageSize canvas;
  std::vector<BoxNumbers> boxes{};
  std::vector<NaivePoint> points{};  // two for each box, which a mirror exchanges
  std::vector<size_t> kept{};

  void Clamp() {
    for (BoxNumbers& box : boxes) {
      BoxNumbers b = Converted(box, format, BoxFormat::kXyxy);
      for (size_t i = 0; i < 4; ++i) {
        const double most = i % 2 == 0 ? canvas.width : canvas.height;
        if (b[i] < 0) b[i] = 0;
        if (b[i] > most) b[i] = most;
      }
      box = Converted(b, BoxFormat::kXyxy, format);
    }
    for (NaivePoint& p : points) {
      const bool inside = p.x >= 0 && p.y >= 0 && p.x <= canvas.width && p.y <= canvas.height;
      if (!inside) p.visibility = 0;
      for (const double edge : {p.x, p.y, p.x - canvas.width, p.y - canvas.height}) {
        p.from_edge = std::min(p.from_edge, std::abs(edge));
      }
    }
  }
  void Crop(const Rect& part) {
    for (BoxNumbers& b : boxes) {
      b[0] -= part.x, b[1] -= part.y;
      if (format == BoxFormat::kXyxy) b[2] -= part.x, b[3] -= part.y;
    }
    for (NaivePoint& p : points) p.x -= part.x, p.y -= part.y;
    canvas = part.size();
    Clamp();
  }
  void Pad(const Margins& by) {
    Crop(
        {-by.left, -by.top, canvas.width + by.left + by.right, canvas.height + by.top + by.bottom});
  }
  void Resize(ImageSize to) {
    const double x = 1.0 * to.width / canvas.width, y = 1.0 * to.height / canvas.height;
    for (BoxNumbers& b : boxes) b = {b[0] * x, b[1] * y, b[2] * x, b[3] * y};
    for (NaivePoint& p : points) {
      p.x = p.x * to.width / canvas.width;
      p.y = p.y * to.height / canvas.height;
    }
    canvas = to;
  }
  void Flip(bool horizontal) {
    const size_t at = horizontal ? 0 : 1;
    const double most = horizontal ? canvas.width : canvas.height;
    for (BoxNumbers& b : boxes) {
      if (format == BoxFormat::kXyxy) {
        b[at] = most - b[at], b[at + 2] = most - b[at + 2];
        std::swap(b[at], b[at + 2]);
      } else {
        b[at] = most - b[at] - (format == BoxFormat::kXywh ? b[at + 2] : 0);
      }
    }
    for (NaivePoint& p : points) (horizontal ? p.x : p.y) = most - (horizontal ? p.x : p.y);
    for (size_t i = 0; i + 1 < points.size(); i += 2) std::swap(points[i], points[i + 1]);
  }
  // torchvision's affine_bounding_boxes, with _get_inverse_affine_matrix(inverted=False). Angles
  // are in degrees.
  void Affine(double cx, double cy, double angle, double tx, double ty, double scale,
              double shear_x, double shear_y) {
    constexpr double kRadians = std::numbers::pi / 180;
    const double rot = angle * kRadians, sx = shear_x * kRadians, sy = shear_y * kRadians;
    const double a = scale * std::cos(rot - sy) / std::cos(sy);
    const double b = scale * (-std::cos(rot - sy) * std::tan(sx) / std::cos(sy) - std::sin(rot));
    const double c = scale * std::sin(rot - sy) / std::cos(sy);
    const double d = scale * (-std::sin(rot - sy) * std::tan(sx) / std::cos(sy) + std::cos(rot));
    const double e = cx + tx - a * cx - b * cy, f = cy + ty - c * cx - d * cy;
    Project({a, b, e, c, d, f, 0, 0, 1});
  }
  // torchvision's affine_bounding_boxes and perspective_bounding_boxes, of a matrix by rows.
  void Project(const std::array<double, 9>& m) {
    const auto at = [&m](double x, double y) {
      const double w = m[6] * x + m[7] * y + m[8];
      return std::pair{(m[0] * x + m[1] * y + m[2]) / w, (m[3] * x + m[4] * y + m[5]) / w};
    };
    for (BoxNumbers& box : boxes) {
      const BoxNumbers q = Converted(box, format, BoxFormat::kXyxy);
      BoxNumbers moved{INFINITY, INFINITY, -INFINITY, -INFINITY};
      for (const auto& [x, y] : {std::pair{q[0], q[1]}, std::pair{q[2], q[1]},
                                 std::pair{q[2], q[3]}, std::pair{q[0], q[3]}}) {
        const auto [u, v] = at(x, y);
        moved = {std::min(moved[0], u), std::min(moved[1], v), std::max(moved[2], u),
                 std::max(moved[3], v)};
      }
      const bool whole = !std::isnan(q[0] + q[1] + q[2] + q[3]);
      if (!whole) moved.fill(NAN);
      box = Converted(moved, BoxFormat::kXyxy, format);
    }
    for (NaivePoint& p : points) {
      std::tie(p.x, p.y) = at(p.x, p.y);
    }
    Clamp();
  }
  // Removes the objects for which the test of their box, xyxy, is false.
  template <typename Test>
  void KeepIf(const Test& test) {
    size_t n = 0;
    for (size_t i = 0; i < boxes.size(); ++i) {
      if (!test(Converted(boxes[i], format, BoxFormat::kXyxy))) continue;
      boxes[n] = boxes[i], kept[n] = kept[i];
      points[2 * n] = points[2 * i], points[2 * n + 1] = points[2 * i + 1];
      ++n;
    }
    boxes.resize(n), kept.resize(n), points.resize(2 * n);
  }
};

// Draws a transform as torchvision does, from the library's random numbers, and applies it.
class NaiveMoves {
 public:
  NaiveMoves(const DrawKey& key, NaiveObjects& objects) : key_(key), o_(objects) {}

  void Apply(const Transform& transform) {
    const uint8_t kind = DrawsOf(transform);
    RandomStream random(key_, of_kind_[kind]++, kind);
    std::visit([&](const auto& t) { (*this)(t, random); }, transform);
  }

 private:
  void operator()(const Pad& t, RandomStream&) { o_.Pad(t.padding); }
  void operator()(const CenterCrop& t, RandomStream&) {
    o_.Crop(CenterBox({t.width, t.height}, o_.canvas));
  }
  void operator()(const RandomCrop& t, RandomStream& random) {
    Margins p = t.padding;
    const int lacks_x = t.width - o_.canvas.width - p.left - p.right;
    const int lacks_y = t.height - o_.canvas.height - p.top - p.bottom;
    if (lacks_x > 0) p.left += lacks_x, p.right += lacks_x;
    if (lacks_y > 0) p.top += lacks_y, p.bottom += lacks_y;
    if (p != Margins{}) o_.Pad(p);
    if (o_.canvas == ImageSize{t.width, t.height}) return;
    const int y =
        static_cast<int>(random.Below(static_cast<uint64_t>(o_.canvas.height - t.height + 1)));
    const int x =
        static_cast<int>(random.Below(static_cast<uint64_t>(o_.canvas.width - t.width + 1)));
    o_.Crop({x, y, t.width, t.height});
  }
  // DETR's RandomSizeCrop, and RF-DETR's RandomSizedCrop, of which a side is at most the image's.
  void operator()(const RandomSizeCrop& t, RandomStream& random) {
    const auto between = [&](int least, int most) {
      return least + static_cast<int>(random.Below(static_cast<uint64_t>(most - least + 1)));
    };
    const auto side = [&](int most) {
      most = std::min(most, t.max_size);
      return between(std::min(t.min_size, most), most);
    };
    const int w = side(t.square ? std::min(o_.canvas.width, o_.canvas.height) : o_.canvas.width);
    const int h = t.square ? w : side(o_.canvas.height);
    const int top = between(0, o_.canvas.height - h), left = between(0, o_.canvas.width - w);
    o_.Crop({left, top, w, h});
  }
  void operator()(const Resize& t, RandomStream&) { o_.Resize(SizeAfter(t, o_.canvas)); }
  void operator()(const RandomShortestSize& t, RandomStream& random) {
    const double min_size = t.min_size[random.Below(t.min_size.size())];
    double r = min_size / std::min(o_.canvas.height, o_.canvas.width);
    if (t.max_size != 0)
      r = std::min(r, 1.0 * t.max_size / std::max(o_.canvas.height, o_.canvas.width));
    o_.Resize({std::max(1, static_cast<int>(o_.canvas.width * r)),
               std::max(1, static_cast<int>(o_.canvas.height * r))});
  }
  // torchvision's random numbers are tensors of float32, and so is what it computes from them.
  void operator()(const ScaleJitter& t, RandomStream& random) {
    const auto scale = static_cast<float>(random.Uniform(t.scale_range[0], t.scale_range[1]));
    const float r = static_cast<float>(std::min(1.0 * t.height / o_.canvas.height,
                                                1.0 * t.width / o_.canvas.width)) *
                    scale;
    o_.Resize({std::max(1, static_cast<int>(static_cast<float>(o_.canvas.width) * r)),
               std::max(1, static_cast<int>(static_cast<float>(o_.canvas.height) * r))});
  }
  void operator()(const RandomResizedCrop& t, RandomStream& random) {
    o_.Crop(DrawResizedBox(t, o_.canvas, random));
    o_.Resize({t.width, t.height});
  }
  void operator()(const RandomHorizontalFlip& t, RandomStream& random) {
    if (random.Uniform() < t.p) o_.Flip(true);
  }
  void operator()(const RandomVerticalFlip& t, RandomStream& random) {
    if (random.Uniform() < t.p) o_.Flip(false);
  }
  void operator()(const RandomRotation& t, RandomStream& random) {
    const double degrees = random.Uniform(t.degrees[0], t.degrees[1]);
    o_.Affine(t.center_x.value_or(o_.canvas.width * 0.5),
              t.center_y.value_or(o_.canvas.height * 0.5), -degrees, 0, 0, 1, 0, 0);
  }
  void operator()(const RandomAffine& t, RandomStream& random) {
    const double degrees = random.Uniform(t.degrees[0], t.degrees[1]);
    const double x = t.translate_x * o_.canvas.width, y = t.translate_y * o_.canvas.height;
    const double tx = std::nearbyint(random.Uniform(-x, x)),
                 ty = std::nearbyint(random.Uniform(-y, y));
    const double scale = random.Uniform(t.scale[0], t.scale[1]);
    const double sx = random.Uniform(t.shear_x[0], t.shear_x[1]);
    const double sy = random.Uniform(t.shear_y[0], t.shear_y[1]);
    o_.Affine(t.center_x.value_or(o_.canvas.width * 0.5),
              t.center_y.value_or(o_.canvas.height * 0.5), degrees, tx, ty, scale, sx, sy);
  }
  // The map of torchvision's _get_perspective_coeffs, from the corners of the image to those that
  // are drawn: the solution of eight equations, by elimination.
  void operator()(const RandomPerspective& t, RandomStream& random) {
    if (random.Uniform() >= t.p) return;
    const int w = o_.canvas.width, h = o_.canvas.height;
    const auto below = [&](int side) {
      const int bound = static_cast<int>(t.distortion_scale * (side / 2)) + 1;
      return static_cast<int>(random.Below(static_cast<uint64_t>(bound)));
    };
    std::array<std::array<double, 9>, 8> rows{};
    for (size_t i = 0; i < 4; ++i) {
      const bool right = i == 1 || i == 2, lower = i > 1;
      const int from_side = below(w), from_edge = below(h);
      const double x = right ? w - 1 : 0, y = lower ? h - 1 : 0;
      const double u = right ? w - 1 - from_side : from_side;
      const double v = lower ? h - 1 - from_edge : from_edge;
      rows[2 * i] = {x, y, 1, 0, 0, 0, -u * x, -u * y, u};
      rows[2 * i + 1] = {0, 0, 0, x, y, 1, -v * x, -v * y, v};
    }
    for (size_t i = 0; i < 8; ++i) {
      const auto larger = [i](const auto& a, const auto& b) {
        return std::abs(a[i]) < std::abs(b[i]);
      };
      std::swap(rows[i],
                *std::max_element(rows.begin() + static_cast<ptrdiff_t>(i), rows.end(), larger));
      for (size_t j = 0; j < 8; ++j) {
        if (j == i) continue;
        const double part = rows[j][i] / rows[i][i];
        for (size_t k = 0; k < 9; ++k) rows[j][k] -= part * rows[i][k];
      }
    }
    std::array<double, 9> map{};
    for (size_t i = 0; i < 8; ++i) map[i] = rows[i][8] / rows[i][i];
    map[8] = 1;
    o_.Project(map);
  }
  void operator()(const RandomZoomOut& t, RandomStream& random) {
    if (random.Uniform() >= t.p) return;
    const double r = t.side_range[0] + random.Uniform() * (t.side_range[1] - t.side_range[0]);
    const ImageSize canvas{static_cast<int>(o_.canvas.width * r),
                           static_cast<int>(o_.canvas.height * r)};
    const int left = static_cast<int>((canvas.width - o_.canvas.width) * random.Uniform());
    const int top = static_cast<int>((canvas.height - o_.canvas.height) * random.Uniform());
    o_.Pad({left, top, canvas.width - (left + o_.canvas.width),
            canvas.height - (top + o_.canvas.height)});
  }
  // torchvision's RandomIoUCrop, with at most 20 rounds, and which drops boxes at once.
  void operator()(const RandomIoUCrop& t, RandomStream& random) {
    const std::vector<double> options = t.sampler_options.empty()
                                            ? std::vector<double>{0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0}
                                            : t.sampler_options;
    for (int round = 0; round < 20 && !o_.boxes.empty(); ++round) {
      const double min_overlap = options[random.Below(options.size())];
      if (min_overlap >= 1) return;
      for (int trial = 0; trial < t.trials; ++trial) {
        const double r0 = t.min_scale + (t.max_scale - t.min_scale) * random.Uniform();
        const double r1 = t.min_scale + (t.max_scale - t.min_scale) * random.Uniform();
        const int w = static_cast<int>(o_.canvas.width * r0);
        const int h = static_cast<int>(o_.canvas.height * r1);
        if (w == 0 || h == 0) continue;
        const double aspect_ratio = 1.0 * w / h;
        if (!(t.min_aspect_ratio <= aspect_ratio && aspect_ratio <= t.max_aspect_ratio)) continue;
        const int left = static_cast<int>((o_.canvas.width - w) * random.Uniform());
        const int top = static_cast<int>((o_.canvas.height - h) * random.Uniform());
        const auto is_within = [&](const BoxNumbers& b) {
          const double cx = 0.5 * (b[0] + b[2]), cy = 0.5 * (b[1] + b[3]);
          return left < cx && cx < left + w && top < cy && cy < top + h;
        };
        double most = -1;
        for (const BoxNumbers& box : o_.boxes) {
          const BoxNumbers b = Converted(box, o_.format, BoxFormat::kXyxy);
          if (!is_within(b)) continue;
          const double x1 = std::max<double>(b[0], left), x2 = std::min<double>(b[2], left + w);
          const double y1 = std::max<double>(b[1], top), y2 = std::min<double>(b[3], top + h);
          const double inter = std::max(x2 - x1, 0.0) * std::max(y2 - y1, 0.0);
          most = std::max(most, inter / ((b[2] - b[0]) * (b[3] - b[1]) + 1.0 * w * h - inter));
        }
        if (most < min_overlap) continue;
        o_.KeepIf(is_within);
        o_.Crop({left, top, w, h});
        return;
      }
    }
  }
  void operator()(const ClampBoundingBoxes&, RandomStream&) { o_.Clamp(); }
  // torchvision's _get_sanitize_bounding_boxes_mask, with a tolerance.
  void operator()(const SanitizeBoundingBoxes& t, RandomStream&) {
    const double right = o_.canvas.width + 1e-3, bottom = o_.canvas.height + 1e-3;
    o_.KeepIf([&](const BoxNumbers& b) {
      const double width = b[2] - b[0], height = b[3] - b[1];
      bool valid = width >= t.min_size && height >= t.min_size && width * height >= t.min_area;
      for (const double number : b) valid = valid && number >= -1e-3;
      return valid && b[0] <= right && b[2] <= right && b[1] <= bottom && b[3] <= bottom;
    });
  }
  void operator()(const ConvertBoundingBoxFormat& t, RandomStream&) {
    for (BoxNumbers& box : o_.boxes) box = Converted(box, o_.format, t.format);
    o_.format = t.format;
  }
  // Other transforms move nothing.
  template <typename T>
  void operator()(const T&, RandomStream&) {}

  const DrawKey key_;
  NaiveObjects& o_;
  std::map<uint8_t, uint32_t> of_kind_;
};

}  // namespace stoker::testing

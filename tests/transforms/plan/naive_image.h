// Naive: executes transforms on real images, one after the other, for comparison with a plan's
// geometry.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/batch/image.h"
#include "tests/testing/random.h"
#include "transforms/spec/fill.h"

namespace stoker::testing {

// An image of three planes, with torchvision's operations pixel by pixel.
struct Naive {
  ImageSize size;
  std::vector<uint8_t> pixels;

  // The source of a pixel outside; none means the fill.
  static int Source(int at, int length, Padding padding) {
    if (at >= 0 && at < length) return at;
    if (padding == Padding::kConstant) return -1;
    if (padding == Padding::kEdge) return at < 0 ? 0 : length - 1;
    const int twice = padding == Padding::kReflect ? 1 : 0;
    while (at < 0 || at >= length) {  // off one end, then off the other
      if (length == 1) return 0;
      at = at < 0 ? -at - 1 + twice : 2 * length - 1 - at - twice;
    }
    return at;
  }

  void Cut(const Rect& part, Padding padding, const Fill& fill) {
    Naive made{part.size(), {}};
    for (int c = 0; c < 3; ++c) {
      for (int y = 0; y < part.height; ++y) {
        for (int x = 0; x < part.width; ++x) {
          const int from_x = Source(part.x + x, size.width, padding);
          const int from_y = Source(part.y + y, size.height, padding);
          made.pixels.push_back(
              from_x < 0 || from_y < 0
                  ? fill[static_cast<size_t>(c)]
                  : pixels[static_cast<size_t>((c * size.height + from_y) * size.width + from_x)]);
        }
      }
    }
    *this = std::move(made);
  }

  void Flip(bool columns) {
    for (int row = 0; row < 3 * size.height; ++row) {
      const auto begin = pixels.begin() + ptrdiff_t{row} * size.width;
      if (columns) std::reverse(begin, begin + size.width);
    }
    if (columns) return;
    for (int c = 0; c < 3; ++c) {
      for (int y = 0; y < size.height / 2; ++y) {
        const auto row = [&](int r) {
          return pixels.begin() + ptrdiff_t{c * size.height + r} * size.width;
        };
        std::swap_ranges(row(y), row(y) + size.width, row(size.height - 1 - y));
      }
    }
  }
};

inline Naive NoisyImage(Random& random, ImageSize size) {
  Naive image{size, {}};
  for (int i = 0; i < 3 * size.width * size.height; ++i) {
    image.pixels.push_back(static_cast<uint8_t>(random.Between(0, 255)));
  }
  return image;
}

inline ImageView ViewOf(const Naive& image) {
  ImageView view{PixelLayout::kPlanar, image.size, {}, {}};
  for (size_t c = 0; c < 3; ++c) {
    view.plane[c] = image.pixels.data() + c * image.pixels.size() / 3;
    view.stride[c] = image.size.width;
  }
  return view;
}

}  // namespace stoker::testing

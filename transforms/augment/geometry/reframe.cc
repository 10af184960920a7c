#include "transforms/augment/geometry/reframe.h"

#include <algorithm>
#include <cstring>

#include "transforms/augment/geometry/border.h"

namespace stoker {

namespace {

// Fills columns [first, last) of the window, all of them left of the image, or all right of it.
void PadRow(const uint8_t* source, int width, const Reframe& reframe, uint8_t fill, int first,
            int last, uint8_t* to) {
  const auto count = static_cast<size_t>(last - first);
  if (reframe.padding == Padding::kConstant) {
    std::memset(to + first, fill, count);
  } else if (reframe.padding == Padding::kEdge) {
    std::memset(to + first, source[first == 0 && reframe.window.x < 0 ? 0 : width - 1], count);
  } else {
    for (int x = first; x < last; ++x) {
      to[x] = source[Padded(int64_t{reframe.window.x} + x, width, reframe.padding)];
    }
  }
}

}  // namespace

void ReframeTo(const Tile& from, const Reframe& reframe, const Tile& to) {
  const Rect& window = reframe.window;
  // The window's columns inside the image.
  const auto inside = [&](int64_t at) {
    return static_cast<int>(std::clamp<int64_t>(at - window.x, 0, window.width));
  };
  const int first = inside(0), last = inside(from.size.width);
  for (size_t c = 0; c < from.channels; ++c) {
    for (int y = 0; y < window.height; ++y) {
      uint8_t* const out = to.row(c, y);
      const int64_t row = Padded(int64_t{window.y} + y, from.size.height, reframe.padding);
      if (row < 0) {
        std::memset(out, reframe.fill[c], static_cast<size_t>(window.width));
        continue;
      }
      const uint8_t* source = from.row(c, static_cast<int>(row));
      PadRow(source, from.size.width, reframe, reframe.fill[c], 0, first, out);
      if (first < last) {
        std::memcpy(out + first, source + (window.x + first), static_cast<size_t>(last - first));
      }
      PadRow(source, from.size.width, reframe, reframe.fill[c], last, window.width, out);
    }
  }
}

}  // namespace stoker

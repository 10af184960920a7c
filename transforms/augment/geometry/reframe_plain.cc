#include "transforms/augment/geometry/border.h"
#include "transforms/augment/geometry/reframe.h"

namespace stoker {

void ReframePlain(const Tile& from, const Reframe& reframe, const Tile& to) {
  const Rect& window = reframe.window;
  for (size_t c = 0; c < from.channels; ++c) {
    for (int y = 0; y < window.height; ++y) {
      for (int x = 0; x < window.width; ++x) {
        const int64_t row = Padded(int64_t{window.y} + y, from.size.height, reframe.padding);
        const int64_t column = Padded(int64_t{window.x} + x, from.size.width, reframe.padding);
        to.row(c, y)[x] =
            row < 0 || column < 0 ? reframe.fill[c] : from.row(c, static_cast<int>(row))[column];
      }
    }
  }
}

}  // namespace stoker

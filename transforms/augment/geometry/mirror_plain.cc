#include "transforms/augment/geometry/mirror.h"

namespace stoker {

void MirrorPlain(const Tile& from, const Mirror& mirror, const Tile& to) {
  const auto [width, height] = from.size;
  for (size_t c = 0; c < from.channels; ++c) {
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) {
        const int source_x = mirror.columns ? width - 1 - x : x;
        to.row(c, y)[x] = from.row(c, mirror.rows ? height - 1 - y : y)[source_x];
      }
    }
  }
}

}  // namespace stoker

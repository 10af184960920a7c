#include <cstring>

#include "transforms/augment/colour/blend.h"
#include "transforms/augment/colour/sharpen.h"

namespace stoker {

namespace {

int Smooth(const uint8_t* centre, ptrdiff_t stride) {
  int sum = 4 * centre[0];
  for (ptrdiff_t y = -1; y <= 1; ++y) {
    for (ptrdiff_t x = -1; x <= 1; ++x) sum += centre[y * stride + x];
  }
  return (sum + 6) / 13;
}

}  // namespace

void SharpenPlain(const Tile& from, double factor, const Tile& to) {
  const float rest = BlendWeights(factor).rest;
  std::memcpy(to.pixels, from.pixels, 3 * from.plane_bytes());
  for (size_t c = 0; c < 3; ++c) {
    for (int y = 1; y < from.size.height - 1; ++y) {
      for (int x = 1; x < from.size.width - 1; ++x) {
        const uint8_t* centre = from.row(c, y) + x;
        const auto change = static_cast<float>(Smooth(centre, from.size.width) - *centre);
        to.row(c, y)[x] = CutToByte(Fused(rest, change, static_cast<float>(*centre)));
      }
    }
  }
}

}  // namespace stoker

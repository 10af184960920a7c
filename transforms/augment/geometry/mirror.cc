// Compiled once for each instruction set.
#include "transforms/augment/geometry/mirror.h"

#include <algorithm>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transforms/augment/geometry/mirror.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {
namespace {
#if HWY_TARGET == HWY_SCALAR

void MirrorAll(const Tile& from, const Mirror& mirror, const Tile& to) {
  MirrorPlain(from, mirror, to);
}

#else
namespace hn = hwy::HWY_NAMESPACE;

using Piece = hn::FixedTag<uint8_t, 16>;
constexpr int kPiece = 16;

// Works in pieces from the row's end.
void ReverseRow(const uint8_t* from, int count, uint8_t* to) {
  alignas(16) static constexpr uint8_t kBackwards[kPiece] = {15, 14, 13, 12, 11, 10, 9, 8,
                                                             7,  6,  5,  4,  3,  2,  1, 0};
  const Piece d;
  const auto backwards = hn::Load(d, kBackwards);
  int x = 0;
  for (; x + kPiece <= count; x += kPiece) {
    const auto values = hn::LoadU(d, from + count - x - kPiece);
    hn::StoreU(hn::TableLookupBytes(values, backwards), d, to + x);
  }
  std::reverse_copy(from, from + count - x, to + x);
}

void MirrorAll(const Tile& from, const Mirror& mirror, const Tile& to) {
  const auto [width, height] = from.size;
  for (size_t c = 0; c < from.channels; ++c) {
    for (int y = 0; y < height; ++y) {
      const uint8_t* source = from.row(c, mirror.rows ? height - 1 - y : y);
      if (mirror.columns) {
        ReverseRow(source, width, to.row(c, y));
      } else {
        std::memcpy(to.row(c, y), source, static_cast<size_t>(width));
      }
    }
  }
}

#endif
}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(MirrorAll);

void MirrorTo(const Tile& from, const Mirror& mirror, const Tile& to) {
  HWY_DYNAMIC_DISPATCH(MirrorAll)(from, mirror, to);
}

}  // namespace stoker
#endif

// Compiled once for each instruction set.
#include "transforms/augment/emit_tile.h"

#include <algorithm>

#include "transforms/resize/emit.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "transforms/augment/emit_tile.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace stoker {
namespace HWY_NAMESPACE {
namespace {
#if HWY_TARGET == HWY_SCALAR

void Interleave(const Tile& tile, size_t first, size_t count, uint8_t* to) {
  for (size_t i = 0; i < count; ++i) {
    for (size_t c = 0; c < 3; ++c) to[3 * i + c] = tile.plane(c)[first + i];
  }
}

#else
namespace hn = hwy::HWY_NAMESPACE;

using Bytes = hn::CappedTag<uint8_t, 64>;
constexpr size_t kLanes = hn::MaxLanes(Bytes());
static_assert(kLanes <= kTileOverread && 3 * kLanes <= 256);

// Reads and writes up to kLanes pixels past the end.
void Interleave(const Tile& tile, size_t first, size_t count, uint8_t* to) {
  const Bytes d;
  for (size_t i = 0; i < count; i += kLanes) {
    const auto red = hn::LoadU(d, tile.plane(0) + first + i);
    const auto green = hn::LoadU(d, tile.plane(1) + first + i);
    const auto blue = hn::LoadU(d, tile.plane(2) + first + i);
    hn::StoreInterleaved3(red, green, blue, d, to + 3 * i);
  }
}

#endif
}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace stoker
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace stoker {

HWY_EXPORT(Interleave);

namespace {

// This many pixels of a pixel row are interleaved at once: they stay in the innermost cache, and
// each piece is aligned for streaming if the pixel row is.
constexpr size_t kPixels = 1024;

void EmitInterleaved(const Tile& tile, const RowFormat& format, size_t first, size_t count,
                     uint8_t* out) {
  alignas(64) uint8_t pixels[3 * kPixels + 256];
  for (size_t i = 0; i < count; i += kPixels) {
    const size_t some = std::min(kPixels, count - i);
    HWY_DYNAMIC_DISPATCH(Interleave)(tile, first + i, some, pixels);
    EmitRows({pixels, 0, 0, 3, 1, static_cast<int>(some)}, format,
             out + static_cast<ptrdiff_t>(i) * format.along);
  }
}

}  // namespace

static_assert(kEmitOverread <= kTileOverread);

void EmitTile(const Tile& tile, const RowFormat& format, uint8_t* row) {
  const auto [width, height] = tile.size;
  if (format.layout == Layout::kNchw) {
    return EmitRows(
        {tile.pixels, width, static_cast<ptrdiff_t>(tile.plane_bytes()), 3, height, width}, format,
        row);
  }
  if (format.down == width * format.along) {  // pixel rows are contiguous: treat them as one
    return EmitInterleaved(tile, format, 0, tile.plane_bytes(), row);
  }
  const auto pixels = static_cast<size_t>(width);
  for (int y = 0; y < height; ++y) {
    EmitInterleaved(tile, format, static_cast<size_t>(y) * pixels, pixels, row + y * format.down);
  }
}

void EmitColumns(const Tile& tile, int y, int begin, int end, const RowFormat& format,
                 uint8_t* row) {
  uint8_t* const to = row + y * format.down + begin * format.along;
  if (format.layout == Layout::kNchw) {
    const auto plane = static_cast<ptrdiff_t>(tile.plane_bytes());
    return EmitRows({tile.row(0, y) + begin, 0, plane, 3, 1, end - begin}, format, to);
  }
  const size_t first = static_cast<size_t>(tile.row(0, y) - tile.pixels + begin);
  EmitInterleaved(tile, format, first, static_cast<size_t>(end - begin), to);
}

}  // namespace stoker
#endif

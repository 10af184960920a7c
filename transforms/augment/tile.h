// Tile: a small image in a core's cache that steps are applied to.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/batch/image.h"

namespace stoker {

// Consecutive planes of rows without gaps: kPlanar in NCHW. kTileOverread bytes after the last
// plane may be read and written. Owns nothing.
struct Tile {
  uint8_t* pixels = nullptr;
  ImageSize size;
  size_t channels = 3;  // or 1: a mask, of which only Affine (kNearest), Reframe and Mirror exist
  size_t plane_bytes() const {
    return static_cast<size_t>(size.width) * static_cast<size_t>(size.height);
  }
  uint8_t* plane(size_t c) const { return pixels + c * plane_bytes(); }
  uint8_t* row(size_t c, int y) const {
    return plane(c) + static_cast<ptrdiff_t>(y) * static_cast<ptrdiff_t>(size.width);
  }
};
inline constexpr size_t kTileOverread = 64;

}  // namespace stoker

// Unpacks and packs the tiles of a packed PNG (format.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "transforms/png/packed/format.h"

namespace stoker::packed_png {

// Writes the pixels of the first `rows` rows of a tile, as the PNG's rows have them: 64 of each
// row, also if the image has fewer. False if the tile ends too early; the pixels are then
// unspecified. `tile` may contain anything, and may even change meanwhile; kBufferPadding bytes
// after it must be readable.
bool UnpackTile(std::span<const uint8_t> tile, const Planes& planes, int rows, uint8_t* to,
                ptrdiff_t stride);
bool UnpackTilePlain(std::span<const uint8_t> tile, const Planes& planes, int rows, uint8_t* to,
                     ptrdiff_t stride);  // the reference

// Packs a tile of `columns` columns, at most 64, and returns its end, at most MostTileBytes after
// `to`.
uint8_t* PackTile(const uint8_t* from, ptrdiff_t stride, int columns, int rows,
                  const Planes& planes, uint8_t* to);
constexpr size_t MostTileBytes(size_t planes, size_t rows) {
  return planes * (1 + rows * kMostRunBytes);
}

}  // namespace stoker::packed_png

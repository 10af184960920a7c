#include "transforms/augment/emit_tile.h"

namespace stoker {

void EmitTilePlain(const Tile& tile, const RowFormat& format, uint8_t* row) {
  for (int y = 0; y < tile.size.height; ++y) {
    for (int x = 0; x < tile.size.width; ++x) {
      const uint8_t rgb[3] = {tile.row(0, y)[x], tile.row(1, y)[x], tile.row(2, y)[x]};
      StorePixel(format, rgb, row + y * format.down + x * format.along);
    }
  }
}

}  // namespace stoker

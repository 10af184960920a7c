#include "transforms/augment/emit_tile.h"

namespace stoker {

void EmitTile(const Tile& tile, const RowFormat& format, uint8_t* row) {
  EmitTilePlain(tile, format, row);
}

}  // namespace stoker

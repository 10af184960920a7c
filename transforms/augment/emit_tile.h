// A finished tile to the row of a batch.
#pragma once

#include <cstdint>

#include "transforms/augment/tile.h"
#include "transforms/resize/row_format.h"

namespace stoker {

// `row`: where the first pixel's first channel goes. Where the format is to be streamed,
// FlushEmitted (emit.h) must follow before another thread may look.
void EmitTile(const Tile& tile, const RowFormat& format, uint8_t* row);
void EmitTilePlain(const Tile& tile, const RowFormat& format, uint8_t* row);  // the plain twin

}  // namespace stoker

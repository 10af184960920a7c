// Writes a finished tile to a batch row.
#pragma once

#include <cstdint>

#include "transforms/augment/tile.h"
#include "transforms/resize/row_format.h"

namespace stoker {

// `row`: the batch row, that is the destination of the first pixel's first channel. If the format
// is streamed, FlushEmitted (emit.h) must be called before another thread reads it.
void EmitTile(const Tile& tile, const RowFormat& format, uint8_t* row);
// Does the same for columns [begin, end) of row y alone. `row` is still that of the whole tile.
void EmitColumns(const Tile& tile, int y, int begin, int end, const RowFormat& format,
                 uint8_t* row);
void EmitTilePlain(const Tile& tile, const RowFormat& format, uint8_t* row);  // the reference

}  // namespace stoker

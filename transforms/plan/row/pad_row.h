// The pixel part of PadTo: writes the pixels of a batch row to the right of its image and below it.
#pragma once

#include <cstdint>

#include "core/batch/image.h"
#include "transforms/resize/row_format.h"
#include "transforms/spec/fill.h"

namespace stoker {

// Writes every pixel of a row, or of a part of one, that is not in `image`, once. `whole`: its
// size; `row`: its first pixel. See below for streams.
void FillAround(const Rect& image, const Fill& fill, const RowFormat& format, ImageSize whole,
                uint8_t* row);

// `image`: the size of the image in the top left corner of the row, at most `whole`, which is the
// size of the row. Writes every other pixel once. If the format is streamed, FlushEmitted (emit.h)
// must be called before another thread reads the row.
void PadRow(ImageSize image, const Fill& fill, const RowFormat& format, ImageSize whole,
            uint8_t* row);

}  // namespace stoker

// For decoders that must decode the whole region before they can deliver its first row.
#pragma once

#include "core/image.h"
#include "core/result.h"
#include "transforms/decode/row_sink.h"

namespace stoker {

// Copies `pixels`, the pixels of `region` of the stored image, into `sink`.
Status PushRegion(const ImageView& pixels, const Rect& region, RowSink& sink);

}  // namespace stoker

// For decoders that have the whole region before its first row can go.
#pragma once

#include "core/image.h"
#include "core/result.h"
#include "transforms/decode/row_sink.h"

namespace stoker {

// Copies `pixels`, which are those of `region` of the stored image, into `sink`.
Status PushRegion(const ImageView& pixels, const Rect& region, RowSink& sink);

}  // namespace stoker

// For images that are decoded already, by the caller or by a decoder that must decode the whole
// region before it can deliver its first row.
#pragma once

#include "core/batch/image.h"
#include "core/result/result.h"
#include "transforms/decode/row_sink.h"

namespace stoker {

// InvalidArgument for a side that is not 1 to kMaxSidePixels.
Status CheckSides(ImageSize size);

// The view of a region of a decoded image.
ImageView PartOf(ImageView image, const Rect& region);

// Copies `pixels` into `sink`, which has begun and expects these rows next.
void PushRows(const ImageView& pixels, RowSink& sink);

// Begins, and copies `pixels`, the pixels of `region` of the stored image, into `sink`.
Status PushRegion(const ImageView& pixels, const Rect& region, RowSink& sink);

}  // namespace stoker

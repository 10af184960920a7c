// Reduction: decoding a JPEG at a half, a quarter or an eighth of its size, as libjpeg's scale_num
// does, by an inverse DCT that has fewer samples.
#pragma once

#include <cstdint>

#include "core/batch/image.h"

namespace stoker {

struct ImageInfo;

// The size at which JPEGs are decoded.
enum class DecodeSize : uint8_t {
  kFull,
  kScaled,  // reduced as far as the result of resizing allows: see ReductionOf
};

const char* NameOf(DecodeSize size);  // "full", "scaled"

// The factor 1, 2, 4 or 8 by which both sides of an image are divided, rounded up. The pixel at x
// of the reduced image represents the pixels [factor × x, factor × (x + 1)) of the stored one.
using Reduction = int;

ImageSize Reduced(ImageSize stored, Reduction reduction);

// Returns the pixels of the reduced image that `stored` covers, each edge rounded to the nearest
// one. `stored` may reach outside the image, whose size is `image`; a region that reaches its right
// or lower edge also does in the reduced image, and its part beyond the edge is rounded separately.
Rect Reduced(const Rect& stored, ImageSize image, Reduction reduction);

// The largest reduction with which an image can be decoded: 1 for other formats than JPEG and
// packed JPEG; at most 4 if chroma is halved in one direction only (4:2:2, 4:4:0, …), and less for
// very narrow images of that kind, because libjpeg-turbo upsamples their chroma by another rule.
Reduction MaxReduction(const ImageInfo& info);

}  // namespace stoker

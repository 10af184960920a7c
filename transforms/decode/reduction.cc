#include "transforms/decode/reduction.h"

#include <algorithm>

#include "core/numbers/divide_up.h"
#include "transforms/decode/image_info.h"

namespace stoker {

namespace {

// Rounds to the nearest; halves upwards.
int DivideRounded(int a, int b) {
  const int twice = 2 * a + b, unit = 2 * b;
  return twice >= 0 ? twice / unit : -DivideUp(-twice, unit);
}

int Edge(int stored, int side, Reduction reduction) {
  if (stored < side) return DivideRounded(stored, reduction);
  return DivideUp(side, reduction) + DivideRounded(stored - side, reduction);
}

}  // namespace

const char* NameOf(DecodeSize size) { return size == DecodeSize::kFull ? "full" : "scaled"; }

ImageSize Reduced(ImageSize stored, Reduction reduction) {
  return {DivideUp(stored.width, reduction), DivideUp(stored.height, reduction)};
}

Rect Reduced(const Rect& stored, ImageSize image, Reduction reduction) {
  const int left = Edge(stored.x, image.width, reduction);
  const int top = Edge(stored.y, image.height, reduction);
  return {left, top, Edge(stored.x + stored.width, image.width, reduction) - left,
          Edge(stored.y + stored.height, image.height, reduction) - top};
}

Reduction MaxReduction(const ImageInfo& info) {
  if (info.format != ImageFormat::kJpeg && info.format != ImageFormat::kPackedJpeg) return 1;
  // libjpeg-turbo decodes 4:2:0 chroma at the size of reduced luma: it is not upsampled. Chroma of
  // one sample a block is upsampled without its neighbours, and so are rows of two samples.
  if (info.chroma_columns == info.chroma_rows) return 8;
  constexpr int kFewest = 3;
  Reduction reduction = 4;
  const auto chroma_columns = [&](Reduction by) {
    return DivideUp(info.size.width, by * info.chroma_columns);
  };
  while (reduction > 1 && chroma_columns(reduction) < kFewest) reduction /= 2;
  return reduction;
}

}  // namespace stoker

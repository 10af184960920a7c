#include "transforms/decode/push_region.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

namespace stoker {

Status CheckSides(ImageSize size) {
  if (size.width >= 1 && size.height >= 1 && std::max(size.width, size.height) <= kMaxSidePixels) {
    return {};
  }
  return Error{Code::kInvalidArgument,
               "an image of " + std::to_string(size.height) + " × " + std::to_string(size.width) +
                   " pixels; each side must be between 1 and " + std::to_string(kMaxSidePixels)};
}

ImageView PartOf(ImageView image, const Rect& region) {
  const ptrdiff_t column = ptrdiff_t{region.x} * BytesPerPixel(image.layout);
  for (size_t p = 0; p < static_cast<size_t>(PlanesOf(image.layout)); ++p) {
    image.plane[p] += region.y * image.stride[p] + column;
  }
  image.size = region.size();
  return image;
}

void PushRows(const ImageView& pixels, RowSink& sink) {
  const auto row = static_cast<size_t>(pixels.size.width * BytesPerPixel(pixels.layout));
  for (int done = 0; done < pixels.size.height;) {
    const MutableImageView room = sink.Reserve(pixels.size.height - done);
    for (size_t p = 0; p < static_cast<size_t>(PlanesOf(pixels.layout)); ++p) {
      for (int y = 0; y < room.size.height; ++y) {
        std::memcpy(room.plane[p] + y * room.stride[p],
                    pixels.plane[p] + (done + y) * pixels.stride[p], row);
      }
    }
    sink.Commit(room.size.height);
    done += room.size.height;
  }
}

Status PushRegion(const ImageView& pixels, const Rect& region, RowSink& sink) {
  if (Status begun = sink.Begin({pixels.layout, region}); !begun.ok()) return begun;
  PushRows(PartOf(pixels, {0, 0, region.width, region.height}), sink);
  return {};
}

}  // namespace stoker

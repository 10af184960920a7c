#include "transforms/decode/push_region.h"

#include <cstddef>
#include <cstring>

namespace stoker {

Status PushRegion(const ImageView& pixels, const Rect& region, RowSink& sink) {
  if (Status begun = sink.Begin({pixels.layout, region}); !begun.ok()) return begun;
  const auto row = static_cast<size_t>(region.width * BytesPerPixel(pixels.layout));
  for (int done = 0; done < region.height;) {
    const MutableImageView room = sink.Reserve(region.height - done);
    for (size_t p = 0; p < static_cast<size_t>(PlanesOf(pixels.layout)); ++p) {
      for (int y = 0; y < room.size.height; ++y) {
        std::memcpy(room.plane[p] + y * room.stride[p],
                    pixels.plane[p] + (done + y) * pixels.stride[p], row);
      }
    }
    sink.Commit(room.size.height);
    done += room.size.height;
  }
  return {};
}

}  // namespace stoker

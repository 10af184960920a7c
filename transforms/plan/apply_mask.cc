// Plan::Apply for the plan of a mask: moves its pixels, and leaves their values alone.
#include <cstddef>
#include <cstring>

#include "core/result/try.h"
#include "transforms/augment/tile.h"
#include "transforms/plan/keep_motion.h"
#include "transforms/plan/plan.h"
#include "transforms/plan/resampling.h"
#include "transforms/plan/workspace.h"

namespace stoker {

namespace {

size_t Bytes(int pixels) { return static_cast<size_t>(pixels); }

void CopyTile(const Tile& tile, ptrdiff_t stride, uint8_t* row) {
  for (int y = 0; y < tile.size.height; ++y) {
    std::memcpy(row + y * stride, tile.row(0, y), Bytes(tile.size.width));
  }
}

// Fills the pixels of the row outside its image.
void FillAround(ImageSize image, ImageSize whole, uint8_t fill, uint8_t* row) {
  for (int y = 0; y < whole.height; ++y, row += whole.width) {
    const int from = y < image.height ? image.width : 0;
    std::memset(row + from, fill, Bytes(whole.width - from));
  }
}

}  // namespace

// Returns whether there are pixels to decode.
Result<bool> Plan::OpenMask(const EncodedImage& image, ImageContext& context) const {
  ASSIGN_OR_RETURN(ImageInfo info, context.decoder.Open(image.bytes, PixelMeaning::kMask));
  const Orientation orientation =
      options_.exif_orientation ? info.orientation : Orientation::kNormal;
  context.viewed = Viewed(info.size, orientation);
  ViewContext& view = context.views[0];
  view.to = image.to;
  TRY(DrawRow(image.key, context.viewed, view));
  KeepMotion(view.drawn, *mask_fill_);
  const Geometry& geometry = view.drawn.geometry;
  NearestOutput output{static_cast<uint8_t*>(view.to.row), output_.width, *mask_fill_};
  if (!view.drawn.steps.empty()) {
    TRY(view.augmenter.Start(geometry.window.size(), 1));
    const Tile& tile = view.augmenter.tile();
    output.row = tile.pixels;
    output.stride = tile.size.width;
  }
  ASSIGN_OR_RETURN(Rect region,
                   context.mask_rows.Start(ResamplingOf(geometry, info.size, orientation), output));
  if (region.width == 0) return false;  // only padding
  context.decoder.Start(region, context.mask_rows);
  return true;
}

// Completes the row once the geometry's pixels are written.
Status Plan::EmitMask(ViewContext& context) const {
  const uint64_t start = NowNanoseconds();
  auto* const row = static_cast<uint8_t*>(context.to.row);
  if (pad_to_) FillAround(context.drawn.size, output_, *mask_fill_, row);
  if (!context.drawn.steps.empty()) {
    TRY(context.ApplySteps());
    CopyTile(context.augmenter.tile(), output_.width, row);
  }
  context.augment_ns += NowNanoseconds() - start;
  return {};
}

}  // namespace stoker

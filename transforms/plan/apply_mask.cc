// Plan::Apply for the plan of a mask: moves its pixels, and leaves their values alone.
#include <cstddef>
#include <cstring>
#include <optional>

#include "core/result/try.h"
#include "transforms/augment/tile.h"
#include "transforms/plan/keep_motion.h"
#include "transforms/plan/mosaic.h"
#include "transforms/plan/plan.h"
#include "transforms/plan/resampling.h"
#include "transforms/plan/workspace.h"

namespace stoker {

namespace {

size_t Bytes(int pixels) { return static_cast<size_t>(pixels); }

PixelMeaning MeaningOf(const Piece& mask) {
  return mask.kind == Piece::Kind::kMask16 ? PixelMeaning::kMask16 : PixelMeaning::kMask;
}

bool Has16Bits(const Piece& mask) { return mask.kind == Piece::Kind::kMask16; }

// Returns the fill by channel of a tile: the lower byte, and the upper one.
Fill FillOf(const Piece& mask) {
  return {static_cast<uint8_t>(mask.fill), static_cast<uint8_t>(mask.fill >> 8), 0};
}

// Returns the destination of a mask's pixels: its row, or the planes of a tile.
NearestOutput OutputOf(const Piece& mask, uint8_t* row, int width) {
  const int bytes = Has16Bits(mask) ? 2 : 1;
  return {row, ptrdiff_t{bytes} * width, mask.fill, bytes, bytes, /*upper=*/1};
}
NearestOutput OutputOf(const Piece& mask, const Tile& tile) {
  return {tile.pixels, tile.size.width,
          mask.fill,   Has16Bits(mask) ? 2 : 1,
          1,           static_cast<ptrdiff_t>(tile.plane_bytes())};
}

// Affine steps exist for tiles of one or three channels.
size_t ChannelsOf(const Piece& mask) { return Has16Bits(mask) ? 3 : 1; }

void ClearLastPlane(const Tile& tile) {
  if (tile.channels == 3) std::memset(tile.plane(2), 0, tile.plane_bytes());
}

void CopyTile(const Tile& tile, const std::optional<Placement>& placed, ptrdiff_t stride,
              uint8_t* row) {
  for (int y = 0; y < tile.size.height; ++y, row += stride) {
    const auto [begin, end] = placed ? ColumnsOf(*placed, y) : AxisSpan{0, tile.size.width};
    if (tile.channels == 1) {
      std::memcpy(row + begin, tile.row(0, y) + begin, Bytes(end - begin));
      continue;
    }
    const uint8_t *const lower = tile.row(0, y), *const upper = tile.row(1, y);
    for (int x = begin; x < end; ++x) {
      row[2 * x] = lower[x];
      row[2 * x + 1] = upper[x];
    }
  }
}

// Fills the pixels of the row, or of a part of it, outside its image.
void FillAround(const Rect& image, ImageSize whole, const Piece& mask, ptrdiff_t stride,
                uint8_t* row) {
  const auto fill = [&](int begin, int end) {
    if (!Has16Bits(mask)) std::memset(row + begin, mask.fill, Bytes(end - begin));
    for (int x = begin; Has16Bits(mask) && x < end; ++x) std::memcpy(row + 2 * x, &mask.fill, 2);
  };
  for (int y = 0; y < whole.height; ++y, row += stride) {
    const bool shows = y >= image.y && y < image.y + image.height;
    fill(0, shows ? image.x : whole.width);
    if (shows) fill(image.x + image.width, whole.width);
  }
}

// Returns the image in its part of a row, after all steps.
Rect ImageIn(const DrawnSample& drawn) {
  auto [part, image, fill, corner] = *drawn.placed;
  for (const DrawnStep& step : drawn.steps) {
    const auto* const mirror = std::get_if<Mirror>(&step.step);
    if (mirror == nullptr) continue;
    if (mirror->columns) image.x = part.width - image.x - image.width;
    if (mirror->rows) image.y = part.height - image.y - image.height;
  }
  return image;
}

}  // namespace

// Returns where the mask begins: in its row, or in its part of it.
uint8_t* Plan::MaskTo(const ViewContext& context) const {
  auto* const row = static_cast<uint8_t*>(context.to.row);
  if (!context.drawn.placed) return row;
  const Rect& part = context.drawn.placed->part;
  return row + ptrdiff_t{Has16Bits(*mask_) ? 2 : 1} * (ptrdiff_t{output_.width} * part.y + part.x);
}

// Returns whether there are pixels to decode.
Result<bool> Plan::OpenMask(const EncodedImage& image, ImageContext& context) const {
  ASSIGN_OR_RETURN(ImageInfo info, context.decoder.Open(image.bytes, MeaningOf(*mask_)));
  const StoredImage stored = Stored(info, context);
  ViewContext& view = context.views[0];
  view.to = image.to;
  TRY(DrawRow(image.key, context.viewed, view));
  if (view.drawn.placed && view.drawn.steps.empty()) {
    ShowPart(*view.drawn.placed, view.drawn.geometry);
  }
  if (view.drawn.placed) view.drawn.placed->image = ImageIn(view.drawn);
  KeepMotion(view.drawn, FillOf(*mask_));
  const Geometry& geometry = view.drawn.geometry;
  if (view.drawn.placed && IsEmpty(geometry.window)) return false;
  NearestOutput output = OutputOf(*mask_, MaskTo(view), RowSize(view.drawn.size).width);
  if (!view.drawn.steps.empty()) {
    TRY(view.augmenter.Start(geometry.window.size(), ChannelsOf(*mask_)));
    ClearLastPlane(view.augmenter.tile());
    output = OutputOf(*mask_, view.augmenter.tile());
  }
  const Resampling task = ResamplingOf(geometry, stored.size, stored.orientation);
  ASSIGN_OR_RETURN(Rect region, context.mask_rows.Start(task, output));
  if (region.width == 0) return false;  // only padding
  context.decoder.Start(region, context.mask_rows);
  return true;
}

// Completes the row once the geometry's pixels are written.
Status Plan::EmitMask(ViewContext& context) const {
  const uint64_t start = NowNanoseconds();
  uint8_t* const row = MaskTo(context);
  const ImageSize row_size = RowSize(context.drawn.size);
  const ptrdiff_t stride = OutputOf(*mask_, row, row_size.width).stride;
  if (!context.drawn.steps.empty() && !IsEmpty(context.drawn.geometry.window)) {
    TRY(context.ApplySteps());
    CopyTile(context.augmenter.tile(), context.drawn.placed, stride, row);
  }
  if (const auto& placed = context.drawn.placed; placed && !placed->corner) {
    FillAround(placed->image, placed->part.size(), *mask_, stride, row);
  } else if (pad_to_) {
    const ImageSize size = context.drawn.size;
    FillAround({0, 0, size.width, size.height}, row_size, *mask_, stride, row);
  }
  context.augment_ns += NowNanoseconds() - start;
  return {};
}

}  // namespace stoker

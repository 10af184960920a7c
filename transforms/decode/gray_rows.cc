#include "transforms/decode/gray_rows.h"

#include <utility>

#include "transforms/decode/image_info.h"

namespace stoker {

void ToGray(const uint8_t* rgb, size_t pixels, uint8_t* gray) {
  for (size_t i = 0; i < pixels; ++i, rgb += 3) {
    gray[i] = static_cast<uint8_t>(LumaOf(rgb[0], rgb[1], rgb[2]));
  }
}

GrayRows::GrayRows(MemoryBudget* budget)
    : unlimited_(budget != nullptr ? nullptr
                                   : std::make_unique<MemoryBudget>(MemoryBudget::kNoLimit)),
      row_(budget != nullptr ? *budget : *unlimited_) {}

RowSink& GrayRows::Before(RowSink& sink) {
  if (sink.wants() != PixelLayout::kGray) return sink;
  sink_ = &sink;
  return *this;
}

Status GrayRows::Begin(const DecodedRegion& region) {
  source_ = region;
  if (region.layout == PixelLayout::kGray) return sink_->Begin(region);
  const auto width = static_cast<size_t>(region.covered.width);
  const bool planar = region.layout == PixelLayout::kPlanar;
  const size_t plane = planar ? width + kBufferPadding : 3 * width + kBufferPadding;
  const Growth growths[] = {{row_, planar ? 3 * plane : plane}};
  if (Status begun = sink_->Begin({PixelLayout::kGray, region.covered}); !begun.ok()) {
    return AndMore(std::move(begun), MissingBytes(growths));
  }
  if (Status grown = GrowAll(growths); !grown.ok()) return grown;
  view_ = {region.layout, {region.covered.width, 1}, {}, {}};
  for (size_t p = 0; p < static_cast<size_t>(PlanesOf(region.layout)); ++p) {
    view_.plane[p] = row_.data() + p * plane;
  }
  return {};
}

MutableImageView GrayRows::Reserve(int rows) {
  return source_.layout == PixelLayout::kGray ? sink_->Reserve(rows) : view_;
}

void GrayRows::Commit(int rows) {
  if (source_.layout != PixelLayout::kGray) {
    uint8_t* const gray = sink_->Reserve(1).plane[0];
    const auto width = static_cast<size_t>(source_.covered.width);
    if (source_.layout == PixelLayout::kInterleaved) {
      ToGray(view_.plane[0], width, gray);
    } else {
      const auto& [red, green, blue] = view_.plane;
      for (size_t x = 0; x < width; ++x) {
        gray[x] = static_cast<uint8_t>(LumaOf(red[x], green[x], blue[x]));
      }
    }
  }
  sink_->Commit(rows);
}

}  // namespace stoker

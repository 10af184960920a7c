#include "transforms/array/array_sink.h"

#include <cstring>

#include "core/result/try.h"

namespace stoker {

namespace {

void ToRgb(const uint8_t* gray, size_t pixels, uint8_t* rgb) {
  for (size_t i = 0; i < pixels; ++i, rgb += 3) rgb[0] = rgb[1] = rgb[2] = gray[i];
}

}  // namespace

void ArraySink::Start(const Rect& region, bool gray, uint8_t* array) {
  region_ = region;
  gray_ = gray;
  array_ = array;
}

size_t ArraySink::RowBytes() const { return static_cast<size_t>(region_.width) * (gray_ ? 1 : 3); }

Status ArraySink::Begin(const DecodedRegion& region) {
  source_ = region;
  next_ = 0;
  return row_.Grow(static_cast<size_t>(region.covered.width * BytesPerPixel(region.layout)) +
                   kBufferPadding);
}

// A decoder may write past the end of a row. Rows that follow in the array are written later, and
// the last rows go through the scratch row.
bool ArraySink::WritesDirectly() const {
  const PixelLayout wanted = gray_ ? PixelLayout::kGray : PixelLayout::kInterleaved;
  if (source_.layout != wanted || source_.covered.width != region_.width) return false;
  const auto rows_behind = static_cast<size_t>(region_.height - next_ - 1);
  return rows_behind * RowBytes() >= kBufferPadding;
}

MutableImageView ArraySink::Reserve(int /*rows*/) {
  direct_ = WritesDirectly();
  MutableImageView view;
  view.layout = source_.layout;
  view.size = {source_.covered.width, 1};
  view.plane[0] = direct_ ? Row() : row_.data();
  return view;
}

void ArraySink::Commit(int /*rows*/) {
  const size_t pixels = static_cast<size_t>(region_.width);
  const auto left = static_cast<size_t>(region_.x - source_.covered.x);
  const bool gray = source_.layout == PixelLayout::kGray;
  const uint8_t* const from =
      row_.data() + left * static_cast<size_t>(BytesPerPixel(source_.layout));
  if (!direct_) {
    if (gray == gray_) {
      std::memcpy(Row(), from, RowBytes());
    } else {
      ToRgb(from, pixels, Row());
    }
  }
  ++next_;
}

}  // namespace stoker

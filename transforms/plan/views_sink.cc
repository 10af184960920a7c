#include "transforms/plan/views_sink.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "transforms/decode/image_info.h"
#include "transforms/decode/push_region.h"

namespace stoker {

namespace {

// Decoders write an MCU row at a time: 8 or 16 rows. Rows should stay in the first-level cache
// until all views have them.
constexpr int kFewRows = 16;

size_t StrideOf(const DecodedRegion& region) {
  constexpr size_t kAlign = 64;
  constexpr size_t kBehind = kBufferPadding > kStripOverread ? kBufferPadding : kStripOverread;
  const auto pixels = static_cast<size_t>(region.covered.width);
  const size_t bytes = pixels * static_cast<size_t>(BytesPerPixel(region.layout)) + kBehind;
  return (bytes + kAlign - 1) / kAlign * kAlign;
}

}  // namespace

Rect ViewsSink::region() const {
  if (views_.empty()) return {};
  Rect all = views_[0].region;
  for (const View& view : views_) {
    const Rect& region = view.region;
    const int right = std::max(all.x + all.width, region.x + region.width);
    const int bottom = std::max(all.y + all.height, region.y + region.height);
    all.x = std::min(all.x, region.x);
    all.y = std::min(all.y, region.y);
    all.width = right - all.x;
    all.height = bottom - all.y;
  }
  return all;
}

Status ViewsSink::Begin(const DecodedRegion& region) {
  source_ = region;
  done_ = 0;
  const size_t stride = StrideOf(region);
  stride_ = static_cast<ptrdiff_t>(stride);
  int below = 0;
  for (const View& view : views_) below = std::max(below, view.resampler->rows_below());
  const auto bytes_of = [&](int rows) {
    return RowOffset(region.layout) +
           stride * static_cast<size_t>(rows) * static_cast<size_t>(PlanesOf(region.layout));
  };
  const int height = region.covered.height;
  whole_ = bytes_of(height + below) <= most_;
  held_rows_ = whole_ ? height : std::min(kFewRows, height);
  const int rows = whole_ ? height + below : held_rows_;
  plane_ = stride * static_cast<size_t>(rows);
  Status status = rows_.Grow(bytes_of(rows));
  for (const View& view : views_) {
    Status begun = BeginView(view);
    if (begun.ok()) continue;
    const uint64_t more = status.ok() ? 0 : status.error().wanted_bytes;
    status = AndMore(std::move(begun), more);
  }
  return status;
}

Status ViewsSink::BeginView(const View& view) const {
  return whole_ ? view.resampler->BeginInPlace(source_.layout, stride_)
                : view.resampler->Begin({source_.layout, view.region});
}

// Returns these rows of rows_.
MutableImageView ViewsSink::At(int row, int rows) const {
  MutableImageView view;
  view.layout = source_.layout;
  view.size = {source_.covered.width, rows};
  for (size_t p = 0; p < static_cast<size_t>(PlanesOf(source_.layout)); ++p) {
    view.plane[p] = rows_.data() + RowOffset(source_.layout) + p * plane_ + row * stride_;
    view.stride[p] = stride_;
  }
  return view;
}

MutableImageView ViewsSink::Reserve(int rows) {
  const int row = whole_ ? done_ : 0;
  return At(row, std::min(rows, held_rows_ - row));
}

void ViewsSink::Commit(int rows) {
  if (!whole_) {
    for (const View& view : views_) Give(view, rows);
  }
  done_ += rows;
}

ImageView ViewsSink::Held() const {
  const MutableImageView rows = At(0, held_rows_);
  ImageView held{rows.layout, rows.size, {}, rows.stride};
  std::ranges::copy(rows.plane, held.plane.begin());
  return held;
}

// Copies the part that a view needs of the rows just written by the decoder.
void ViewsSink::Give(const View& view, int rows) const {
  const Rect& region = view.region;
  const int top = source_.covered.y + done_;
  const int begin = std::max(top, region.y);
  const int end = std::min(top + rows, region.y + region.height);
  if (begin >= end) return;
  const int column = region.x - source_.covered.x;
  PushRows(PartOf(Held(), {column, begin - top, region.width, end - begin}), *view.resampler);
}

void ViewsSink::Finish() {
  if (!whole_) return;
  for (const View& view : views_) {
    Rect part = view.region;
    part.x -= source_.covered.x;
    part.y -= source_.covered.y;
    view.resampler->Resample(PartOf(Held(), part).plane);
  }
}

}  // namespace stoker

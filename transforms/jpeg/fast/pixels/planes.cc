#include "transforms/jpeg/fast/pixels/planes.h"

#include <algorithm>
#include <cstring>

#include "transforms/jpeg/fast/entropy/entropy.h"
#include "transforms/jpeg/fast/pixels/pixels.h"

namespace stoker::jpeg {

namespace {

// Columns before and after each row that kernels may read.
constexpr size_t kMargin = 64;

size_t RoundUp(size_t n, size_t multiple) { return (n + multiple - 1) / multiple * multiple; }

}  // namespace

Planes::MemoryLayout Planes::LayOut(const CropGeometry& geometry) {
  const size_t components = geometry.gray ? 1 : 3;
  MemoryLayout layout;
  size_t bytes = 0;
  for (size_t c = 0; c < components; ++c) {
    const int columns = c == 0 ? geometry.mcu_width : geometry.chroma_side;
    const int rows = c == 0 ? geometry.mcu_height : geometry.chroma_side;
    const size_t width = RoundUp(static_cast<size_t>(geometry.mcus() * columns), kGroupRow);
    // An odd multiple of 64, so that the rows of a block do not all compete for the same cache
    // sets.
    const size_t stride = RoundUp(width + 2 * kMargin, 128) + 64;
    layout.stride[c] = stride;
    layout.first[c] = bytes + stride + kMargin;
    bytes += stride * (1 + static_cast<size_t>(rows));
    if (c == 0) continue;
    layout.upsampled[c] = bytes;
    bytes += RoundUp(static_cast<size_t>(geometry.mcus() * geometry.mcu_width) + 2 * kMargin, 64);
  }
  layout.bytes = bytes + kMargin;
  return layout;
}

void Planes::Start(const CropGeometry& geometry, PixelLayout rows, uint8_t* memory) {
  geometry_ = &geometry;
  layout_ = rows;
  const MemoryLayout layout = LayOut(geometry);
  for (size_t c = 0; c < plane_.size(); ++c) {
    plane_[c] = {memory + layout.first[c], static_cast<ptrdiff_t>(layout.stride[c])};
    upsampled_[c] = memory + layout.upsampled[c];
  }
}

void Planes::Deliver(int mcu_row, RowSink& sink) {
  const CropGeometry& g = *geometry_;
  if (g.wide) RepeatEdges();
  const bool waits = g.tall && mcu_row + 1 < g.mcu_rows;
  const int first = mcu_row * g.mcu_height;
  int y = std::max(g.region.y, first - (g.tall ? 1 : 0));
  const int end = std::min(g.region.y + g.region.height, first + g.mcu_height - (waits ? 1 : 0));
  while (y < end) {
    const MutableImageView view = sink.Reserve(end - y);
    const int rows = std::min(view.size.height, end - y);
    for (int row = 0; row < rows; ++row, ++y) WriteRow(mcu_row, y, view, row);
    sink.Commit(rows);
  }
  if (waits) KeepLastRow();
}

// At the edges of the image the outermost chroma samples count twice.
void Planes::RepeatEdges() {
  const CropGeometry& g = *geometry_;
  for (int component : {1, 2}) {
    for (int row = 0; row < g.chroma_side; ++row) {
      uint8_t* const samples = Row(component, row);
      if (g.left == 0) samples[-1] = samples[0];
      const int last = g.chroma_columns - 1 - g.chroma_side * g.left;
      if (g.right == g.mcus_across) samples[last + 1] = samples[last];
    }
  }
}

void Planes::KeepLastRow() {
  for (int component : {0, 1, 2}) {
    const int last = (component == 0 ? geometry_->mcu_height : geometry_->chroma_side) - 1;
    const ptrdiff_t before = -1, count = stride(component);
    std::memcpy(Row(component, -1) + before, Row(component, last) + before,
                static_cast<size_t>(count) - kMargin);
  }
}

// Row y of the image's chroma, upsampled to the width of luma: column 0 is that of MCU
// geometry.left, or for `wide` that of the region's first chroma sample.
const uint8_t* Planes::Chroma(int component, int mcu_row, int y) {
  const CropGeometry& g = *geometry_;
  const int skipped = g.chroma_side * g.left;
  const int begin = g.wide ? g.region.x / 2 - skipped : 0;
  const int end = g.wide ? (g.region.x + g.region.width - 1) / 2 + 1 - skipped
                         : g.region.x + g.region.width - g.left * g.mcu_width;
  uint8_t* const out = upsampled_[static_cast<size_t>(component)];
  const int first = g.chroma_side * mcu_row;
  if (!g.tall) {
    const uint8_t* const row = Row(component, y - first);
    if (!g.wide) return row;
    UpsampleColumns(row + begin, end - begin, out);
    return out;
  }
  const int own = y / 2, other = std::clamp(y % 2 == 0 ? own - 1 : own + 1, 0, g.chroma_height - 1);
  const uint8_t* const near = Row(component, own - first) + begin;
  const uint8_t* const far = Row(component, other - first) + begin;
  if (g.wide) {
    UpsampleBoth(near, far, end - begin, out);
  } else {
    UpsampleRows(near, far, y % 2 != 0, end - begin, out);
  }
  return out;
}

void Planes::WriteRow(int mcu_row, int y, const MutableImageView& view, int row) {
  const CropGeometry& g = *geometry_;
  const int left = g.region.x - g.left * g.mcu_width;
  const uint8_t* const luma = Row(0, y - mcu_row * g.mcu_height) + left;
  const auto to = [&](size_t plane) { return view.plane[plane] + row * view.stride[plane]; };
  if (layout_ == PixelLayout::kGray) {
    std::memcpy(to(0), luma, static_cast<size_t>(g.region.width));
    return;
  }
  const int skipped = g.wide ? g.region.x % 2 : left;
  const YccRow from{luma, Chroma(1, mcu_row, y) + skipped, Chroma(2, mcu_row, y) + skipped};
  if (layout_ == PixelLayout::kInterleaved) {
    ConvertToInterleaved(from, g.region.width, to(0));
  } else {
    ConvertToRgb(from, g.region.width, {to(0), to(1), to(2)});
  }
}

}  // namespace stoker::jpeg

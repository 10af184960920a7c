// DiscardRows: a sink that discards pixels.
#pragma once

#include <algorithm>
#include <cstddef>

#include "core/memory/buffer.h"
#include "core/memory/memory_budget.h"
#include "core/result/result.h"
#include "transforms/decode/row_sink.h"

namespace stoker {

// Decodes into the same few rows again and again.
class DiscardRows final : public RowSink {
 public:
  explicit DiscardRows(MemoryBudget& budget) : rows_(budget) {}

  Status Begin(const DecodedRegion& region) override {
    region_ = region;
    stride_ = static_cast<size_t>(region.covered.width) *
                  static_cast<size_t>(BytesPerPixel(region.layout)) +
              kBufferPadding;
    return rows_.Grow(stride_ * kRows * static_cast<size_t>(PlanesOf(region.layout)));
  }
  MutableImageView Reserve(int rows) override {
    MutableImageView view;
    view.layout = region_.layout;
    view.size = {region_.covered.width, std::min(rows, kRows)};
    for (size_t i = 0; i < static_cast<size_t>(PlanesOf(region_.layout)); ++i) {
      view.plane[i] = rows_.data() + i * kRows * stride_;
      view.stride[i] = static_cast<ptrdiff_t>(stride_);
    }
    return view;
  }
  void Commit(int) override {}

 private:
  static constexpr int kRows = 16;
  DecodedRegion region_;
  size_t stride_ = 0;
  GrowingBuffer rows_;
};

}  // namespace stoker

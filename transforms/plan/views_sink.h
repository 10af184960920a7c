// ViewsSink: the RowSink that hands a decoded region to the resamplers of several views of one
// image. The region is the smallest one that contains what each view needs, so an image is decoded
// once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/batch/image.h"
#include "core/memory/buffer.h"
#include "core/memory/memory_budget.h"
#include "core/result/result.h"
#include "transforms/decode/row_sink.h"
#include "transforms/resize/resampler.h"

namespace stoker {

// A region that takes at most `whole` bytes is kept, and the views are resampled from it one after
// the other once it is complete. If a region is larger, the sink keeps a few rows of it, and
// copies what each view needs to its resampler. Memory is charged to `budget`. Not thread-safe.
class ViewsSink final : public RowSink {
 public:
  static constexpr size_t kWhole = 2 << 20;

  explicit ViewsSink(MemoryBudget& budget, size_t whole = kWhole) : rows_(budget), most_(whole) {}

  // Starts a new image without views.
  void Clear() { views_.clear(); }

  // Adds a view whose resampler has been started for this region, which is not empty. It must stay
  // valid until the image is decoded.
  void Add(const Rect& region, Resampler& resampler) { views_.push_back({region, &resampler}); }

  // Returns the smallest region that contains those of all views; empty if there are none.
  Rect region() const;

  // All views want the same.
  PixelLayout wants() const override { return views_[0].resampler->wants(); }
  // RowSink. Begin reserves the memory of all views; its error asks for the bytes that all of them
  // lack together.
  Status Begin(const DecodedRegion& region) override;
  MutableImageView Reserve(int rows) override;
  void Commit(int rows) override;

  // Completes the views' output; call it once all rows are committed.
  void Finish();

 private:
  struct View {
    Rect region;
    Resampler* resampler;
  };

  Status BeginView(const View& view) const;
  MutableImageView At(int row, int rows) const;
  ImageView Held() const;  // all rows that rows_ has room for
  void Give(const View& view, int rows) const;

  std::vector<View> views_;
  DecodedRegion source_;
  GrowingBuffer rows_;
  size_t most_;  // bytes of a region that is kept
  ptrdiff_t stride_ = 0;
  int held_rows_ = 0;   // that rows_ has room for, without those below the region
  size_t plane_ = 0;    // bytes of one plane of rows_
  bool whole_ = false;  // the region is kept
  int done_ = 0;        // rows of the region that are committed
};

}  // namespace stoker

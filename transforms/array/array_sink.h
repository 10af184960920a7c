// ArraySink: the RowSink that writes a decoded region into an array of the caller.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/batch/image.h"
#include "core/memory/buffer.h"
#include "core/memory/memory_budget.h"
#include "core/result/result.h"
#include "transforms/decode/row_sink.h"

namespace stoker {

// Decoders write the array's rows directly if they have its layout; otherwise they write to a row
// of scratch memory, charged to the budget. Reused from image to image. Not thread-safe.
class ArraySink final : public RowSink {
 public:
  explicit ArraySink(MemoryBudget& budget) : row_(budget) {}

  // Prepares for `region` of the stored image. `array` receives height × width × 3 bytes, or × 1 if
  // `gray`; no other byte is written.
  void Start(const Rect& region, bool gray, uint8_t* array);

  PixelLayout wants() const override {
    return gray_ ? PixelLayout::kGray : PixelLayout::kInterleaved;
  }
  Status Begin(const DecodedRegion& region) override;
  MutableImageView Reserve(int rows) override;
  void Commit(int rows) override;

 private:
  size_t RowBytes() const;
  uint8_t* Row() const { return array_ + static_cast<size_t>(next_) * RowBytes(); }
  bool WritesDirectly() const;

  Rect region_;
  bool gray_ = false;
  uint8_t* array_ = nullptr;
  DecodedRegion source_;
  int next_ = 0;         // the row to be committed next
  bool direct_ = false;  // that row has been reserved in the array
  GrowingBuffer row_;    // a row of source_
};

}  // namespace stoker

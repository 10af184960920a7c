// GrayRows: the RowSink between a decoder of colours and a sink that wants only luma.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/memory/buffer.h"
#include "core/memory/memory_budget.h"
#include "core/result/result.h"
#include "transforms/decode/row_sink.h"

namespace stoker {

// The luma of ITU-R BT.601 as Pillow's convert("L") and libjpeg compute it, of samples of at most
// 16 bits.
constexpr uint32_t LumaOf(uint32_t red, uint32_t green, uint32_t blue) {
  return (19595 * red + 38470 * green + 7471 * blue + (1U << 15)) >> 16;
}

// Computes the luma of RGB pixels. `gray` may be `rgb`.
void ToGray(const uint8_t* rgb, size_t pixels, uint8_t* gray);

// Takes gray rows, which it hands on, and those of colours in any layout, a row at a time in
// scratch memory that is charged to the budget, if there is one. Reused from image to image. Not
// thread-safe.
class GrayRows final : public RowSink {
 public:
  explicit GrayRows(MemoryBudget* budget = nullptr);

  // Returns the sink for the next image: `sink`, or this if that wants only luma. It must stay
  // valid until the image is decoded.
  RowSink& Before(RowSink& sink);

  PixelLayout wants() const override { return PixelLayout::kInterleaved; }
  Status Begin(const DecodedRegion& region) override;
  MutableImageView Reserve(int rows) override;
  void Commit(int rows) override;

 private:
  std::unique_ptr<MemoryBudget> unlimited_;
  RowSink* sink_ = nullptr;
  DecodedRegion source_;
  GrowingBuffer row_;
  MutableImageView view_;  // of row_
};

}  // namespace stoker

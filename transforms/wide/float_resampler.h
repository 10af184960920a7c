// FloatResampler: resamples images that Resampler does not take: of any number of channels, and of
// 16 bits. It computes in float, blends rows and then columns, and rounds integers once, halves up;
// the filters are those of kernel_axis.h. It takes many times as long as Resampler, unless pixels
// are only moved.
#pragma once

#include <cstdint>
#include <span>

#include "core/batch/image.h"
#include "core/memory/buffer.h"
#include "core/memory/memory_budget.h"
#include "core/result/result.h"
#include "transforms/resize/axis_filter.h"
#include "transforms/resize/resampler.h"
#include "transforms/resize/row_format.h"

namespace stoker {

// Pixels of 16 bits a channel, interleaved, in rows without gaps.
struct WidePixels {
  const uint16_t* values = nullptr;
  ImageSize size;
  int channels = 3;
  int most = 65535;  // the value of white: this, or 255
  int alpha = 0;     // 0 means none; otherwise colours, before it, are blended in proportion to it
};

// The weights of AxisFilter, as floats. Grows within the budget. Not thread-safe.
class FloatAxis {
 public:
  explicit FloatAxis(MemoryBudget& budget) : memory_(budget) {}

  // ResourceExhausted if the budget has no room.
  Status Compute(const AxisSpec& spec);

  // As of AxisFilter.
  int begin() const { return span_.begin; }
  int end() const { return span_.end; }
  // The weights of an output for samples from begin() + start(output) on; may be empty.
  int start(int output) const { return outputs_[output].start; }
  std::span<const float> weights(int output) const {
    return {weights_ + output * most_, static_cast<size_t>(outputs_[output].count)};
  }

 private:
  struct Output {
    int32_t start = 0, count = 0;
  };

  GrowingBuffer memory_;
  AxisSpan span_;
  Output* outputs_ = nullptr;
  float* weights_ = nullptr;
  ptrdiff_t most_ = 0;  // weights of an output
};

// Reused from image to image. Memory is charged to `budget`. Not thread-safe.
class FloatResampler {
 public:
  explicit FloatResampler(MemoryBudget& budget) : rows_(budget), columns_(budget), line_(budget) {}

  // Returns the region of the image that Write needs; it is empty if the output has no pixels of
  // the image. ResourceExhausted if the budget has no room.
  Result<Rect> Start(const Resampling& task, int channels);

  // Writes the whole output; pixels outside the image are zeros of it. `pixels`: those of the
  // region. kU8 and kU16: values as they are, which `most` must allow. Others: as RowFormat says,
  // of a value of 16 bits divided by 257, which is not rounded; scaled to 0…1 if output.scale is
  // null. output.channels is not used.
  void Write(const WidePixels& pixels, const PixelOutput& output);

 private:
  void CopyRow(const WidePixels& pixels, int row, uint16_t* values) const;
  void BlendRows(const WidePixels& pixels, int row, float* line) const;
  void BlendColumns(const WidePixels& pixels, const float* line, float* values) const;

  Resampling task_;
  Rect visible_, region_;
  bool blends_ = false;  // otherwise each pixel is one of the image
  FloatAxis rows_, columns_;
  GrowingBuffer line_;  // blended rows of the region, and then finished pixels
};

}  // namespace stoker

// NearestRows: the RowSink that turns a decoded region of one channel into one row, by kNearest.
//
// It copies each pixel from its place and changes no value, so there are neither weights nor a
// window of decoded rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/batch/image.h"
#include "core/memory/buffer.h"
#include "core/memory/memory_budget.h"
#include "core/result/result.h"
#include "transforms/decode/row_sink.h"
#include "transforms/resize/resampler.h"

namespace stoker {

// The destination of one image in viewing orientation.
struct NearestOutput {
  uint8_t* row = nullptr;
  ptrdiff_t stride = 0;  // bytes from a pixel row to the next
  uint16_t fill = 0;     // of pixels outside the image or the box
  int bytes = 1;         // of a pixel, 1 or 2; those of 2 are the lower one and the upper one
  // From a pixel to the next, and from a pixel's lower byte to its upper one.
  ptrdiff_t pixel_stride = 1;
  ptrdiff_t upper = 0;
};

// Reused from image to image: nothing is allocated after the largest image. Memory is charged to
// `budget`. Not thread-safe.
class NearestRows final : public RowSink {
 public:
  explicit NearestRows(MemoryBudget& budget) : sources_(budget), rows_(budget) {}

  // Bytes for a box that is resized to `resized`, in addition to those of short rows.
  static uint64_t BytesFor(ImageSize resized);

  // Resets busy_ns() to 0.
  void Reset() { busy_ns_ = 0; }

  // Prepares for one image and fills the output if a part of it has no pixels. Returns the region
  // of the image to decode, empty if the output has no pixels at all. The task's interpolation is
  // ignored. ResourceExhausted if the budget has no room.
  Result<Rect> Start(const Resampling& task, const NearestOutput& output);

  // Where the output's pixels come from, after Start with this output: pixel (x + i, y + j), or
  // (x + i, y - j) if `upwards`, is pixel (columns[i], rows[j]) of the region. Rows do not
  // decrease; columns do not decrease, or do not increase. Valid until the next Start.
  // Precondition: the region is not empty, pixels have one byte, and the image is not transposed.
  struct Places {
    std::span<const int32_t> columns, rows;
    int x = 0, y = 0;
    bool upwards = false;
  };
  Places PlacesIn(const NearestOutput& output) const;

  // RowSink: `region` must be kGray, or kGray16 for pixels of 2 bytes, and contain the region that
  // Start returned, with the same pixel rows. The output is complete once all rows are committed.
  PixelLayout wants() const override { return PixelLayout::kInterleaved; }
  Status Begin(const DecodedRegion& region) override;
  MutableImageView Reserve(int rows) override;
  void Commit(int rows) override;

  // Nanoseconds spent in Start and later calls since Reset.
  uint64_t busy_ns() const { return busy_ns_; }

 private:
  // One direction of the stored image: output pixels [first, first + count) of the window come from
  // the image's pixels source[0…count), counted from `begin`; they do not decrease.
  struct Axis {
    int first = 0;
    int count = 0;
    int begin = 0;  // in the image
    int end = 0;    // after the last one
    int32_t* source = nullptr;
  };

  static Axis AxisOf(const AxisSpec& spec, int window_begin, int32_t* source);
  void PlanOutput(const Resampling& task, const NearestOutput& output);
  void WriteLine(const uint8_t* pixels, uint8_t* to) const;
  void WriteLine16(const uint8_t* pixels, uint8_t* to) const;

  GrowingBuffer sources_;  // of both axes
  GrowingBuffer rows_;     // decoded rows, not yet used
  Axis across_, down_;
  Rect region_;
  uint8_t* out_ = nullptr;  // destination of the first pixel
  ptrdiff_t next_pixel_ = 1, next_line_ = 0;
  int bytes_ = 1;        // of a pixel
  ptrdiff_t upper_ = 0;  // NearestOutput::upper
  bool dense_ = false;   // a line is a part of a decoded row
  int held_rows_ = 1;    // that rows_ has room for
  ptrdiff_t stride_ = 0;
  int width_ = 0;   // of rows_, in pixels
  int column_ = 0;  // of rows_, where the region begins
  int done_ = 0;    // rows of the region
  int line_ = 0;    // of down_, the next one to write
  uint64_t busy_ns_ = 0;
};

}  // namespace stoker

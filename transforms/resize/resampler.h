// Resampler: the RowSink that turns a decoded region into one batch row.
//
// It keeps only the window of decoded pixel rows that the next strip of output needs, and computes
// the strip as soon as the last of them has arrived.
//
// All filters but kPillow's bilinear one and nearest resample in steps: each axis is rounded and
// clamped separately, as in Pillow and ATen, so the order of the axes matters. If columns come
// first, the resampler keeps a window of horizontally finished rows instead of decoded ones.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/batch/image.h"
#include "core/memory/buffer.h"
#include "core/memory/memory_budget.h"
#include "core/result/result.h"
#include "transforms/decode/orientation.h"
#include "transforms/decode/row_sink.h"
#include "transforms/resize/axis_filter.h"
#include "transforms/resize/row_format.h"
#include "transforms/resize/strip/strip.h"

namespace stoker {

// The resampling of one image, in its stored orientation: `box` of the image is scaled to
// `resized`, and `window` of that is turned into the output.
struct Resampling {
  ImageSize image;    // as stored
  Rect box;           // part of the image; may reach outside it: zero pixels
  ImageSize resized;  // of the box
  Rect window;        // part of the resized box; may reach outside it: zero pixels
  bool antialias = true;
  Turn turn;  // of the window, into the output
  Interpolation interpolation = Interpolation::kBilinear;
  ResampledAs resampler = ResampledAs::kPillow;
  bool reversed_columns = false;  // the image as viewed begins at the right
  bool reversed_rows = false;     // … at the bottom
};

// Returns whether resampling in steps blends the stored rows first. As viewed, ATen blends columns
// first; so does Pillow (from 13 on), unless the height shrinks by more than twice as many pixels
// as the width.
bool BlendsRowsFirst(const Resampling& task);

// Returns the rows of the image that the region to decode has (Resampler::Start): empty if it has
// none.
AxisSpan RowsOf(const Resampling& task);

// The part of the resized box that the window shows, and how each axis of it is resampled. The
// specs are set if that part is not empty.
struct ResamplingAxes {
  explicit ResamplingAxes(const Resampling& task);

  Rect visible;
  AxisSpec rows, columns;
};

// Reused from image to image: nothing is allocated after the largest image. Memory is charged to
// `budget`. Not thread-safe.
class Resampler final : public RowSink {
 public:
  explicit Resampler(MemoryBudget& budget);

  // Resets busy_ns() to 0.
  void Reset() { busy_ns_ = 0; }

  // Prepares for one image and writes the output's zero pixels. Returns the region of the image to
  // decode; it is empty if the output has no other pixels. ResourceExhausted if the budget has no
  // room for the filter.
  Result<Rect> Start(const Resampling& task, const PixelOutput& output);

  PixelLayout wants() const override {
    return output_.gray ? PixelLayout::kGray : PixelLayout::kPlanar;
  }
  // RowSink: `covered` must contain the region that Start returned, with the same pixel rows.
  Status Begin(const DecodedRegion& region) override;
  MutableImageView Reserve(int rows) override;
  void Commit(int rows) override;

  // Instead of the RowSink's calls: BeginInPlace reserves memory as Begin does, and Resample then
  // resamples the region that Start returned from where its pixels are. kStripOverread bytes after
  // each row and rows_below() rows below the last one are read, too; their content does not matter.
  Status BeginInPlace(PixelLayout layout, ptrdiff_t stride);
  void Resample(const std::array<const uint8_t*, 3>& planes);
  int rows_below() const { return 2 * rows_.taps().pairs; }

  // Whether every pixel row has been committed, and the output is complete.
  bool complete() const { return next_row_ == rows_.taps().count; }

  // Nanoseconds spent in Start and later calls since Reset.
  uint64_t busy_ns() const { return busy_ns_; }

 private:
  Status PlanWindow();
  size_t RowsOfWindow() const;
  Status PlanStrips(size_t window_bytes);
  Status PlanSteps();
  Status PlanBlending(size_t window_bytes);
  uint8_t* WindowPlane(size_t plane) const;
  void SkipRows(int rows);
  Status PlanOutput();
  int StripEnd(int first_row) const;
  int RowsFor(int row) const;
  int RowsNeeded(int first_row) const;
  int RowsWanted() const;
  void SetSource();
  void ResampleStrips();
  void ResampleNext();
  void BlendDown();
  void ResampleColumns();
  void ResampleRows();
  void EmitLeaving();
  void DropRows();
  uint8_t* Pixel(int x, int y) const;
  ptrdiff_t PlaneOf(int pixels) const;
  void WriteTurned() const;

  Resampling task_;
  PixelOutput output_;
  Rect region_;
  AxisFilter rows_, columns_;
  Rect visible_;  // the part of the window that has pixels

  // The window of decoded pixel rows: [top_, top_ + held_) of the region.
  GrowingBuffer window_;
  std::array<const uint8_t*, 3> in_place_{};  // the window's planes in memory of Resample's caller
  DecodedRegion source_;
  ptrdiff_t stride_ = 0;
  size_t plane_bytes_ = 0;
  int strip_rows_ = kStripRows;
  int top_ = 0;
  int held_ = 0;
  int next_row_ = 0;  // first pixel row of the output that is not yet computed

  // How the axes are resampled: together, or in steps, one after the other.
  enum class Order : uint8_t { kTogether, kColumnsFirst, kRowsFirst };
  Order order_ = Order::kTogether;
  // For kColumnsFirst, finished rows [top_ - between_rows_, top_) of the region, and room for a
  // strip; for kRowsFirst, the vertically blended rows of a strip, in the layout of the window.
  GrowingBuffer between_;
  int between_rows_ = 0;

  GrowingBuffer turned_;               // Strip::turned
  GrowingBuffer along_;                // Strip::along
  GrowingBuffer finished_;             // Strip::finished, and Strip::leaving
  uint8_t* other_finished_ = nullptr;  // the half that Strip::finished does not use
  GrowingBuffer upright_;              // the visible window, u8, if it must be transposed
  Strip strip_;
  uint8_t* out_ = nullptr;  // destination of the output's pixel row 0
  RowFormat format_;        // of the output
  RowFormat strips_;        // of the strips' destination: the output, or upright_
  uint64_t busy_ns_ = 0;
};

}  // namespace stoker

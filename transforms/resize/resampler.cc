#include "transforms/resize/resampler.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/result/try.h"
#include "transforms/resize/stopwatch.h"
#include "transforms/resize/strip/blend_rows.h"

namespace stoker {

namespace {

// The source rows of a strip should stay in the second-level cache between decoding and resampling.
constexpr int64_t kWindowBytes = 256 << 10;

// Output values of this size are emitted while the next strip is blended: writing them takes longer
// than fetching the finished pixels from the second-level cache.
constexpr size_t kLeavingBytes = 4;

Rect Intersect(const Rect& rect, ImageSize size) {
  const int x = std::max(rect.x, 0), y = std::max(rect.y, 0);
  const auto right = std::min<int64_t>(int64_t{rect.x} + rect.width, size.width);
  const auto bottom = std::min<int64_t>(int64_t{rect.y} + rect.height, size.height);
  return {x, y, static_cast<int>(std::max<int64_t>(0, right - x)),
          static_cast<int>(std::max<int64_t>(0, bottom - y))};
}

// Vertical weights that take a strip's rows as they are.
struct UnblendedRows {
  constexpr UnblendedRows() {
    for (int r = 0; r < kStripRows; ++r) {
      starts[r] = r;
      weights[2 * r] = 1 << kShift;
    }
  }
  constexpr AxisTaps taps() const { return {starts, weights, kStripRows, 1, kShift}; }

  static constexpr int kShift = 14;
  int32_t starts[kStripRows] = {};
  int16_t weights[2 * kStripRows] = {};
};
constexpr UnblendedRows kUnblended;

size_t RoundUp(size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

AxisSpan RowsOf(const Resampling& task) {
  const ResamplingAxes axes(task);
  if (axes.visible.width == 0 || axes.visible.height == 0) return {};
  const AxisSpan used = SamplesOf(axes.rows);
  return {task.box.y + used.begin, task.box.y + used.end};
}

bool BlendsRowsFirst(const Resampling& task) {
  if (task.resampler == ResampledAs::kTorchvision) return task.turn.transpose;
  int height = task.box.height - task.resized.height, width = task.box.width - task.resized.width;
  if (task.turn.transpose) std::swap(height, width);
  return (height > 2 * std::max(0, width)) != task.turn.transpose;
}

ResamplingAxes::ResamplingAxes(const Resampling& task)
    : visible(Intersect(task.window, task.resized)) {
  if (visible.width == 0 || visible.height == 0) return;
  const Rect& box = task.box;
  const AxisSpec filter{.antialias = task.antialias,
                        .interpolation = task.interpolation,
                        .resampler = task.resampler};
  rows = columns = filter;
  rows.in = box.height;
  rows.out = task.resized.height;
  rows.first_out = visible.y;
  rows.count = visible.height;
  rows.clip_begin = -box.y;
  rows.clip_end = task.image.height - box.y;
  rows.reversed = task.reversed_rows;
  columns.in = box.width;
  columns.out = task.resized.width;
  columns.first_out = visible.x;
  columns.count = visible.width;
  columns.clip_begin = -box.x;
  columns.clip_end = task.image.width - box.x;
  columns.reversed = task.reversed_columns;
}

Resampler::Resampler(MemoryBudget& budget)
    : rows_(budget),
      columns_(budget),
      window_(budget),
      between_(budget),
      turned_(budget),
      along_(budget),
      finished_(budget),
      upright_(budget) {}

Result<Rect> Resampler::Start(const Resampling& task, const PixelOutput& output) {
  const Stopwatch stopwatch(busy_ns_);
  task_ = task;
  output_ = output;
  region_ = {};
  next_row_ = 0;
  const ResamplingAxes axes(task);
  visible_ = axes.visible;
  const Rect& box = task.box;
  if (visible_.width != 0 && visible_.height != 0) {
    TRY(rows_.Compute(axes.rows));
    TRY(columns_.Compute(axes.columns));
    region_ = {box.x + columns_.begin(), box.y + rows_.begin(), columns_.end() - columns_.begin(),
               rows_.end() - rows_.begin()};
  }
  if (region_.width == 0 || region_.height == 0) region_ = {};
  order_ = !InSteps(task.interpolation, task.resampler) ? Order::kTogether
           : BlendsRowsFirst(task)                      ? Order::kRowsFirst
                                                        : Order::kColumnsFirst;
  TRY(PlanOutput());
  return region_;
}

// Returns the distance from a channel to the next one in a line of finished pixels.
ptrdiff_t Resampler::PlaneOf(int pixels) const {
  return format_.layout == Layout::kNchw ? pixels : 0;
}

// Returns the destination of an output pixel, in viewing orientation.
uint8_t* Resampler::Pixel(int x, int y) const {
  return static_cast<uint8_t*>(output_.row) + y * format_.down + x * format_.along;
}

// Sets the destination of strips, and writes the pixels that no strip writes.
Status Resampler::PlanOutput() {
  const int width = task_.window.width, height = task_.window.height;
  const Turn& turn = task_.turn;
  const ImageSize size = turn.transpose ? ImageSize{height, width} : ImageSize{width, height};
  format_ = RowFormat(output_, size);
  const StripMargin room = MarginFor(visible_.width);
  const size_t each = RoundUp(room.before + room.behind);
  const size_t line = 3 * static_cast<size_t>(size.width) + kEmitOverread;
  TRY(finished_.Grow(std::max(2 * each, line)));
  if (region_.width == 0 || visible_.width < width || visible_.height < height) {
    std::memset(finished_.data(), 0, line);
    EmitRows({finished_.data(), 0, PlaneOf(size.width), 3, size.height, size.width}, format_,
             Pixel(0, 0));
  }
  strip_ = {};
  strip_.format = &strips_;
  strip_.finished = finished_.data() + room.before;
  other_finished_ = strip_.finished + each;
  if (region_.width == 0) return {};

  if (turn.transpose) {
    strips_ = RowFormat({}, visible_.size());
    const ptrdiff_t bytes = strips_.down * visible_.height;
    TRY(upright_.Grow(static_cast<size_t>(bytes)));
    out_ = upright_.data();
    return {};
  }
  strips_ = format_;
  strip_.mirror = turn.mirror_columns;
  int x = visible_.x - task_.window.x, y = visible_.y - task_.window.y;
  if (turn.mirror_columns) x = width - x - visible_.width;
  if (turn.mirror_rows) {
    y = height - 1 - y;
    strips_.down = -strips_.down;
  }
  out_ = Pixel(x, y);
  return {};
}

Status Resampler::Begin(const DecodedRegion& region) {
  const Stopwatch stopwatch(busy_ns_);
  source_ = region;
  in_place_ = {};
  top_ = held_ = next_row_ = between_rows_ = 0;
  strip_.leaving.rows = 0;
  return PlanWindow();
}

Status Resampler::BeginInPlace(PixelLayout layout, ptrdiff_t stride) {
  const Stopwatch stopwatch(busy_ns_);
  source_ = {layout, region_};
  stride_ = stride;
  strip_rows_ = kStripRows;
  top_ = held_ = next_row_ = between_rows_ = 0;
  strip_.leaving.rows = 0;
  return PlanStrips(0);
}

void Resampler::Resample(const std::array<const uint8_t*, 3>& planes) {
  const Stopwatch stopwatch(busy_ns_);
  in_place_ = planes;
  if (order_ != Order::kColumnsFirst) {
    held_ = region_.height;
    return ResampleStrips();
  }
  while (!complete()) {
    held_ = RowsWanted() - top_;
    ResampleColumns();
  }
}

int Resampler::StripEnd(int first_row) const {
  return std::min(first_row + strip_rows_, rows_.taps().count);
}

// Returns how many rows of the region must have arrived for this output row.
int Resampler::RowsFor(int row) const {
  const AxisTaps& taps = rows_.taps();
  return std::min(taps.starts[row] + 2 * taps.pairs, region_.height);
}

// Returns how many rows of the region must have arrived for the strip that starts at this output
// row.
int Resampler::RowsNeeded(int first_row) const { return RowsFor(StripEnd(first_row) - 1); }

// Returns how many rows of the region must have arrived before anything can be computed.
int Resampler::RowsWanted() const {
  return order_ == Order::kColumnsFirst ? std::min(top_ + kStripRows, region_.height)
                                        : RowsNeeded(next_row_);
}

// Returns row top_ of the window.
uint8_t* Resampler::WindowPlane(size_t plane) const {
  return window_.data() + RowOffset(source_.layout) + plane * plane_bytes_;
}

// Plans the strips, and allocates the source window for this layout.
Status Resampler::PlanWindow() {
  const size_t row_bytes = static_cast<size_t>(source_.covered.width) *
                           static_cast<size_t>(BytesPerPixel(source_.layout));
  const size_t planes = static_cast<size_t>(PlanesOf(source_.layout));
  const size_t stride = RoundUp(row_bytes + std::max<size_t>(kStripOverread, kBufferPadding));
  stride_ = static_cast<ptrdiff_t>(stride);

  // Takes fewer rows at a time if rows are long and far apart.
  const int64_t step =
      static_cast<int64_t>(stride * planes) * std::max(1, task_.box.height / task_.resized.height);
  strip_rows_ = static_cast<int>(std::clamp<int64_t>(kWindowBytes / step, 1, kStripRows));
  plane_bytes_ = stride * RowsOfWindow();
  return PlanStrips(RowOffset(source_.layout) + plane_bytes_ * planes);
}

// Returns how many rows a strip needs at most, with those of the next strip that have arrived.
size_t Resampler::RowsOfWindow() const {
  if (order_ == Order::kColumnsFirst) return kStripRows + 1;
  const AxisTaps& rows = rows_.taps();
  int most = 2 * rows.pairs, delivered = 0;
  for (int row = 0; row < rows.count; row = StripEnd(row)) {
    const int needed = RowsNeeded(row);
    most = std::max(most, needed - std::min(rows.starts[row], delivered));
    delivered = needed;
  }
  return static_cast<size_t>(most);
}

// Allocates `window_bytes` and the kernel's scratch for this layout.
Status Resampler::PlanStrips(size_t window_bytes) {
  strip_.channels = source_.layout == PixelLayout::kGray ? 1 : 3;
  strip_.planes = PlanesOf(source_.layout);
  strip_.stride = stride_;
  strip_.width = region_.width;
  strip_.rows = rows_.taps();
  strip_.columns = columns_.taps();
  if (order_ != Order::kTogether) TRY(PlanSteps());
  return PlanBlending(window_bytes);
}

// Prepares for one axis after the other: the strips then only blend horizontally.
Status Resampler::PlanSteps() {
  strip_.rows = kUnblended.taps();
  strip_.first_row = strip_.top = 0;
  size_t bytes =
      static_cast<size_t>(stride_) * (kStripRows + 1) * static_cast<size_t>(strip_.planes);
  if (order_ == Order::kColumnsFirst) {
    const StripMargin room = MarginFor(strip_.columns.count);
    const auto rows = static_cast<size_t>(2 * rows_.taps().pairs);
    bytes = room.before + rows * static_cast<size_t>(RowsOf(strip_).stride) + room.behind;
  }
  return between_.Grow(bytes + kBlendRowsOver);
}

// Chooses how strips are blended and allocates the memory for it, all of it at once, so that a
// refusal names all that is missing.
Status Resampler::PlanBlending(size_t window_bytes) {
  const bool by_rows = strip_.planes == strip_.channels && CanBlendRows();
  const size_t along = by_rows ? AlongBytes(strip_.columns, strip_.mirror) : 0;
  size_t values;
  if (along != 0) {
    values = static_cast<size_t>(BlendedRow(strip_.width) * strip_.planes * kRowsTogether);
  } else {
    strip_.turned_columns = TurnedColumns(strip_.columns, strip_.channels);
    values = static_cast<size_t>(strip_.turned_columns) * kStripRows;
  }
  const Growth growths[] = {
      {along_, along}, {window_, window_bytes}, {turned_, values * sizeof(int16_t)}};
  TRY(GrowAll(growths));
  strip_.along = {};
  if (along != 0) strip_.along = PlanAlong(strip_.columns, strip_.mirror, along_.data());
  strip_.turned = reinterpret_cast<int16_t*>(turned_.data());
  return {};
}

MutableImageView Resampler::Reserve(int rows) {
  // Takes at most the rows that the strip needs, so that little has to be moved when it is done.
  const int wanted = complete() ? 1 : RowsWanted() - top_ - held_;
  MutableImageView view;
  view.layout = source_.layout;
  view.size = {source_.covered.width, std::min(rows, wanted)};
  for (size_t p = 0; p < static_cast<size_t>(PlanesOf(source_.layout)); ++p) {
    view.plane[p] = WindowPlane(p) + held_ * stride_;
    view.stride[p] = stride_;
  }
  return view;
}

void Resampler::Commit(int rows) {
  held_ += rows;
  if (complete() || top_ + held_ < RowsWanted()) return;
  const Stopwatch stopwatch(busy_ns_);
  if (order_ == Order::kColumnsFirst) return ResampleColumns();
  ResampleStrips();
}

void Resampler::ResampleStrips() {
  while (next_row_ < rows_.taps().count && top_ + held_ >= RowsNeeded(next_row_)) {
    ResampleNext();
    DropRows();
  }
  if (!complete()) return;
  EmitLeaving();
  if (task_.turn.transpose) WriteTurned();
}

void Resampler::SetSource() {
  const ptrdiff_t column = ptrdiff_t{region_.x - source_.covered.x} * BytesPerPixel(source_.layout);
  for (size_t p = 0; p < static_cast<size_t>(strip_.planes); ++p) {
    strip_.plane[p] = (in_place_[0] == nullptr ? WindowPlane(p) : in_place_[p]) + column;
  }
}

// Blends the rows of a strip vertically and makes them its source.
void Resampler::BlendDown() {
  const size_t plane = static_cast<size_t>(stride_) * (kStripRows + 1);
  for (size_t p = 0; p < static_cast<size_t>(strip_.planes); ++p) {
    uint8_t* const blended = between_.data() + p * plane;
    BlendRows({strip_.plane[p], stride_, top_, rows_.taps(), next_row_, strip_.row_count, blended,
               stride_, ptrdiff_t{region_.width} * BytesPerPixel(source_.layout)});
    strip_.plane[p] = blended;
  }
}

void Resampler::ResampleNext() {
  SetSource();
  strip_.row_count = StripEnd(next_row_) - next_row_;
  if (order_ == Order::kRowsFirst) {
    BlendDown();
  } else {
    strip_.top = top_;
    strip_.first_row = next_row_;
  }
  ResampleStrip(strip_);
  strip_.leaving = RowsOf(strip_);
  strip_.leaving_out = out_ + next_row_ * strips_.down;
  next_row_ += strip_.row_count;
  if (SizeOf(strips_.dtype) >= kLeavingBytes) {
    std::swap(strip_.finished, other_finished_);
  } else {
    EmitLeaving();
  }
}

// Resamples the rows of the window horizontally, and then all rows of the output that this allows.
void Resampler::ResampleColumns() {
  uint8_t* const between = between_.data() + MarginFor(strip_.columns.count).before;
  SetSource();
  strip_.row_count = held_;
  uint8_t* const finished =
      std::exchange(strip_.finished, between + between_rows_ * RowsOf(strip_).stride);
  ResampleStrip(strip_);
  strip_.finished = finished;
  between_rows_ += held_;
  SkipRows(held_);
  top_ += std::exchange(held_, 0);
  ResampleRows();
}

// Blends finished rows vertically and emits them, as far as they have arrived.
void Resampler::ResampleRows() {
  const AxisTaps& taps = rows_.taps();
  ResampledRows rows = RowsOf(strip_);
  uint8_t* const between = between_.data() + MarginFor(strip_.columns.count).before;
  const int first_between = top_ - between_rows_;
  const ptrdiff_t bytes =
      rows.plane != 0 ? 2 * rows.plane + rows.pixels : ptrdiff_t{rows.channels} * rows.pixels;
  while (!complete()) {
    rows.rows = 0;
    while (rows.rows < kStripRows && next_row_ + rows.rows < taps.count &&
           RowsFor(next_row_ + rows.rows) <= top_) {
      ++rows.rows;
    }
    if (rows.rows == 0) break;
    BlendRows({between, rows.stride, first_between, taps, next_row_, rows.rows, strip_.finished,
               rows.stride, bytes});
    EmitRows(rows, strips_, out_ + next_row_ * strips_.down);
    next_row_ += rows.rows;
  }
  if (complete()) {
    if (task_.turn.transpose) WriteTurned();
    return;
  }
  const int dropped = std::min(between_rows_, taps.starts[next_row_] - first_between);
  between_rows_ -= dropped;
  std::memmove(between, between + dropped * rows.stride,
               static_cast<size_t>(between_rows_ * rows.stride));
}

void Resampler::EmitLeaving() {
  EmitRows(strip_.leaving, strips_, strip_.leaving_out);
  strip_.leaving.rows = 0;
}

// Drops the rows above the next strip.
void Resampler::DropRows() {
  const AxisTaps& rows = rows_.taps();
  const int start = next_row_ == rows.count ? region_.height : rows.starts[next_row_];
  const int dropped = std::min(held_, start - top_);
  if (dropped <= 0) return;
  top_ += dropped;
  held_ -= dropped;
  if (in_place_[0] != nullptr) return SkipRows(dropped);
  for (size_t p = 0; p < static_cast<size_t>(strip_.planes) && held_ != 0; ++p) {
    uint8_t* plane = WindowPlane(p);
    std::memmove(plane, plane + dropped * stride_, static_cast<size_t>(held_ * stride_));
  }
}

// Moves on in the memory of Resample's caller.
void Resampler::SkipRows(int rows) {
  if (in_place_[0] == nullptr) return;
  for (size_t p = 0; p < static_cast<size_t>(strip_.planes); ++p) in_place_[p] += rows * stride_;
}

// Transposes and mirrors the finished window into the output.
void Resampler::WriteTurned() const {
  const int width = task_.window.height, height = task_.window.width;  // of the output
  const int x = visible_.y - task_.window.y, y = visible_.x - task_.window.x;
  const Turn& turn = task_.turn;
  const int left = turn.mirror_columns ? width - x - visible_.height : x;
  const ptrdiff_t plane = PlaneOf(visible_.height);
  const ptrdiff_t step = plane == 0 ? 3 : 1, channel = plane == 0 ? 1 : plane;
  uint8_t* const line = finished_.data();
  for (int column = 0; column < visible_.width; ++column) {
    const uint8_t* rgb = upright_.data() + column * strips_.along;
    for (int row = 0; row < visible_.height; ++row, rgb += strips_.down) {
      uint8_t* to = line + (turn.mirror_columns ? visible_.height - 1 - row : row) * step;
      for (int c = 0; c < 3; ++c) to[c * channel] = rgb[c];
    }
    EmitRows({line, 0, plane, 3, 1, visible_.height}, format_,
             Pixel(left, turn.mirror_rows ? height - 1 - y - column : y + column));
  }
}

}  // namespace stoker

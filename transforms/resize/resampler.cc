#include "transforms/resize/resampler.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/stage_times.h"
#include "core/try.h"

namespace stoker {

namespace {

// The source rows of a strip should stay in the second-level cache between decoding and resampling.
constexpr int64_t kWindowBytes = 256 << 10;

// Offset of the window's rows, in bytes after a multiple of 64. libjpeg-turbo's SIMD writes aligned
// rows past the caches (non-temporal stores in jdcolext), which made resampling of photographs
// three times slower. Rows that are not even 16-byte aligned go through the caches.
constexpr size_t kRowOffset = 8;

// Output values of this size are emitted while the next strip is blended: writing them takes longer
// than fetching the finished pixels from the second-level cache.
constexpr size_t kLeavingBytes = 4;

// Adds its lifetime to a counter.
class Stopwatch {
 public:
  explicit Stopwatch(uint64_t& total) : total_(total), start_(NowNanoseconds()) {}
  ~Stopwatch() { total_ += NowNanoseconds() - start_; }

 private:
  uint64_t& total_;
  uint64_t start_;
};

Rect Intersect(const Rect& rect, ImageSize size) {
  const int x = std::max(rect.x, 0), y = std::max(rect.y, 0);
  const auto right = std::min<int64_t>(int64_t{rect.x} + rect.width, size.width);
  const auto bottom = std::min<int64_t>(int64_t{rect.y} + rect.height, size.height);
  return {x, y, static_cast<int>(std::max<int64_t>(0, right - x)),
          static_cast<int>(std::max<int64_t>(0, bottom - y))};
}

size_t RoundUp(size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

Resampler::Resampler(MemoryBudget& budget)
    : rows_(budget),
      columns_(budget),
      window_(budget),
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
  visible_ = Intersect(task.window, task.resized);
  const Rect& box = task.box;
  if (visible_.width != 0 && visible_.height != 0) {
    TRY(rows_.Compute({box.height, task.resized.height, visible_.y, visible_.height, -box.y,
                       task.image.height - box.y, task.antialias}));
    TRY(columns_.Compute({box.width, task.resized.width, visible_.x, visible_.width, -box.x,
                          task.image.width - box.x, task.antialias}));
    region_ = {box.x + columns_.begin(), box.y + rows_.begin(), columns_.end() - columns_.begin(),
               rows_.end() - rows_.begin()};
  }
  if (region_.width == 0 || region_.height == 0) region_ = {};
  TRY(PlanOutput());
  return region_;
}

// From a channel to the next in a line of finished pixels.
ptrdiff_t Resampler::PlaneOf(int pixels) const {
  return format_.layout == Layout::kNchw ? pixels : 0;
}

// The destination of an output pixel, in viewing orientation.
uint8_t* Resampler::Pixel(int x, int y) const {
  return static_cast<uint8_t*>(output_.row) + y * format_.down + x * format_.along;
}

// Sets where strips are written, and writes the pixels that no strip writes.
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
  top_ = held_ = next_row_ = 0;
  strip_.leaving.rows = 0;
  return PlanStrips();
}

int Resampler::StripEnd(int first_row) const {
  return std::min(first_row + strip_rows_, rows_.taps().count);
}

// How many rows of the region must have arrived for the strip that starts at this output row.
int Resampler::RowsNeeded(int first_row) const {
  const AxisTaps& taps = rows_.taps();
  return std::min(taps.starts[StripEnd(first_row) - 1] + 2 * taps.pairs, region_.height);
}

// Row top_ of the window.
uint8_t* Resampler::WindowPlane(size_t plane) const {
  return window_.data() + kRowOffset + plane * plane_bytes_;
}

// Allocates the source window and the kernel's scratch for this layout.
Status Resampler::PlanStrips() {
  const AxisTaps& rows = rows_.taps();
  const bool gray = source_.layout == PixelLayout::kGray;
  const size_t row_bytes = static_cast<size_t>(source_.covered.width) *
                           static_cast<size_t>(BytesPerPixel(source_.layout));
  const size_t planes = static_cast<size_t>(PlanesOf(source_.layout));
  const size_t stride = RoundUp(row_bytes + std::max<size_t>(kStripOverread, kBufferPadding));
  stride_ = static_cast<ptrdiff_t>(stride);

  // Fewer rows at a time if rows are long and far apart.
  const int64_t step =
      static_cast<int64_t>(stride * planes) * std::max(1, task_.box.height / task_.resized.height);
  strip_rows_ = static_cast<int>(std::clamp<int64_t>(kWindowBytes / step, 1, kStripRows));
  int most = 2 * rows.pairs, delivered = 0;
  for (int row = 0; row < rows.count; row = StripEnd(row)) {
    const int needed = RowsNeeded(row);
    most = std::max(most, needed - std::min(rows.starts[row], delivered));
    delivered = needed;
  }
  plane_bytes_ = stride * static_cast<size_t>(most);

  strip_.channels = gray ? 1 : 3;
  strip_.planes = static_cast<int>(planes);
  strip_.stride = stride_;
  strip_.width = region_.width;
  strip_.rows = rows;
  strip_.columns = columns_.taps();
  return PlanBlending(kRowOffset + plane_bytes_ * planes);
}

// Chooses how strips are blended and allocates the memory for it. Whether rows can be blended is
// known once their tables are made.
Status Resampler::PlanBlending(size_t window_bytes) {
  strip_.along = {};
  if (strip_.planes == strip_.channels && CanBlendRows()) {
    const Growth growths[] = {{along_, AlongBytes(strip_.columns)}, {window_, window_bytes}};
    TRY(GrowAll(growths));
    PlanAlong(strip_.columns, strip_.mirror, along_.data(), strip_.along);
  }
  size_t values;
  if (strip_.along.blocks != 0) {
    values = static_cast<size_t>(BlendedRow(strip_.width) * strip_.planes * kRowsTogether);
  } else {
    strip_.turned_columns = TurnedColumns(strip_.columns, strip_.channels);
    values = static_cast<size_t>(strip_.turned_columns) * kStripRows;
  }
  const Growth growths[] = {{window_, window_bytes}, {turned_, values * sizeof(int16_t)}};
  TRY(GrowAll(growths));
  strip_.turned = reinterpret_cast<int16_t*>(turned_.data());
  return {};
}

MutableImageView Resampler::Reserve(int rows) {
  // At most what the strip needs, so that little has to be moved when it is done.
  const int wanted = next_row_ == rows_.taps().count ? 1 : RowsNeeded(next_row_) - top_ - held_;
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
  if (next_row_ == rows_.taps().count || top_ + held_ < RowsNeeded(next_row_)) return;
  const Stopwatch stopwatch(busy_ns_);
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

void Resampler::ResampleNext() {
  const ptrdiff_t column = ptrdiff_t{region_.x - source_.covered.x} * BytesPerPixel(source_.layout);
  for (size_t p = 0; p < static_cast<size_t>(strip_.planes); ++p) {
    strip_.plane[p] = WindowPlane(p) + column;
  }
  strip_.top = top_;
  strip_.first_row = next_row_;
  strip_.row_count = StripEnd(next_row_) - next_row_;
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
  for (size_t p = 0; p < static_cast<size_t>(strip_.planes) && held_ != 0; ++p) {
    uint8_t* plane = WindowPlane(p);
    std::memmove(plane, plane + dropped * stride_, static_cast<size_t>(held_ * stride_));
  }
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

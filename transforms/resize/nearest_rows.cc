#include "transforms/resize/nearest_rows.h"

#include <algorithm>
#include <cstring>

#include "core/result/try.h"
#include "core/time/stage_times.h"
#include "transforms/resize/kernel_axis.h"

namespace stoker {

namespace {

// Decoded rows stay in the innermost cache.
constexpr int64_t kHeldBytes = 16 << 10;
constexpr int kTogether = 8;  // pixels of a line

// Adds its lifetime to a counter.
class BusyTime {
 public:
  explicit BusyTime(uint64_t& total) : total_(total), start_(NowNanoseconds()) {}
  ~BusyTime() { total_ += NowNanoseconds() - start_; }

 private:
  uint64_t& total_;
  uint64_t start_;
};

AxisSpec SpecOf(int begin, int box, int resized, int window_begin, int image, bool reversed) {
  return {.in = box,
          .out = resized,
          .first_out = window_begin,
          .clip_begin = -begin,
          .clip_end = image - begin,
          .antialias = false,
          .interpolation = Interpolation::kNearest,
          .reversed = reversed};
}

}  // namespace

uint64_t NearestRows::BytesFor(ImageSize resized) {
  const uint64_t sides =
      static_cast<uint64_t>(resized.width) + static_cast<uint64_t>(resized.height);
  return GrowingBuffer::MappedBytes(sides * sizeof(int32_t)) +
         GrowingBuffer::MappedBytes(2 * kHeldBytes);
}

// Returns the outputs of a window of that length that have a pixel.
NearestRows::Axis NearestRows::AxisOf(const AxisSpec& spec, int window, int32_t* source) {
  KernelAxis kernel(spec);
  Axis axis{.source = source};
  const int begin = std::max(spec.first_out, 0);
  const int end = static_cast<int>(std::min<int64_t>(int64_t{spec.first_out} + window, spec.out));
  for (int i = 0; i < end - begin; ++i) {
    const int output = spec.reversed ? end - 1 - i : begin + i;
    const int found = kernel.SamplesOf(spec.reversed ? spec.out - 1 - output : output).first;
    const int sample = spec.reversed ? spec.in - 1 - found : found;
    if (sample < spec.clip_begin || sample >= spec.clip_end) continue;
    source[axis.count++] = sample - spec.clip_begin;
    // Going backwards, the last one found is the first one.
    if (axis.count == 1 || spec.reversed) axis.first = output - spec.first_out;
  }
  if (axis.count == 0) return axis;
  if (spec.reversed) std::reverse(source, source + axis.count);
  axis.begin = source[0];
  axis.end = source[axis.count - 1] + 1;
  for (int i = 0; i < axis.count; ++i) source[i] -= axis.begin;
  return axis;
}

Result<Rect> NearestRows::Start(const Resampling& task, const NearestOutput& output) {
  const BusyTime busy(busy_ns_);
  const Rect &box = task.box, &window = task.window;
  const auto columns = static_cast<size_t>(window.width),
             lines = static_cast<size_t>(window.height);
  TRY(sources_.Grow((columns + lines) * sizeof(int32_t)));
  auto* const source = reinterpret_cast<int32_t*>(sources_.data());
  across_ = AxisOf(SpecOf(box.x, box.width, task.resized.width, window.x, task.image.width,
                          task.reversed_columns),
                   window.width, source);
  down_ = AxisOf(SpecOf(box.y, box.height, task.resized.height, window.y, task.image.height,
                        task.reversed_rows),
                 window.height, source + columns);
  PlanOutput(task, output);
  region_ = {};
  if (across_.count == 0 || down_.count == 0) return region_;
  region_ = {across_.begin, down_.begin, across_.end - across_.begin, down_.end - down_.begin};
  dense_ = next_pixel_ == 1 && region_.width == across_.count;
  if (next_pixel_ == -1) {  // writes forwards, which is faster
    std::reverse(across_.source, across_.source + across_.count);
    out_ -= across_.count - 1;
    next_pixel_ = 1;
  }
  return region_;
}

// Sets the destination of lines, and fills the output if they do not cover it.
void NearestRows::PlanOutput(const Resampling& task, const NearestOutput& output) {
  const Rect& window = task.window;
  const Turn& turn = task.turn;
  const bool transpose = turn.transpose;
  if (across_.count != window.width || down_.count != window.height) {
    const int width = transpose ? window.height : window.width;
    const int height = transpose ? window.width : window.height;
    for (int y = 0; y < height; ++y) {
      std::memset(output.row + y * output.stride, output.fill, static_cast<size_t>(width));
    }
  }
  next_pixel_ = transpose ? output.stride : 1;
  next_line_ = transpose ? 1 : output.stride;
  int x = across_.first, y = down_.first;
  if (transpose ? turn.mirror_rows : turn.mirror_columns) {
    x = window.width - 1 - x;
    next_pixel_ = -next_pixel_;
  }
  if (transpose ? turn.mirror_columns : turn.mirror_rows) {
    y = window.height - 1 - y;
    next_line_ = -next_line_;
  }
  out_ = output.row + (transpose ? x * output.stride + y : y * output.stride + x);
}

Status NearestRows::Begin(const DecodedRegion& region) {
  const BusyTime busy(busy_ns_);
  stride_ = ptrdiff_t{region.covered.width} + static_cast<ptrdiff_t>(kBufferPadding);
  held_rows_ = static_cast<int>(std::clamp<int64_t>(kHeldBytes / stride_, 1, region_.height));
  column_ = region_.x - region.covered.x;
  done_ = line_ = 0;
  return rows_.Grow(static_cast<size_t>(stride_ * held_rows_));
}

MutableImageView NearestRows::Reserve(int rows) {
  const ImageSize size{static_cast<int>(stride_) - static_cast<int>(kBufferPadding),
                       std::min(rows, held_rows_)};
  return {PixelLayout::kGray, size, {rows_.data()}, {stride_}};
}

void NearestRows::Commit(int rows) {
  const BusyTime busy(busy_ns_);
  for (; line_ < down_.count; ++line_) {
    const int row = down_.source[line_] - done_;
    if (row >= rows) break;
    WriteLine(rows_.data() + row * stride_ + column_, out_ + line_ * next_line_);
  }
  done_ += rows;
}

// `pixels`: a row of the region.
void NearestRows::WriteLine(const uint8_t* pixels, uint8_t* to) const {
  if (dense_) {
    std::memcpy(to, pixels, static_cast<size_t>(across_.count));
    return;
  }
  const int32_t* const source = across_.source;
  const int count = across_.count;
  int i = 0;
  if (next_pixel_ == 1) {
    for (; i + kTogether <= count; i += kTogether) {
      uint8_t some[kTogether];
      for (int j = 0; j < kTogether; ++j) some[j] = pixels[source[i + j]];
      std::memcpy(to + i, some, kTogether);
    }
  }
  for (; i < count; ++i) to[i * next_pixel_] = pixels[source[i]];
}

}  // namespace stoker

#include "transforms/resize/nearest_rows.h"

#include <algorithm>
#include <cstring>

#include "core/result/try.h"
#include "transforms/resize/kernel_axis.h"
#include "transforms/resize/stopwatch.h"

namespace stoker {

namespace {

// Decoded rows stay in the innermost cache.
constexpr int64_t kHeldBytes = 16 << 10;
constexpr int kTogether = 8;  // pixels of a line

uint16_t ValueAt(const uint8_t* pixel) {
  uint16_t value = 0;
  std::memcpy(&value, pixel, sizeof(value));
  return value;
}

// Writes the lower byte to `to`, and the upper one `upper` bytes after it.
void PutValue(uint16_t value, uint8_t* to, ptrdiff_t upper) {
  to[0] = static_cast<uint8_t>(value);
  to[upper] = static_cast<uint8_t>(value >> 8);
}

void FillLine(const NearestOutput& output, int y, int width) {
  uint8_t* to = output.row + y * output.stride;
  if (output.bytes == 1) {
    std::memset(to, output.fill, static_cast<size_t>(width));
    return;
  }
  for (int x = 0; x < width; ++x, to += output.pixel_stride) {
    PutValue(output.fill, to, output.upper);
  }
}

}  // namespace

uint64_t NearestRows::BytesFor(ImageSize resized) {
  const uint64_t sides =
      static_cast<uint64_t>(resized.width) + static_cast<uint64_t>(resized.height);
  return GrowingBuffer::MappedBytes(sides * sizeof(int32_t)) +
         GrowingBuffer::MappedBytes(2 * kHeldBytes);
}

// Returns the wanted outputs that have a pixel, counted from the window's begin. Their sources
// count from the image's first pixel.
NearestRows::Axis NearestRows::AxisOf(const AxisSpec& spec, int window_begin, int32_t* source) {
  Axis axis{.source = source};
  if (spec.count == 0) return axis;
  KernelAxis kernel(spec);
  const int begin = spec.first_out, end = begin + spec.count;
  for (int i = 0; i < spec.count; ++i) {
    const int output = spec.reversed ? end - 1 - i : begin + i;
    const int found = kernel.SamplesOf(spec.reversed ? spec.out - 1 - output : output).first;
    const int sample = spec.reversed ? spec.in - 1 - found : found;
    if (sample < spec.clip_begin || sample >= spec.clip_end) continue;
    source[axis.count++] = sample - spec.clip_begin;
    // Going backwards, the last one found is the first one.
    if (axis.count == 1 || spec.reversed) axis.first = output - window_begin;
  }
  if (axis.count == 0) return axis;
  if (spec.reversed) std::reverse(source, source + axis.count);
  axis.begin = source[0];
  axis.end = source[axis.count - 1] + 1;
  for (int i = 0; i < axis.count; ++i) source[i] -= axis.begin;
  return axis;
}

Result<Rect> NearestRows::Start(const Resampling& task, const NearestOutput& output) {
  const Stopwatch watch(busy_ns_);
  const Rect& window = task.window;
  const auto columns = static_cast<size_t>(window.width),
             lines = static_cast<size_t>(window.height);
  TRY(sources_.Grow((columns + lines) * sizeof(int32_t)));
  auto* const source = reinterpret_cast<int32_t*>(sources_.data());
  Resampling nearest = task;
  nearest.antialias = false;
  nearest.interpolation = Interpolation::kNearest;
  const ResamplingAxes axes(nearest);
  across_ = AxisOf(axes.columns, window.x, source);
  down_ = AxisOf(axes.rows, window.y, source + columns);
  PlanOutput(task, output);
  region_ = {};
  if (across_.count == 0 || down_.count == 0) return region_;
  region_ = {across_.begin, down_.begin, across_.end - across_.begin, down_.end - down_.begin};
  dense_ = next_pixel_ == 1 && region_.width == across_.count;
  if (next_pixel_ < 0) {  // writes forwards, which is faster
    std::reverse(across_.source, across_.source + across_.count);
    out_ += (across_.count - 1) * next_pixel_;
    next_pixel_ = -next_pixel_;
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
    for (int y = 0; y < height; ++y) FillLine(output, y, width);
  }
  bytes_ = output.bytes;
  upper_ = output.upper;
  next_pixel_ = transpose ? output.stride : output.pixel_stride;
  next_line_ = transpose ? output.pixel_stride : output.stride;
  int x = across_.first, y = down_.first;
  if (transpose ? turn.mirror_rows : turn.mirror_columns) {
    x = window.width - 1 - x;
    next_pixel_ = -next_pixel_;
  }
  if (transpose ? turn.mirror_columns : turn.mirror_rows) {
    y = window.height - 1 - y;
    next_line_ = -next_line_;
  }
  if (transpose) std::swap(x, y);
  out_ = output.row + y * output.stride + x * output.pixel_stride;
}

NearestRows::Places NearestRows::PlacesIn(const NearestOutput& output) const {
  const ptrdiff_t first = out_ - output.row;
  return {.columns = {across_.source, static_cast<size_t>(across_.count)},
          .rows = {down_.source, static_cast<size_t>(down_.count)},
          .x = static_cast<int>(first % output.stride),
          .y = static_cast<int>(first / output.stride),
          .upwards = next_line_ < 0};
}

Status NearestRows::Begin(const DecodedRegion& region) {
  const Stopwatch watch(busy_ns_);
  stride_ = ptrdiff_t{region.covered.width} * bytes_ + static_cast<ptrdiff_t>(kBufferPadding);
  width_ = region.covered.width;
  held_rows_ = static_cast<int>(std::clamp<int64_t>(kHeldBytes / stride_, 1, region_.height));
  column_ = region_.x - region.covered.x;
  done_ = line_ = 0;
  return rows_.Grow(static_cast<size_t>(stride_ * held_rows_));
}

MutableImageView NearestRows::Reserve(int rows) {
  const ImageSize size{width_, std::min(rows, held_rows_)};
  const PixelLayout layout = bytes_ == 2 ? PixelLayout::kGray16 : PixelLayout::kGray;
  return {layout, size, {rows_.data()}, {stride_}};
}

void NearestRows::Commit(int rows) {
  const Stopwatch watch(busy_ns_);
  for (; line_ < down_.count; ++line_) {
    const int row = down_.source[line_] - done_;
    if (row >= rows) break;
    const uint8_t* const pixels = rows_.data() + row * stride_ + ptrdiff_t{column_} * bytes_;
    uint8_t* const to = out_ + line_ * next_line_;
    bytes_ == 1 ? WriteLine(pixels, to) : WriteLine16(pixels, to);
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

void NearestRows::WriteLine16(const uint8_t* pixels, uint8_t* to) const {
  for (int i = 0; i < across_.count; ++i, to += next_pixel_) {
    const uint16_t value = ValueAt(pixels + ptrdiff_t{2} * across_.source[i]);
    PutValue(value, to, upper_);
  }
}

}  // namespace stoker

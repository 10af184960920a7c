#include "transforms/wide/float_resampler.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

#include "core/numbers/half.h"
#include "core/result/try.h"
#include "transforms/resize/kernel_axis.h"

namespace stoker {

namespace {

size_t RoundUp(size_t bytes) { return (bytes + 63) / 64 * 64; }

// The address of an output's pixels, in bytes from its first one.
struct Places {
  Places(const Resampling& task, const PixelOutput& output, int of_channels)
      : channels(of_channels) {
    const Turn& turn = task.turn;
    ImageSize size = task.window.size();
    if (turn.transpose) std::swap(size.width, size.height);
    const ImageSize whole = output.row_size.width != 0 ? output.row_size : size;
    const auto bytes = static_cast<ptrdiff_t>(SizeOf(output.dtype));
    const bool together = output.layout == Layout::kNhwc;
    along = together ? channels * bytes : bytes;
    down = along * whole.width;
    channel = together ? bytes : down * whole.height;
    if (turn.mirror_columns) first += (size.width - 1) * std::exchange(along, -along);
    if (turn.mirror_rows) first += (size.height - 1) * std::exchange(down, -down);
    if (turn.transpose) std::swap(along, down);
  }
  // Returns the offset in bytes of column x and row y of the window, as stored.
  ptrdiff_t At(int x, int y) const { return first + x * along + y * down; }

  int channels;
  ptrdiff_t first = 0, along = 0, down = 0, channel = 0;
};

// Writes values of one channel of a line.
template <typename T, typename Value, typename Convert>
void Store(const Value* values, int step, int count, uint8_t* to, ptrdiff_t along,
           const Convert& convert) {
  for (int x = 0; x < count; ++x, values += step, to += along) {
    const T value = convert(*values);
    std::memcpy(to, &value, sizeof(value));
  }
}

// Value: float, or uint16_t, which is not rounded.
template <typename Value>
void StoreLine(const Value* values, int count, int most, const Places& places,
               const PixelOutput& output, uint8_t* to) {
  const auto limit = static_cast<float>(most), unit = most == 255 ? 1.0F : 257.0F;
  const auto rounded = [&](Value value) {
    if constexpr (std::is_integral_v<Value>) {
      return value;
    } else {
      return std::clamp(value + 0.5F, 0.0F, limit);
    }
  };
  for (int c = 0; c < places.channels; ++c, ++values, to += places.channel) {
    const float scale = output.scale != nullptr ? output.scale[c] : 1.0F / 255,
                bias = output.scale != nullptr ? output.bias[c] : 0;
    const auto scaled = [&](Value value) {
      const float level = std::clamp(static_cast<float>(value), 0.0F, limit) / unit;
      const float product = level * scale;
      return product + bias;
    };
    const auto put = [&]<typename T>(T, const auto& convert) {
      Store<T>(values, places.channels, count, to, places.along, convert);
    };
    switch (output.dtype) {
      case DType::kF32:
        put(float{}, scaled);
        break;
      case DType::kF16:
        put(uint16_t{}, [&](Value value) { return Float16Bits(scaled(value)); });
        break;
      case DType::kBF16:
        put(uint16_t{}, [&](Value value) { return BFloat16Bits(scaled(value)); });
        break;
      case DType::kU16:
        put(uint16_t{}, [&](Value value) { return static_cast<uint16_t>(rounded(value)); });
        break;
      default:
        put(uint8_t{}, [&](Value value) { return static_cast<uint8_t>(rounded(value)); });
    }
  }
}

}  // namespace

Status FloatAxis::Compute(const AxisSpec& spec) {
  span_ = SamplesOf(spec);
  KernelAxis axis(spec);
  most_ = axis.MaxTaps();
  const auto count = static_cast<size_t>(spec.count), most = static_cast<size_t>(most_);
  const size_t outputs = RoundUp(count * sizeof(Output)), values = most * sizeof(double);
  TRY(memory_.Grow(outputs + values + count * most * sizeof(float)));
  outputs_ = reinterpret_cast<Output*>(memory_.data());
  auto* const exact = reinterpret_cast<double*>(memory_.data() + outputs);
  weights_ = reinterpret_cast<float*>(memory_.data() + outputs + values);
  const int first_output = spec.reversed ? spec.out - spec.first_out - spec.count : spec.first_out;
  for (int i = 0; i < spec.count; ++i) {
    const auto [first, end] = axis.SamplesOf(first_output + i);
    const std::span<double> all(exact, static_cast<size_t>(end - first));
    axis.Weigh(first_output + i, {first, end}, all);
    if (spec.reversed) std::ranges::reverse(all);
    const int at = spec.reversed ? spec.count - 1 - i : i;
    const int left = spec.reversed ? spec.in - end : first;
    const int from = std::max(left, span_.begin);
    const int to = std::max(from, std::min(left + (end - first), span_.end));
    outputs_[at] = {from - span_.begin, to - from};
    for (int x = from; x < to; ++x) {
      weights_[at * most_ + (x - from)] = static_cast<float>(exact[x - left]);
    }
  }
  return {};
}

Result<Rect> FloatResampler::Start(const Resampling& task, int channels) {
  task_ = task;
  region_ = {};
  blends_ = false;
  ResamplingAxes axes(task);
  visible_ = axes.visible;
  if (visible_.width != 0 && visible_.height != 0) {
    for (AxisSpec* spec : {&axes.rows, &axes.columns}) {
      if (spec->in == spec->out) spec->interpolation = Interpolation::kNearest;  // the same values
      if (spec->interpolation != Interpolation::kNearest) blends_ = true;
    }
    TRY(rows_.Compute(axes.rows));
    TRY(columns_.Compute(axes.columns));
    region_ = {task.box.x + columns_.begin(), task.box.y + rows_.begin(),
               columns_.end() - columns_.begin(), rows_.end() - rows_.begin()};
    if (region_.width == 0 || region_.height == 0) region_ = {};
  }
  const int finished = std::max(task.window.width, 1);
  TRY(line_.Grow(static_cast<size_t>(region_.width + finished) * static_cast<size_t>(channels) *
                 sizeof(float)));
  return region_;
}

void FloatResampler::CopyRow(const WidePixels& pixels, int row, uint16_t* values) const {
  const int channels = pixels.channels;
  const bool has_row = !rows_.weights(row).empty();
  const uint16_t* const from =
      pixels.values + (has_row ? ptrdiff_t{rows_.start(row)} * pixels.size.width * channels : 0);
  for (int x = 0; x < visible_.width; ++x, values += channels) {
    if (has_row && !columns_.weights(x).empty()) {
      std::copy_n(from + ptrdiff_t{columns_.start(x)} * channels, channels, values);
    } else {
      std::fill_n(values, channels, uint16_t{0});
    }
  }
}

// Multiplies colours by alpha, if there is one.
void FloatResampler::BlendRows(const WidePixels& pixels, int row, float* line) const {
  const auto values = static_cast<size_t>(pixels.size.width * pixels.channels);
  const auto channels = static_cast<size_t>(pixels.channels);
  const auto alpha = static_cast<size_t>(pixels.alpha);
  const uint16_t* from = pixels.values + static_cast<size_t>(rows_.start(row)) * values;
  std::fill_n(line, values, 0.0F);
  for (const float weight : rows_.weights(row)) {
    if (alpha == 0) {
      for (size_t i = 0; i < values; ++i) line[i] += weight * static_cast<float>(from[i]);
    }
    for (size_t i = 0; alpha != 0 && i < values; i += channels) {
      const float of_colours = weight * static_cast<float>(from[i + alpha]);
      for (size_t c = 0; c < channels; ++c) {
        line[i + c] += (c < alpha ? of_colours : weight) * static_cast<float>(from[i + c]);
      }
    }
    from += values;
  }
}

void FloatResampler::BlendColumns(const WidePixels& pixels, const float* line,
                                  float* values) const {
  const int channels = pixels.channels;
  for (int x = 0; x < visible_.width; ++x, values += channels) {
    const float* const from = line + ptrdiff_t{columns_.start(x)} * channels;
    const std::span<const float> weights = columns_.weights(x);
    for (int c = 0; c < channels; ++c) {
      float sum = 0;
      for (size_t t = 0; t < weights.size(); ++t) {
        sum += weights[t] * from[static_cast<ptrdiff_t>(t) * channels + c];
      }
      values[c] = sum;
    }
    const float alpha = values[pixels.alpha];
    for (int c = 0; c < pixels.alpha; ++c) values[c] = alpha > 0 ? values[c] / alpha : 0;
  }
}

void FloatResampler::Write(const WidePixels& pixels, const PixelOutput& output) {
  const Rect& window = task_.window;
  auto* const line = reinterpret_cast<float*>(line_.data());
  float* const values = line + ptrdiff_t{region_.width} * pixels.channels;
  auto* const copied = reinterpret_cast<uint16_t*>(line_.data());
  const Places places(task_, output, pixels.channels);
  auto* const to = static_cast<uint8_t*>(output.row);
  if (region_.width == 0 || visible_.size() != window.size()) {
    std::fill_n(copied, std::max(window.width, 0) * pixels.channels, uint16_t{0});
    for (int y = 0; y < window.height; ++y) {
      StoreLine(copied, window.width, pixels.most, places, output, to + places.At(0, y));
    }
  }
  if (region_.width == 0) return;
  const int x = visible_.x - window.x, y = visible_.y - window.y;
  for (int row = 0; row < visible_.height; ++row) {
    uint8_t* const at = to + places.At(x, y + row);
    if (blends_) {
      BlendRows(pixels, row, line);
      BlendColumns(pixels, line, values);
      StoreLine(values, visible_.width, pixels.most, places, output, at);
    } else {
      CopyRow(pixels, row, copied);
      StoreLine(copied, visible_.width, pixels.most, places, output, at);
    }
  }
}

}  // namespace stoker

#include "transforms/resize/plain.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "transforms/resize/axis_filter.h"
#include "transforms/resize/filter_kernel.h"

namespace stoker {

namespace {

// Returns integer weights of all samples of a box of `in` for one output: steps of the rounded
// running sum of a triangle. Distances are in units of 1 / (2 × out) sample.
std::vector<int> TriangleWeights(const AxisSpec& spec, int64_t output) {
  const int64_t in = spec.in, out = spec.out;
  const int64_t support = 2 * (spec.antialias ? std::max(in, out) : out);
  const int64_t centre = (2 * output + 1) * in;
  std::vector<int64_t> triangle(static_cast<size_t>(in));
  int64_t sum = 0;
  for (int64_t x = 0; x < in; ++x) {
    const int64_t weight = std::max<int64_t>(0, support - std::abs((2 * x + 1) * out - centre));
    triangle[static_cast<size_t>(x)] = weight;
    sum += weight;
  }
  const double factor = std::ldexp(1.0, WeightShift(spec)) / static_cast<double>(sum);
  std::vector<int> weights;
  int64_t running = 0;
  int before = 0;
  for (int64_t weight : triangle) {
    running += weight;
    const int after = static_cast<int>(std::floor(static_cast<double>(running) * factor + 0.5));
    weights.push_back(after - before);
    before = after;
  }
  return weights;
}

double SupportOf(Interpolation interpolation) {
  return interpolation == Interpolation::kBox        ? 0.5
         : interpolation == Interpolation::kBilinear ? 1
         : interpolation == Interpolation::kBicubic  ? 2
                                                     : 3;
}

double FilterWeight(Interpolation interpolation, double distance) {
  switch (interpolation) {
    case Interpolation::kBilinear:
      return TriangleKernel()(distance);
    case Interpolation::kBicubic:
      return CubicKernel()(distance);
    case Interpolation::kLanczos:
      return LanczosKernel()(distance);
    default:
      return BoxKernel()(distance);
  }
}

// Returns the weights of the other filters, as Pillow and ATen define them. They add up to 1.
std::vector<double> KernelWeights(const AxisSpec& spec, int stored_output) {
  const int output = spec.reversed ? spec.out - 1 - stored_output : stored_output;
  const double scale = static_cast<double>(spec.in) / spec.out;
  const bool widens = Widens(spec.interpolation, spec.antialias);
  const double width = widens ? std::max(scale, 1.0) : 1.0;
  std::vector<double> values(static_cast<size_t>(spec.in));
  if (spec.interpolation == Interpolation::kNearest) {
    double at = scale * 0.5;
    for (int i = 0; i < output; ++i) at += scale;
    values[std::min(static_cast<size_t>(at), values.size() - 1)] = 1;
  } else {
    const double center = (output + 0.5) * scale, support = SupportOf(spec.interpolation) * width;
    const int first = std::max(0, static_cast<int>(center - support + 0.5));
    const int end = std::min(spec.in, static_cast<int>(center + support + 0.5));
    for (int x = first; x < end; ++x) {
      values[static_cast<size_t>(x)] =
          FilterWeight(spec.interpolation, (x - center + 0.5) * (1.0 / width));
    }
  }
  double sum = 0;
  for (const double value : values) sum += value;
  for (double& value : values) value /= sum;
  if (spec.reversed) std::reverse(values.begin(), values.end());
  return values;
}

bool IsInSteps(const AxisSpec& spec) { return InSteps(spec.interpolation, spec.resampler); }

int ShiftOf(const AxisSpec& spec) {
  if (!IsInSteps(spec) || spec.resampler != ResampledAs::kTorchvision) return WeightShift(spec);
  double largest = 0;
  for (int output = 0; output < spec.out; ++output) {
    for (const double weight : KernelWeights(spec, output)) largest = std::max(largest, weight);
  }
  int shift = 0;
  while (shift < 22 && static_cast<int>(0.5 + std::ldexp(largest, shift + 1)) < 1 << 15) ++shift;
  return shift;
}

std::vector<int> Weights(const AxisSpec& spec, int shift, int output) {
  if (spec.interpolation == Interpolation::kBilinear && !IsInSteps(spec)) {
    return TriangleWeights(spec, output);
  }
  std::vector<int> weights;
  for (const double value : KernelWeights(spec, output)) {
    const double weight = std::ldexp(value, shift);
    weights.push_back(static_cast<int>(weight < 0 ? weight - 0.5 : weight + 0.5));
  }
  return weights;
}

int Sample(const ImageView& image, int64_t x, int64_t y, size_t channel) {
  if (x < 0 || y < 0 || x >= image.size.width || y >= image.size.height) return 0;
  switch (image.layout) {
    case PixelLayout::kGray:
      return image.plane[0][y * image.stride[0] + x];
    case PixelLayout::kGray16:
      break;  // a mask, which is not resampled
    case PixelLayout::kInterleaved:
      return image.plane[0][y * image.stride[0] + 3 * x + static_cast<int64_t>(channel)];
    case PixelLayout::kPlanar:
      return image.plane[channel][y * image.stride[channel] + x];
  }
  return 0;
}

// The sum of weights × sample(i), divided by 1 << shift and rounded.
template <typename SampleAt>
int64_t Blended(const std::vector<int>& weights, int shift, const SampleAt& sample) {
  int64_t sum = int64_t{1} << (shift - 1);
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] != 0) sum += weights[i] * sample(static_cast<int64_t>(i));
  }
  return sum >> shift;
}

// The weights of all samples for an output.
struct Output {
  std::vector<int> weights;  // empty: zero
  int shift = 0;
};

// Computes one channel of one pixel of the resized box: vertically, then horizontally.
uint8_t Resampled(const ImageView& image, const Resampling& task, const Output& along,
                  const Output& down, size_t channel) {
  const auto sample = [&](int64_t x, int64_t y) {
    return Sample(image, task.box.x + x, task.box.y + y, channel);
  };
  const int middle_bits = MiddleBits(along.shift);
  return static_cast<uint8_t>(Blended(along.weights, along.shift + middle_bits, [&](int64_t x) {
    return Blended(down.weights, down.shift - middle_bits, [&](int64_t y) { return sample(x, y); });
  }));
}

// Computes the same in steps: one axis to bytes, then the other.
uint8_t ResampledInSteps(const ImageView& image, const Resampling& task, const Output& along,
                         const Output& down, size_t channel) {
  const auto byte = [](int64_t value) { return std::clamp<int64_t>(value, 0, 255); };
  const auto sample = [&](int64_t x, int64_t y) {
    return Sample(image, task.box.x + x, task.box.y + y, channel);
  };
  const bool down_first = BlendsRowsFirst(task);
  const Output &first = down_first ? down : along, &second = down_first ? along : down;
  return static_cast<uint8_t>(byte(Blended(second.weights, second.shift, [&](int64_t b) {
    return byte(Blended(first.weights, first.shift,
                        [&](int64_t a) { return down_first ? sample(b, a) : sample(a, b); }));
  })));
}

// Both axes of a task.
struct Axes {
  explicit Axes(const Resampling& task) {
    for (AxisSpec* axis : {&columns, &rows}) {
      axis->antialias = task.antialias;
      axis->interpolation = task.interpolation;
      axis->resampler = task.resampler;
    }
    columns.in = task.box.width;
    columns.out = task.resized.width;
    columns.reversed = task.reversed_columns;
    rows.in = task.box.height;
    rows.out = task.resized.height;
    rows.reversed = task.reversed_rows;
    columns_shift = ShiftOf(columns);
    rows_shift = ShiftOf(rows);
  }

  Output Along(int x) const { return OutputOf(columns, columns_shift, x); }
  Output Down(int y) const { return OutputOf(rows, rows_shift, y); }

  static Output OutputOf(const AxisSpec& axis, int shift, int output) {
    const bool inside = output >= 0 && output < axis.out;
    return {inside ? Weights(axis, shift, output) : std::vector<int>(), shift};
  }

  AxisSpec columns, rows;
  int columns_shift, rows_shift;
};

}  // namespace

void ResamplePlain(const ImageView& image, const Resampling& task, const PixelOutput& output) {
  const Rect& window = task.window;
  const bool transpose = task.turn.transpose;
  const int width = transpose ? window.height : window.width;
  const int height = transpose ? window.width : window.height;
  const RowFormat format(output, {width, height});
  auto* const row = static_cast<uint8_t*>(output.row);
  const Axes axes(task);
  std::vector<Output> along;
  along.reserve(static_cast<size_t>(window.width));
  for (int x = 0; x < window.width; ++x) along.push_back(axes.Along(window.x + x));
  for (int y = 0; y < window.height; ++y) {
    const Output down = axes.Down(window.y + y);
    for (int x = 0; x < window.width; ++x) {
      int to_x = transpose ? y : x, to_y = transpose ? x : y;
      if (task.turn.mirror_columns) to_x = width - 1 - to_x;
      if (task.turn.mirror_rows) to_y = height - 1 - to_y;
      const bool in_steps = InSteps(task.interpolation, task.resampler);
      const auto resampled = in_steps ? ResampledInSteps : Resampled;
      uint8_t rgb[3];
      for (size_t c = 0; c < 3; ++c) {
        rgb[c] = resampled(image, task, along[static_cast<size_t>(x)], down, c);
      }
      StorePixel(format, rgb, row + to_y * format.down + to_x * format.along);
    }
  }
}

}  // namespace stoker

#include "transforms/resize/axis_filter.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <span>

#include "core/result/try.h"
#include "transforms/resize/kernel_axis.h"

namespace stoker {

namespace {

int64_t FloorDivide(int64_t a, int64_t b) { return a / b - (a % b < 0); }

// Positions and distances in units of 1 / (2 × out) sample.
struct Grid {
  explicit Grid(const AxisSpec& spec)
      : in(spec.in),
        out(spec.out),
        support(2 * (spec.antialias ? std::max<int64_t>(spec.in, spec.out) : spec.out)) {}

  int64_t Centre(int64_t output) const { return (2 * output + 1) * in; }
  int64_t Sample(int64_t sample) const { return (2 * sample + 1) * out; }
  int64_t Weight(int64_t sample, int64_t centre) const {  // positive inside the triangle
    return support - std::abs(Sample(sample) - centre);
  }
  int64_t First(int64_t output) const {  // sample with a positive weight, inside the box
    return std::max<int64_t>(0, FloorDivide(Centre(output) - support - out, 2 * out) + 1);
  }
  int64_t End(int64_t output) const {
    return std::min<int64_t>(in, -FloorDivide(-(Centre(output) + support - out), 2 * out));
  }
  int64_t MaxTaps() const { return std::min((support + out - 1) / out, in); }

  int64_t in, out, support;
};

// Computes First(output) for one output after the other, without a division for each.
class FirstSample {
 public:
  FirstSample(const Grid& grid, int64_t output)
      : unit_(2 * grid.out), step_(grid.in / grid.out), step_rest_(2 * (grid.in % grid.out)) {
    const int64_t position = grid.Centre(output) - grid.support - grid.out;
    before_ = FloorDivide(position, unit_);
    rest_ = position - before_ * unit_;
  }
  int64_t sample() const { return std::max<int64_t>(0, before_ + 1); }
  void Next() {
    rest_ += step_rest_;
    const bool carry = rest_ >= unit_;
    before_ += step_ + carry;
    rest_ -= carry ? unit_ : 0;
  }

 private:
  int64_t unit_, step_, step_rest_;
  int64_t before_, rest_;  // position = before × unit + rest
};

// Computes the weights of one output for the `taps` samples from `first` (zero beyond the
// triangle); `weights` begins with the weight of sample `origin`. Samples outside [clip_begin,
// clip_end) are left out. The number of iterations hardly changes from output to output, which
// helps branch prediction.
void FillWeights(const Grid& grid, int64_t output, int64_t first, int64_t taps, double one,
                 int64_t clip_begin, int64_t clip_end, int64_t origin, int16_t* weights) {
  const int64_t centre = grid.Centre(output), end = std::min(first + taps, grid.in);
  int64_t sum = 0;
  for (int64_t x = first; x < end; ++x) sum += std::max<int64_t>(0, grid.Weight(x, centre));
  const double factor = one / static_cast<double>(sum);
  int64_t running = 0;
  int before = 0;
  for (int64_t x = first; x < end; ++x) {
    running += std::max<int64_t>(0, grid.Weight(x, centre));
    const int after = static_cast<int>(static_cast<double>(running) * factor + 0.5);
    if (x >= clip_begin && x < clip_end) weights[x - origin] = static_cast<int16_t>(after - before);
    before = after;
  }
}

// FillWeights for few taps when all samples exist: `distance` is that of the first sample from the
// center, `step` that to the next. Doubles hold all these integers exactly.
template <int kTaps>
void FillFew(double distance, double step, double support, double one, int16_t* weights) {
  double running[kTaps], sum = 0;
  for (int t = 0; t < kTaps; ++t) {
    sum += std::max(0.0, support - std::abs(distance + t * step));
    running[t] = sum;
  }
  const double factor = one / sum;
  int before = 0;
  for (int t = 0; t < kTaps; ++t) {
    const int after = static_cast<int>(running[t] * factor + 0.5);
    weights[t] = static_cast<int16_t>(after - before);
    before = after;
  }
}

// The parameters chosen by Compute.
struct Filling {
  const AxisSpec& spec;
  int64_t begin, end;
  int64_t taps, last_start;
  double one;
  int32_t* starts;
  int16_t* weights;
};

// kMax: grid.MaxTaps(), or 0 for any number.
template <int kMax>
void FillAll(const Filling& f) {
  const Grid grid(f.spec);
  const int64_t begin = f.begin, end = f.end, taps = f.taps, last_start = f.last_start;
  const auto step = static_cast<double>(2 * grid.out), support = static_cast<double>(grid.support);
  const double one = f.one;
  int64_t output = f.spec.first_out;
  int16_t* weights = f.weights;
  FirstSample first(grid, output);
  for (int i = 0; i < f.spec.count; ++i, ++output, first.Next(), weights += taps) {
    const int64_t sample = first.sample();
    const int64_t start = std::clamp<int64_t>(sample - begin, 0, last_start);
    f.starts[i] = static_cast<int32_t>(start);
    if constexpr (kMax != 0) {
      if (sample - begin == start && sample + kMax <= end) {
        const int64_t distance = grid.Sample(sample) - grid.Centre(output);
        FillFew<kMax>(static_cast<double>(distance), step, support, one, weights);
        continue;
      }
    }
    FillWeights(grid, output, sample, grid.MaxTaps(), one, begin, end, begin + start, weights);
  }
}

void FillAny(const Filling& f) {
  static constexpr void (*kFill[])(const Filling&) = {FillAll<0>, FillAll<1>, FillAll<2>,
                                                      FillAll<3>, FillAll<4>, FillAll<5>,
                                                      FillAll<6>, FillAll<7>, FillAll<8>};
  const auto most = static_cast<size_t>(Grid(f.spec).MaxTaps());
  kFill[most < std::size(kFill) ? most : 0](f);
}

// ---- The other filters.

// Returns the first of the spec's outputs, as KernelAxis counts them.
int FirstOutput(const AxisSpec& spec) {
  return spec.reversed ? spec.out - spec.first_out - spec.count : spec.first_out;
}

// FillWeights, in the order of the image as viewed. `high`: as AxisTaps. `values`: room for
// axis.MaxTaps().
void FillKernel(const Filling& f, int16_t* high, double* values) {
  const AxisSpec& spec = f.spec;
  KernelAxis axis(spec);
  const int first_output = FirstOutput(spec);
  for (int i = 0; i < spec.count; ++i) {
    const auto [first, end] = axis.SamplesOf(first_output + i);
    axis.Weigh(first_output + i, {first, end}, {values, static_cast<size_t>(end - first)});
    const int at = spec.reversed ? spec.count - 1 - i : i;
    const int64_t left = spec.reversed ? spec.in - end : first;
    const int64_t start = std::clamp<int64_t>(left - f.begin, 0, f.last_start);
    f.starts[at] = static_cast<int32_t>(start);
    const int64_t to = at * f.taps - (f.begin + start);  // the weight of sample 0
    for (int t = 0; t < end - first; ++t) {
      const int x = spec.reversed ? spec.in - 1 - (first + t) : first + t;
      if (x < f.begin || x >= f.end) continue;
      const int weight = static_cast<int>(values[t] * f.one + std::copysign(0.5, values[t]));
      if (high == nullptr) {
        f.weights[to + x] = static_cast<int16_t>(weight);
        continue;
      }
      f.weights[to + x] = static_cast<int16_t>(weight & ((1 << kHighShift) - 1));
      high[to + x] = static_cast<int16_t>(weight >> kHighShift);
    }
  }
}

// Whether the weights are those of Grid.
bool IsTriangle(const AxisSpec& spec) {
  return spec.interpolation == Interpolation::kBilinear &&
         !InSteps(spec.interpolation, spec.resampler);
}

// Returns the shift of ATen's weights. `values`: room for KernelAxis::MaxTaps().
int ShiftToFit(const AxisSpec& spec, double* values) {
  KernelAxis axis(spec);
  double largest = 0;
  for (int i = 0; i < spec.out; ++i) {
    const KernelAxis::Samples samples = axis.SamplesOf(i);
    const std::span weights(values, static_cast<size_t>(samples.end - samples.first));
    axis.Weigh(i, samples, weights);
    for (const double weight : weights) largest = std::max(largest, weight);
  }
  int shift = kFineShift;
  while (static_cast<int>(largest * (1 << shift) + 0.5) >= 1 << 15) --shift;
  return shift;
}

// The range of samples that a spec's outputs take, and the most that one output takes.
struct Extent {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t most = 0;
};

Extent ExtentOf(const AxisSpec& spec) {
  const int last = spec.count - 1;
  if (IsTriangle(spec)) {
    const Grid grid(spec);
    return {grid.First(spec.first_out), grid.End(int64_t{spec.first_out} + last), grid.MaxTaps()};
  }
  KernelAxis axis(spec);
  const int begin = axis.SamplesOf(FirstOutput(spec)).first;
  const int end = axis.SamplesOf(FirstOutput(spec) + last).end;
  if (spec.reversed) return {spec.in - end, spec.in - begin, axis.MaxTaps()};
  return {begin, end, axis.MaxTaps()};
}

AxisSpan Existing(const Extent& extent, const AxisSpec& spec) {
  const int64_t begin = std::max<int64_t>(extent.begin, spec.clip_begin);
  const int64_t end = std::min<int64_t>(extent.end, spec.clip_end);
  return {static_cast<int>(begin), static_cast<int>(std::max(begin, end))};
}

}  // namespace

AxisSpan SamplesOf(const AxisSpec& spec) { return Existing(ExtentOf(spec), spec); }

int WeightShift(const AxisSpec& spec) {
  constexpr int kBase = 14, kMax = 6;  // a single weight can be 1, which must fit into 16 bits
  if (InSteps(spec.interpolation, spec.resampler)) return kFineShift;
  if (!Widens(spec.interpolation, spec.antialias) || spec.in < spec.out) return kBase;
  const auto scale = static_cast<uint32_t>(spec.in / spec.out);
  return kBase + std::min(kMax, static_cast<int>(std::bit_width(scale)) - 1);
}

int MiddleBits(int horizontal_shift) {
  return std::min(7, 22 - horizontal_shift);  // 255 << 7 < 2^15 and 255 << 22 < 2^31
}

Status AxisFilter::Compute(const AxisSpec& spec) {
  const Extent extent = ExtentOf(spec);
  const AxisSpan used = Existing(extent, spec);
  begin_ = used.begin;
  end_ = used.end;
  const int64_t begin = begin_, end = end_;

  taps_ = {};
  if (begin_ == end_) return {};
  const int pairs = static_cast<int>((std::min(extent.most, end - begin) + 1) / 2);
  const size_t taps = 2 * static_cast<size_t>(pairs), count = static_cast<size_t>(spec.count);
  const bool triangle = IsTriangle(spec), in_steps = InSteps(spec.interpolation, spec.resampler);
  const bool one_part = in_steps && spec.resampler == ResampledAs::kTorchvision;
  const size_t weights_each = count * taps, parts = in_steps && !one_part ? 2 : 1;
  const size_t weight_bytes = parts * weights_each * sizeof(int16_t);
  const size_t value_bytes = triangle ? 0 : static_cast<size_t>(extent.most) * sizeof(double);
  TRY(memory_.Grow(value_bytes + count * sizeof(int32_t) + weight_bytes));
  auto* starts = reinterpret_cast<int32_t*>(memory_.data() + value_bytes);
  auto* weights = reinterpret_cast<int16_t*>(starts + count);
  auto* high = parts == 2 ? weights + weights_each : nullptr;
  std::memset(weights, 0, weight_bytes);

  auto* const values = reinterpret_cast<double*>(memory_.data());
  const int shift = one_part ? ShiftToFit(spec, values) : WeightShift(spec);
  const int64_t last_start = std::max<int64_t>(0, end_ - begin - static_cast<int64_t>(taps));
  const Filling filling{
      spec,   begin,  end, static_cast<int64_t>(taps), last_start, static_cast<double>(1 << shift),
      starts, weights};
  if (triangle) {
    FillAny(filling);
  } else {
    FillKernel(filling, high, values);
  }
  taps_ = {starts, weights, spec.count, pairs, shift, high, in_steps};
  return {};
}

}  // namespace stoker

// AxisFilter: the samples and weights of each output of a resampling, along one axis.
//
// Bilinear: a triangle around the output's center. When shrinking with antialias its half-width is
// the scale (Pillow's BILINEAR, torchvision's antialias=True), otherwise one sample (half-pixel
// centers, as in tf.image.resize and OpenCV's INTER_LINEAR). Weights are normalized over the
// samples inside the box.
//
// The other filters are Pillow's, widened by the scale when shrinking with antialias
// (kernel_axis.h).
//
// Bilinear's weights are 16-bit integers: the steps of the rounded running sum, so that they add up
// to 1 << shift exactly and each is off by less than one unit. With two axes this moves a pixel by
// less than a quarter of a grey level for boxes up to 128 times the output. Distances are integers
// in units of 1 / (2 × out) sample.
//
// The weights of filters that are applied in steps are Pillow's: each is rounded separately to
// kFineShift bits, which take two 16-bit integers; or ATen's, each rounded to the most bits with
// which the largest weight of all outputs fits into a 16-bit integer.
#pragma once

#include <cstdint>

#include "core/memory/buffer.h"
#include "core/memory/memory_budget.h"
#include "core/result/result.h"
#include "transforms/spec/interpolation.h"

namespace stoker {

struct AxisSpec {
  int in = 0;         // samples of the box
  int out = 0;        // outputs of the whole box
  int first_out = 0;  // outputs [first_out, first_out + count) of those are wanted, count >= 1
  int count = 0;
  int clip_begin = 0;  // samples of the box outside [clip_begin, clip_end) do not exist: zero
  int clip_end = 0;
  bool antialias = true;
  Interpolation interpolation = Interpolation::kBilinear;
  ResampledAs resampler = ResampledAs::kPillow;
  // The image as viewed begins at the other end. Where a sample lies exactly between two outputs,
  // kNearest and kBox choose by the order as viewed.
  bool reversed = false;
};

// The input of the kernels. Output i is the sum over t in [0, 2 × pairs) of weights[i × 2 × pairs +
// t] × sample[starts[i] + t]. Starts do not decrease.
struct AxisTaps {
  const int32_t* starts = nullptr;
  const int16_t* weights = nullptr;
  int count = 0;
  int pairs = 0;  // taps come in pairs, for SIMD; excess taps have weight zero
  int shift = 0;  // weights of an output add up to 1 << shift, or less if samples do not exist
  // If not null, a weight is high[…] << kHighShift | weights[…], where weights[…] >= 0.
  const int16_t* high = nullptr;
  // Each weight is rounded by itself, so their sum is not exactly 1 << shift, and results can lie
  // outside 0…255. Set if there are high parts.
  bool overshoots = false;
};

inline constexpr int kHighShift = 15;
inline constexpr int kFineShift = 22;  // of Pillow: 8 bits for the value, 2 for overshooting

// The used samples of a box: [begin, end); empty if none exists.
struct AxisSpan {
  int begin = 0;
  int end = 0;
};
AxisSpan SamplesOf(const AxisSpec& spec);

// Reused from image to image; grows within the budget. Not thread-safe.
class AxisFilter {
 public:
  explicit AxisFilter(MemoryBudget& budget) : memory_(budget) {}

  // ResourceExhausted if the budget has no room for the weights.
  Status Compute(const AxisSpec& spec);

  // SamplesOf the spec. taps().starts count from begin, and starts[i] + 2 × pairs is at most end -
  // begin, or one more when that is odd.
  int begin() const { return begin_; }
  int end() const { return end_; }
  const AxisTaps& taps() const { return taps_; }

 private:
  GrowingBuffer memory_;
  AxisTaps taps_;
  int begin_ = 0;
  int end_ = 0;
};

// Returns log2 of the sum of the weights: kFineShift for filters in steps, but not for
// kTorchvision, whose shift depends on the weights; otherwise 14, plus one for each doubling of the
// box up to 64 times, because the single weights get smaller.
int WeightShift(const AxisSpec& spec);

// Returns the fractional bits of the samples between the vertical and the horizontal pass: as many
// as fit into 16 and 32 bits.
int MiddleBits(int horizontal_shift);

}  // namespace stoker

// KernelAxis: the samples that an output of one axis takes, and their weights. It computes in the
// same doubles as Pillow.
#pragma once

#include <cstdint>
#include <span>

#include "transforms/resize/axis_filter.h"

namespace stoker {

class KernelAxis {
 public:
  explicit KernelAxis(const AxisSpec& spec);

  struct Samples {
    int first = 0;
    int end = 0;
  };

  // Returns the samples of the box that can have a weight: at least one. Calls must be in ascending
  // order of `output`. Outputs and samples are counted from the end if the spec is reversed.
  Samples SamplesOf(int output);

  // The largest number of samples that an output takes.
  int MaxTaps() const { return most_; }

  // Computes the samples' weights, which add up to 1.
  void Weigh(int output, Samples samples, std::span<double> weights) const;

 private:
  Interpolation interpolation_;
  int in_;
  double scale_;    // samples per output
  double width_;    // factor by which the filter is widened
  double support_;  // half of the widened filter
  int most_;
  double nearest_at_;  // of the last output asked for: Pillow adds up the scale
  int output_ = 0;
};

}  // namespace stoker

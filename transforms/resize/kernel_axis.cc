#include "transforms/resize/kernel_axis.h"

#include <algorithm>
#include <cmath>

#include "transforms/resize/filter_kernel.h"

namespace stoker {

namespace {

double SupportOf(Interpolation interpolation) {
  switch (interpolation) {
    case Interpolation::kBilinear:
      return TriangleKernel::kSupport;
    case Interpolation::kBicubic:
      return CubicKernel::kSupport;
    case Interpolation::kLanczos:
      return LanczosKernel::kSupport;
    default:
      return BoxKernel::kSupport;
  }
}

template <typename Kernel>
void WeighBy(const Kernel& kernel, int first, double center, double step,
             std::span<double> weights) {
  double sum = 0;
  for (int t = 0; double& weight : weights) {
    weight = kernel((t++ + first - center + 0.5) * step);
    sum += weight;
  }
  if (sum == 0.0) return;
  for (double& weight : weights) weight /= sum;
}

}  // namespace

KernelAxis::KernelAxis(const AxisSpec& spec)
    : interpolation_(spec.interpolation),
      in_(spec.in),
      scale_(static_cast<double>(spec.in) / spec.out),
      width_(Widens(spec.interpolation, spec.antialias) ? std::max(scale_, 1.0) : 1.0),
      support_(SupportOf(spec.interpolation) * width_),
      most_(std::min(static_cast<int>(std::ceil(2 * support_)), spec.in)),
      nearest_at_(scale_ * 0.5) {}

KernelAxis::Samples KernelAxis::SamplesOf(int output) {
  if (interpolation_ == Interpolation::kNearest) {
    for (; output_ < output; ++output_) nearest_at_ += scale_;
    const int sample = std::min(static_cast<int>(nearest_at_), in_ - 1);
    return {sample, sample + 1};
  }
  const double center = (output + 0.5) * scale_;
  const int first = std::max(0, static_cast<int>(center - support_ + 0.5));
  const int end = std::min(in_, static_cast<int>(center + support_ + 0.5));
  return {first, std::min(end, first + most_)};  // rounding can add a sample without weight
}

void KernelAxis::Weigh(int output, Samples samples, std::span<double> weights) const {
  const double center = (output + 0.5) * scale_, step = 1.0 / width_;
  switch (interpolation_) {
    case Interpolation::kBilinear:
      return WeighBy(TriangleKernel(), samples.first, center, step, weights);
    case Interpolation::kBicubic:
      return WeighBy(CubicKernel(), samples.first, center, step, weights);
    case Interpolation::kLanczos:
      return WeighBy(LanczosKernel(), samples.first, center, step, weights);
    case Interpolation::kBox:
      return WeighBy(BoxKernel(), samples.first, center, step, weights);
    default:
      weights[0] = 1;
  }
}

}  // namespace stoker

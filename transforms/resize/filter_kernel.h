// The filters of Pillow: the weight of a sample, by its distance from the output's center. They use
// only IEEE operations and conversions, so the bits are the same on every machine.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace stoker {

// The average of the samples whose centers lie in the box (−½, ½].
struct BoxKernel {
  static constexpr double kSupport = 0.5;
  double operator()(double x) const { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }
};

struct TriangleKernel {
  static constexpr double kSupport = 1;
  double operator()(double x) const { return std::max(0.0, 1.0 - std::abs(x)); }
};

// Keys' cubic with a = −½. (Keys: "Cubic convolution interpolation for digital image processing",
// IEEE Transactions on Acoustics, Speech, and Signal Processing, 1981)
struct CubicKernel {
  static constexpr double kSupport = 2;
  double operator()(double distance) const {
    constexpr double kA = -0.5;
    const double x = std::abs(distance);
    const double inner = ((kA + 2.0) * x - (kA + 3.0)) * x * x + 1;
    const double outer = (((x - 5) * x + 8) * x - 4) * kA;
    return x < 1 ? inner : x < 2 ? outer : 0.0;
  }
};

// sinc(x) × sinc(x / 3): a polynomial for each of kSteps parts of a sample's width, with an error
// below 2e-14, where a weight's unit is 2e-7.
class LanczosKernel {
 public:
  static constexpr double kSupport = 3;
  static constexpr int kSteps = 64;
  static constexpr size_t kTerms = 6;

  double operator()(double distance) const {
    const double at = std::abs(distance) * kSteps;
    if (at >= 3 * kSteps) return 0.0;
    const auto step = static_cast<size_t>(at);
    const double x = at - static_cast<double>(step) - 0.5;
    const std::array<double, kTerms>& c = kTable[step];
    return c[0] + x * (c[1] + x * (c[2] + x * (c[3] + x * (c[4] + x * c[5]))));
  }

 private:
  static const std::array<std::array<double, kTerms>, 3 * kSteps> kTable;
};

}  // namespace stoker

// The weight that each of Pillow's filters gives to a sample, by its distance from the output's
// center. Only IEEE operations and conversions: the same bits on every machine.
#pragma once

#include <array>
#include <cmath>

namespace stoker {

// The average of the samples whose centers lie in the box (−½, ½].
struct BoxKernel {
  static constexpr double kSupport = 0.5;
  double operator()(double x) const { return x > -0.5 && x <= 0.5 ? 1.0 : 0.0; }
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

// sinc(x) × sinc(x / 3), linear between kSteps values per sample: an error below 5e-7, where a
// weight's unit is 6e-5.
class LanczosKernel {
 public:
  static constexpr double kSupport = 3;
  static constexpr int kSteps = 1024;

  double operator()(double distance) const {
    const double at = std::abs(distance) * kSteps;
    if (at >= 3 * kSteps) return 0.0;
    const auto before = static_cast<size_t>(at);
    const double low = kTable[before], high = kTable[before + 1];
    return low + (high - low) * (at - static_cast<double>(before));
  }

 private:
  static const std::array<float, 3 * kSteps + 1> kTable;
};

}  // namespace stoker

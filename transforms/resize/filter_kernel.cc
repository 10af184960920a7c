#include "transforms/resize/filter_kernel.h"

#include <cstddef>

namespace stoker {

namespace {

constexpr double kPi = 0x1.921fb54442d18p+1;

// sin(πx), exactly 0 for whole x >= 0: the Taylor series around the nearest one; its first term
// left out is below 2e-18.
constexpr double SineOfTurns(double x) {
  const int nearest = static_cast<int>(x + 0.5);
  const double r = (x - nearest) * kPi, square = r * r;
  double sum = 0.0;
  for (int n = 21; n >= 3; n -= 2) sum = (1.0 + sum) * -square / (n * (n - 1));
  return (nearest % 2 == 0 ? 1.0 : -1.0) * (r + r * sum);
}

constexpr double Sinc(double x) { return x == 0 ? 1.0 : SineOfTurns(x) / (kPi * x); }

constexpr auto LanczosValues() {
  std::array<float, 3 * LanczosKernel::kSteps + 1> values{};
  for (size_t i = 0; i < values.size(); ++i) {
    const double x = static_cast<double>(i) / LanczosKernel::kSteps;
    values[i] = static_cast<float>(Sinc(x) * Sinc(x / 3));
  }
  return values;
}

}  // namespace

constinit const std::array<float, 3 * LanczosKernel::kSteps + 1> LanczosKernel::kTable =
    LanczosValues();

}  // namespace stoker

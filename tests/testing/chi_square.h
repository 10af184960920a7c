// Chi-square of counts against expected ones.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace stoker::testing {

// Returns a standard normal deviate (Wilson and Hilferty, PNAS 1931): above 3.719 by chance once in
// 10,000, and below its negative as often. It is infinite if a count is not 0 where nothing is
// expected.
inline double ChiSquareDeviate(const std::vector<uint64_t>& counts,
                               const std::vector<double>& expected) {
  double chi2 = 0, degrees = -1;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double d = static_cast<double>(counts[i]) - expected[i];
    if (expected[i] == 0 && d == 0) continue;
    chi2 += d * d / expected[i];
    ++degrees;
  }
  const double v = 2 / (9 * degrees);
  return (std::cbrt(chi2 / degrees) - (1 - v)) / std::sqrt(v);
}

}  // namespace stoker::testing

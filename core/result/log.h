// The natural logarithm, identical on every machine: it uses IEEE operations only. Constexpr, so
// that a kernel can call it.
#pragma once

#include <bit>
#include <cstdint>

namespace stoker {

// ln 2 in two parts; the upper one has 21 trailing zero bits, so that k × kLn2High is exact.
inline constexpr double kLn2High = 0x1.62e42fee00000p-1;
inline constexpr double kLn2Low = 0x1.a39ef35793c76p-33;

// Precondition: x is positive and normal. Absolute error below 1e-15 · max(1, |result|).
constexpr double Log(double x) {
  // x = 2^k m with m in [√½, √2), then ln m = 2 artanh(s), s = (m - 1) / (m + 1), |s| < 0.172; the
  // first omitted term is 2 s^23 / 23, below 3e-19.
  constexpr uint64_t kFraction = (uint64_t{1} << 52) - 1, kHalf = uint64_t{1022} << 52;
  const auto bits = std::bit_cast<uint64_t>(x);
  int k = static_cast<int>(bits >> 52) - 1022;
  auto m = std::bit_cast<double>((bits & kFraction) | kHalf);
  if (m < 0x1.6a09e667f3bcdp-1) {
    m *= 2;
    --k;
  }
  const double s = (m - 1.0) / (m + 1.0), s2 = s * s;
  double sum = 0.0;
  for (int n = 21; n >= 3; n -= 2) sum = (sum + 1.0 / n) * s2;
  return k * kLn2High + (k * kLn2Low + 2.0 * (s + s * sum));
}

}  // namespace stoker
